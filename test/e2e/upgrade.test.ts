import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import { knownTexts } from "../../src/sync/ledger/restored.ts";
import { writeFixture } from "../fixtures/fixture.ts";
import { kbsync, statusOf, temporaryFolder } from "./program.ts";

const temporary = temporaryFolder("upgrade");
afterAll(() => temporary.remove());

/** Text of the file that was deleted, which the releases with a trash have kept. */
const DELETED = "Nothing of this is needed any more.\n";

/** A machine as a release left it: a folder, a state folder with what that release wrote, and the configuration. */
function machine(ledger: number, store: number) {
  const path = join(temporary.path, `${ledger}-${store}`);
  const docs = join(path, "docs");
  const state = join(path, "state");
  cpSync(fileURLToPath(new URL("../fixtures/docs", import.meta.url)), docs, { recursive: true });
  writeFileSync(join(docs, "large.txt"), "x".repeat(5000));
  mkdirSync(join(state, "service"), { recursive: true, mode: 0o700 });
  writeFixture(`ledger-${ledger}`, join(state, "ledger.db"), docs);
  writeFixture(`store-${store}`, join(state, "service", "kb.sqlite"));
  for (const { name } of knownTexts(join(state, "ledger.db"))) {
    mkdirSync(join(state, "trash"), { recursive: true });
    writeFileSync(join(state, "trash", name), DELETED);
  }
  const config = join(path, "kbsync.config.json");
  const source = { path: docs, ownerId: "sample", collection: "moderate", maxFileBytes: 4000 };
  const text = { service: { embedded: true, port: 0 }, stateDir: state, sources: [source] };
  writeFileSync(config, JSON.stringify(text));
  return { docs, state, run: (...args: string[]) => kbsync([...args, "--config", config]) };
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder).filter((name) => name.includes(".version-"));

describe.each([
  [2, 1],
  [5, 3],
])("a state folder with a ledger of version %s and a store of version %s", (ledger, store) => {
  const { docs, state, run } = machine(ledger, store);

  it("is told of, and backed up, as it is", async () => {
    expect(await statusOf(docs, state)).toMatchObject({ files: 5, inAgreement: 4, failed: 1 });
    const backup = join(temporary.path, `backup-${ledger}`);
    expect(await run("backup", backup)).toMatchObject({ code: 0, stderr: "" });
    const elsewhere = join(temporary.path, `restored-${ledger}`);
    const restored = await kbsync(["restore", backup, "--state-dir", elsewhere]);
    expect([restored.code, restored.stderr]).toEqual([0, ""]);
    expect(await statusOf(docs, elsewhere)).toMatchObject({ files: 5, inAgreement: 4, failed: 1 });
    expect([...filesOf(state), ...filesOf(join(state, "service"))]).toEqual([]);
  });

  it("goes on after the first start: nothing is sent again, everything is found, copies are kept", async () => {
    const synced = await run("sync", "--json");
    expect(JSON.parse(synced.stdout)).toMatchObject({
      changes: 0,
      sources: [{ files: 5, inAgreement: 4, failed: 1 }],
    });
    expect(synced.code).toBe(1); // the file that is too large
    const found = await run("search", "roof in bad weather", "--json");
    expect([found.code, found.stdout]).toEqual([0, expect.stringContaining("dome")]);
    expect(await run("verify")).toMatchObject({ code: 0 });
    expect(filesOf(state)).toEqual([`ledger.db.version-${ledger}`]);
    expect(filesOf(join(state, "service"))).toEqual([`kb.sqlite.version-${store}`]);
  });
});

it.each([
  ["ledger", "ledger.db", "the ledger"],
  ["store", "service/kb.sqlite", "the store file"],
])("a %s of a newer version is refused with the reason, and left as it is", async (name, path, words) => {
  const { state, run } = machine(name === "ledger" ? 6 : 5, name === "ledger" ? 3 : 6);
  const db = new Database(join(state, path));
  db.pragma("user_version = 99");
  db.close();
  const ended = await run("sync");
  expect([ended.code, ended.stdout]).toEqual([2, ""]);
  expect(ended.stderr).toContain(words);
  expect(ended.stderr).toMatch(/version 99.* up to \d+/);
  expect(filesOf(state)).not.toContain("ledger.db.version-99");
});
