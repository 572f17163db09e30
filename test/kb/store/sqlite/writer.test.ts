import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openWriter, type Writer } from "../../../../src/kb/store/sqlite/writer.ts";

let folder: string;
/** Statements that fail while they are in here. */
const failing = new Set<string>();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-writer-"));
  failing.clear();
  // Called with the database of each call.
  // oxlint-disable-next-line typescript/unbound-method
  const { prepare }: { prepare: (this: unknown, sql: string) => Database.Statement } = Database.prototype;
  vi.spyOn(Database.prototype, "prepare").mockImplementation(function (this: unknown, sql: string) {
    const statement = prepare.call(this, sql);
    const run = statement.run.bind(statement);
    statement.run = (...given) => {
      if (failing.has(sql)) throw Object.assign(new Error(`${sql} failed`), { code: "SQLITE_NOMEM" });
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
  writer.ensureAccount({ name, ids: name.split("").map((each) => each.repeat(24)) }).then(
    () => "done",
    () => "failed",
  );

it.each(["BEGIN IMMEDIATE", "SAVEPOINT one", "RELEASE one", "COMMIT"])(
  "answers every write when %s fails, and the next ones when it works again",
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

it.each(["BEGIN IMMEDIATE", "SAVEPOINT one", "RELEASE one", "COMMIT", "ROLLBACK"])(
  "answers every write that waits when it is closed while %s fails",
  async (sql) => {
    const writer = openWriter(join(folder, "kb.sqlite"));
    failing.add(sql);
    // A rollback comes only where something else failed.
    if (sql === "ROLLBACK") failing.add("COMMIT");
    const writes = ["abcd", "efgh", "ijkl"].map((name) => account(writer, name));
    await writer.close().catch(() => undefined);
    expect(await Promise.all(writes)).toEqual(["failed", "failed", "failed"]);
    failing.clear();
    expect(await account(writer, "late")).toBe("failed");
  },
);
