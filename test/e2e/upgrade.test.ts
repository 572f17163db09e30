import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, expect, it } from "vitest";
import { kbsync, temporaryFolder } from "./program.ts";

const temporary = temporaryFolder("upgrade");
afterAll(() => temporary.remove());

it.each([
  ["ledger", 99, "ledger.db", /version 99.* up to \d+/],
  ["ledger", 16, "ledger.db", /before the first release: .* version 16.*`kbsync recover --config \S+`/s],
  ["store", 99, "service/kb.sqlite", /version 99.* up to \d+/],
  ["store", 34, "service/kb.sqlite", /before the first release: .* version 34.*Move the state folder away/s],
])(
  "refuses a %s of version %s with the reason and leaves it as it is",
  async (kind, version, path, words) => {
    const folder = join(temporary.path, `${kind}-${version}`);
    const [docs, state] = [join(folder, "docs"), join(folder, "state")];
    mkdirSync(docs, { recursive: true });
    writeFileSync(join(docs, "a.md"), "The dome opens at dusk.");
    const config = join(folder, "kbsync.config.json");
    const source = { path: docs, ownerId: "sample" };
    const text = { service: { embedded: true, port: 0 }, stateDir: state, sources: [source] };
    writeFileSync(config, JSON.stringify(text));
    expect(await kbsync(["sync", "--config", config])).toMatchObject({ code: 0 });
    const file = join(state, path);
    const db = new Database(file);
    db.pragma(`user_version = ${version}`);
    db.pragma("journal_mode = DELETE");
    db.close();
    const before = readFileSync(file);
    const ended = await kbsync(["sync", "--config", config]);
    expect([ended.code, ended.stdout]).toEqual([2, ""]);
    expect(ended.stderr).toContain(`the ${kind}`);
    expect(ended.stderr).toMatch(words);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect([...readdirSync(state), ...readdirSync(join(state, "service"))].join()).not.toContain(".version-");
  },
);
