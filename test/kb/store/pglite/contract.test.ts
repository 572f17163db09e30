import { afterAll, beforeAll } from "vitest";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { queueContract } from "../../queue/queue-contract.ts";
import { indexContract } from "../index-contract.ts";
import { query } from "../postgres/databases.ts";
import { recordsContract } from "../records-contract.ts";
import { startPglite, type PgliteServer } from "./server.ts";

let server: PgliteServer;
beforeAll(async () => {
  server = await startPglite();
});
afterAll(() => server.close());

let made = 0;
const newDatabase = async (): Promise<string> => {
  const name = `database_${++made}`;
  await query(server.url("public"), `CREATE SCHEMA ${name}`);
  const url = server.url(name);
  return url;
};
const open = async (): Promise<Store> => openPostgresStore(await newDatabase());

recordsContract("PGlite", open);
indexContract("PGlite", open);
queueContract("PGlite", async () => {
  const url = await newDatabase();
  const stores = [await openPostgresStore(url), await openPostgresStore(url)] as const;
  return {
    stores,
    empty: () => query(url, "DELETE FROM job"),
    close: async () => {
      for (const store of stores) await store.close();
    },
  };
});
