import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, expect, it } from "vitest";
import { addBackup } from "../../../src/cli/commands/backup.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import { putEmptyStore } from "../../kb/store/empty-store.ts";
import { cliContext, outputTo } from "../context.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-backup-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  ["names a file that is missing in the state folder", {}, 1, `not in it: service/uploads/${"T".repeat(43)}`],
  [
    "names the place of uploaded files that it does not contain",
    { files: "s3://bucket/a" },
    0,
    "not in it: uploaded files, which are in s3://bucket/a/; back them up there",
  ],
])("%s", async (_name, service, exitCode, words) => {
  const stateDir = join(folder, "state");
  mkdirSync(join(stateDir, "service"), { recursive: true });
  const path = join(stateDir, "service", "kb.sqlite");
  await putEmptyStore(path);
  const store = await openSqliteStore({ path });
  await store.records.addFile({
    token: "T".repeat(43),
    accountId: (await store.records.ensureAccount("local")).id,
    name: "a.txt",
    mediaType: "text/plain",
    sizeBytes: 5,
    sha256: "0".repeat(64),
    createdAt: new Date().toISOString(),
  });
  await store.close();
  const config = join(folder, "c.json");
  writeFileSync(config, JSON.stringify({ stateDir, service: { ...service } }));
  let text = "";
  const context = cliContext({
    cwd: folder,
    env: { KBSYNC_CONFIG: config },
    stdout: outputTo((more) => (text += more)),
  });
  const program = new Command();
  addBackup(program, context);
  await program.parseAsync(["backup", join(folder, "to")], { from: "user" });
  expect(text.replaceAll("\n", " ")).toContain(words);
  expect(context.exitCode).toBe(exitCode);
});
