import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kbsync, temporaryFolder } from "./program.ts";

const temporary = temporaryFolder("upgrade");
const docs = join(temporary.path, "docs");
const synced = join(temporary.path, "synced");
const sync = (stateDir: string) => {
  const config = `${stateDir}.json`;
  const sources = [{ path: docs, ownerId: "sample" }];
  writeFileSync(config, JSON.stringify({ service: { port: 0 }, stateDir, sources }));
  return kbsync(["sync", "--config", config]);
};

beforeAll(async () => {
  mkdirSync(docs);
  writeFileSync(join(docs, "a.md"), "The dome opens at dusk.");
  assert.equal((await sync(synced)).code, 0);
});
afterAll(() => temporary.remove());

it.each([
  ["ledger", 99, "ledger.db", /version 99.* up to \d+/],
  [
    "ledger",
    16,
    "ledger.db",
    /before the first release: .* version 16.*`kbsync sync --recover --config \S+`/s,
  ],
  ["store", 99, "service/kb.sqlite", /version 99.* up to \d+/],
  ["store", 34, "service/kb.sqlite", /before the first release: .* version 34.*Move the state folder away/s],
])(
  "refuses a %s of version %s with the reason and leaves it as it is",
  async (kind, version, path, words) => {
    const state = join(temporary.path, `${kind}-${version}`);
    cpSync(synced, state, { recursive: true });
    const file = join(state, path);
    const db = new Database(file);
    db.pragma(`user_version = ${version}`);
    db.pragma("journal_mode = DELETE");
    db.close();
    const before = readFileSync(file);
    const ended = await sync(state);
    expect([ended.code, ended.stdout]).toEqual([2, ""]);
    expect(ended.stderr).toContain(`the ${kind}`);
    expect(ended.stderr).toMatch(words);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect([...readdirSync(state), ...readdirSync(join(state, "service"))].join()).not.toContain(".version-");
  },
);
