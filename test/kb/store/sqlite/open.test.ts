import Database from "better-sqlite3";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openForWriting } from "../../../../src/kb/store/sqlite/database/connection.ts";
import { SCHEMA } from "../../../../src/kb/store/sqlite/database/schema.ts";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { copyOf, upgrade } from "../../../../src/lib/upgrade.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../store-fixture.ts";

describe("openSqliteStore", () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kbsync-open-"));
    path = join(folder, "state", "kb.sqlite");
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("a later version's step upgrades a store with its data, and this version then refuses it and opens the copy", async () => {
    const first = await openSqliteStore({ path });
    const account = await first.records.ensureAccount("local");
    await first.close();
    const step = "ALTER TABLE account ADD COLUMN note TEXT NOT NULL DEFAULT 'none'";
    const later = { ...SCHEMA, scripts: [...SCHEMA.scripts, step] };
    const db = new Database(path);
    upgrade(db, { file: path, kind: "store", schema: later });
    expect(db.prepare("SELECT id, name, note FROM account").all()).toEqual([
      { id: account.id, name: "local", note: "none" },
    ]);
    db.close();
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "store_newer" });
    const copy = await openSqliteStore({ path: copyOf(path, SCHEMA.baseline) });
    expect(await copy.records.accounts()).toMatchObject([{ id: account.id }]);
    await copy.close();
  });

  it("creates the file and its folder, and finds all data after reopening", async () => {
    const first = await openSqliteStore({ path });
    const account = await first.records.ensureAccount("local");
    await first.close();
    const second = await openSqliteStore({ path });
    expect(await second.records.ensureAccount("local")).toEqual(account);
    await second.close();
  });

  it("leaves nothing of a deleted or replaced text in the file after a checkpoint", async () => {
    const store = await openSqliteStore({ path });
    const account = await store.records.ensureAccount("local");
    const make = async (id: number, content: string): Promise<string> => {
      const at = { accountId: account.id, id: String(id).padStart(24, "0") };
      const fields = {
        tier: "fastest",
        ownerId: "ann",
        origin: "content",
        title: "T",
        description: "",
        url: null,
      } as const;
      await store.records.createResource(
        { ...at, ...fields, content, settings: DEFAULT_SETTINGS, createdAt: NOW },
        wordsOnly(content),
      );
      return at.id;
    };
    // A short text, one with pages of its own, and one of a remaining row: each leaves another kind of free space.
    const SECRET = "The heron of Zarnegin stood";
    const short = await make(1, `${SECRET} short.`);
    const long = await make(2, `${SECRET} long. `.repeat(2000));
    const changed = await make(3, `${SECRET} changed.`);
    await make(4, "It stays.");
    await store.records.deleteResource({ accountId: account.id, id: short, nowIso: NOW });
    await store.records.deleteResource({ accountId: account.id, id: long, nowIso: NOW });
    const at = { accountId: account.id, id: changed, nowIso: NOW };
    await store.records.updateResource({ ...at, content: "Calm." }, wordsOnly("Calm."));
    await store.close();
    const bytes = readFileSync(path, "latin1");
    expect(bytes).toContain("It stays.");
    expect(bytes.split(SECRET).length - 1).toBe(0);
  });

  const refusals: [name: string, make: (at: string) => void, code: string][] = [
    [
      "a file that is no database",
      (at) => writeFileSync(at, "not a database, only text ".repeat(100)),
      "store_damaged",
    ],
    [
      "another program's database",
      (at) => new Database(at).exec("CREATE TABLE other (x)").close(),
      "store_foreign",
    ],
    [
      "a store of a newer version",
      (at) => {
        const db = openForWriting(at);
        db.pragma("user_version = 999");
        db.close();
      },
      "store_newer",
    ],
    [
      "a store from before the first release",
      (at) => {
        const db = openForWriting(at);
        db.pragma(`user_version = ${SCHEMA.baseline - 1}`);
        db.close();
      },
      "store_older",
    ],
    [
      "a damaged store",
      (at) => {
        openForWriting(at).close();
        writeFileSync(at, readFileSync(at).fill(0x5a, 100, 4096));
      },
      "store_damaged",
    ],
  ];
  it.each(refusals)("refuses %s with a message and leaves it as it is", async (_name, make, code) => {
    const at = join(folder, "kb.sqlite");
    make(at);
    const before = readFileSync(at);
    await expect(openSqliteStore({ path: at })).rejects.toMatchObject({
      name: "KbsyncError",
      code,
      subject: at,
    });
    expect(readFileSync(at).equals(before)).toBe(true);
  });

  it("refuses to open a folder as a store", async () => {
    await expect(openSqliteStore({ path: folder })).rejects.toMatchObject({ code: "store_unreachable" });
  });

  it("refuses reads beyond the longest queue, to be tried again", async () => {
    const store = await openSqliteStore({ path });
    const { id } = await store.records.ensureAccount("local");
    let ended = 0;
    const read = () => store.records.resource({ accountId: id, id: "none" }).finally(() => (ended += 1));
    // Two run, and 16,384 wait.
    const reads = Promise.allSettled(Array.from({ length: 16_386 }, read));
    await expect(read()).rejects.toMatchObject({ code: "store_busy", retryable: true, subject: path });
    expect(ended).toBe(1);
    await store.close();
    await reads;
  });

  it("flushes every commit and checks references", () => {
    const db = openForWriting(join(folder, "kb.sqlite"));
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(db.pragma("foreign_keys", { simple: true })).toBe(1);
    const tables = db.prepare<[], { name: string; strict: number; type: string }>("PRAGMA table_list").all();
    const own = tables.filter(({ name, type }) => type === "table" && !name.startsWith("sqlite_"));
    expect(own.length).toBeGreaterThan(8);
    expect(own.filter(({ strict }) => strict === 0)).toEqual([]);
    db.close();
  });
});
