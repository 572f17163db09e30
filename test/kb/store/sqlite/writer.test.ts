import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkPostings } from "../../../../src/kb/store/sqlite/check/check-postings.ts";
import { openWriter, type Writer } from "../../../../src/kb/store/sqlite/writer.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { wordsOnly } from "../store-fixture.ts";

let folder: string;
/** Statements in this set fail. */
const failing = new Set<string>();
/** A failure to inject once at a run of a statement: of the statement alone, or with a rollback of the whole transaction. */
let once: { readonly sql: string; runsBefore: number; readonly isLost: boolean } | undefined;
/** Commits that fail because the disk is full, and what happens meanwhile. */
let full: { commits: number; readonly steps: string[] } | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-writer-"));
  failing.clear();
  full = undefined;
  once = undefined;
  // Called with the database of each call.
  // oxlint-disable-next-line typescript/unbound-method
  const { prepare }: { prepare: (this: unknown, sql: string) => Database.Statement } = Database.prototype;
  vi.spyOn(Database.prototype, "prepare").mockImplementation(function (this: unknown, sql: string) {
    const statement = prepare.call(this, sql);
    const run = statement.run.bind(statement);
    statement.run = (...given) => {
      if (failing.has(sql)) throw Object.assign(new Error(`${sql} failed`), { code: "SQLITE_NOMEM" });
      if (once?.sql === sql && once.runsBefore-- === 0) {
        if (once.isLost) (this as Database.Database).exec("ROLLBACK");
        once = undefined;
        throw Object.assign(new Error(`${sql} failed`), { code: "SQLITE_IOERR" });
      }
      if (full !== undefined && sql === "COMMIT") {
        full.steps.push(full.commits > 0 ? "disk full" : "committed");
        if (full.commits-- > 0) throw Object.assign(new Error("full"), { code: "SQLITE_FULL" });
      }
      return run(...given);
    };
    return statement;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const account = (writer: Writer, name: string): Promise<string> =>
  writer.records.ensureAccount(name).then(
    () => "done",
    () => "failed",
  );

it.each(["BEGIN IMMEDIATE", "SAVEPOINT one", "RELEASE one", "COMMIT"])(
  "rejects every waiting write when %s fails, and writes again when it works",
  async (sql) => {
    const writer = openWriter(join(folder, "kb.sqlite"));
    failing.add(sql);
    const writes = ["abcd", "efgh", "ijkl"].map((name) => account(writer, name));
    expect(await Promise.all(writes)).toEqual(["failed", "failed", "failed"]);
    failing.clear();
    expect(await account(writer, "mnop")).toBe("done");
    await writer.close();
  },
);

it("commits at most 256 writes at a time", async () => {
  const writer = openWriter(join(folder, "kb.sqlite"));
  await account(writer, "first");
  full = { commits: 0, steps: [] };
  await Promise.all(Array.from({ length: 257 }, (_, at) => account(writer, `many ${at}`)));
  expect(full.steps).toEqual(["committed", "committed"]);
  await writer.close();
});

it("begins no further write of a transaction after 100 ms", async () => {
  const writer = openWriter(join(folder, "kb.sqlite"));
  await account(writer, "first");
  full = { commits: 0, steps: [] };
  let ms = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (ms += 101));
  await Promise.all(["slow", "slower", "slowest"].map((name) => account(writer, name)));
  expect(full.steps).toEqual(["committed", "committed", "committed"]);
  await writer.close();
});

/** Creates a document with one chunk per paragraph. */
async function create(
  writer: Writer,
  accountId: string,
  id: string,
  content: string,
): Promise<"done" | "failed"> {
  const resource = { ...TEXTS, accountId, id: id.repeat(24), content };
  return writer.records.createResource(resource, wordsOnly(content)).then(
    () => "done" as const,
    () => "failed" as const,
  );
}

const TEXTS = {
  tier: "fastest" as const,
  ownerId: "ann",
  origin: "content" as const,
  title: "",
  description: "",
  url: null,
  settings: DEFAULT_SETTINGS,
  createdAt: "2026-01-01T00:00:00.000Z",
};

it.each([
  ["one write's changes", false, ["done", "failed", "done"]],
  ["the whole transaction", true, ["failed", "failed", "done"]],
] as const)(
  "acknowledges and indexes exactly the committed writes when SQLite rolls back %s",
  async (_name, isLost, expected) => {
    const path = join(folder, "kb.sqlite");
    const writer = openWriter(path);
    const { id } = await writer.records.ensureAccount("local");
    once = { sql: "RELEASE one", runsBefore: 1, isLost };
    const contents = ["one\n\none more", "two\n\ntwo more\n\nand more", "three"];
    const writes = contents.map((content, at) => create(writer, id, String(at), content));
    expect(await Promise.all(writes)).toEqual(expected);
    await writer.close();
    const db = new Database(path);
    const chunks = db.prepare("SELECT row FROM chunk ORDER BY row").pluck().all();
    expect(checkPostings(db)).toEqual([]);
    expect(chunks).toHaveLength(isLost ? 1 : 3);
    db.close();
  },
);

it.each(["BEGIN IMMEDIATE", "SAVEPOINT one", "RELEASE one", "COMMIT", "ROLLBACK"])(
  "settles every waiting write when the writer is closed while %s fails",
  async (sql) => {
    const writer = openWriter(join(folder, "kb.sqlite"));
    failing.add(sql);
    // A rollback follows only another failure.
    if (sql === "ROLLBACK") failing.add("COMMIT");
    const writes = ["abcd", "efgh", "ijkl"].map((name) => account(writer, name));
    await writer.close().catch(() => undefined);
    expect(await Promise.all(writes)).toEqual(["failed", "failed", "failed"]);
    failing.clear();
    expect(await account(writer, "late")).toBe("failed");
  },
);

it("deletes on a full disk: first with the reserve alone, then with the log emptied too", async () => {
  const writer = openWriter(join(folder, "kb.sqlite"));
  const { id: accountId } = await writer.records.ensureAccount("local");
  expect(await create(writer, accountId, "1", "one")).toBe("done");
  const steps: string[] = [];
  // Called with the database of each call.
  // oxlint-disable-next-line typescript/unbound-method
  const { pragma }: { pragma: (this: unknown, sql: string, options?: object) => unknown } =
    Database.prototype;
  vi.spyOn(Database.prototype, "pragma").mockImplementation(function (this: unknown, sql, options) {
    if (sql === "wal_checkpoint(TRUNCATE)") steps.push("log emptied");
    return pragma.call(this, sql, options);
  });
  full = { commits: 2, steps };
  const at = { accountId, id: "1".repeat(24), nowIso: TEXTS.createdAt };
  expect(await writer.records.deleteResource(at)).toMatchObject({ isDeleted: true });
  expect(steps.slice(0, 4)).toEqual(["disk full", "disk full", "log emptied", "committed"]);
  await writer.close();
});
