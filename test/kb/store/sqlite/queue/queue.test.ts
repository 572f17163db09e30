import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { queueContract } from "../../../queue/queue-contract.ts";

queueContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kbsync-queue-"));
  const path = join(folder, "kb.sqlite");
  const stores = [await openSqliteStore({ path }), await openSqliteStore({ path })] as const;
  const jobs = new Database(path);
  return {
    stores,
    empty: () => void jobs.exec("DELETE FROM job"),
    close: async () => {
      jobs.close();
      for (const store of stores) await store.close();
      await rm(folder, { recursive: true });
    },
  };
});
