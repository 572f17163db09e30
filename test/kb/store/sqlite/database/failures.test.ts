import { expect, it } from "vitest";
import { KbsyncError } from "../../../../../src/lib/failure.ts";
import { storeFailure } from "../../../../../src/kb/store/sqlite/database/failures.ts";

const sqlite = (code: string): Error => Object.assign(new Error("SQLite's words"), { code });

it.each<[string, string, string, boolean, RegExp | undefined]>([
  ["SQLITE_NOTADB", "store_damaged", "the store file is not a SQLite database", false, /doctor/],
  ["SQLITE_CORRUPT", "store_damaged", "the store file is damaged", false, /doctor/],
  ["SQLITE_CORRUPT_INDEX", "store_damaged", "the store file is damaged", false, /doctor/],
  ["SQLITE_FULL", "disk_full", "the disk has no space left for the store", true, /^Free some space\.$/],
  ["SQLITE_BUSY", "store_busy", "another program has locked the store", true, undefined],
  ["SQLITE_BUSY_SNAPSHOT", "store_busy", "another program has locked the store", true, undefined],
  ["SQLITE_CANTOPEN", "store_unreachable", "the store file cannot be opened", false, undefined],
  ["SQLITE_READONLY_DIRECTORY", "store_unreachable", "the store file cannot be written", false, undefined],
  ["SQLITE_PERM", "store_unreachable", "the store file cannot be opened", false, undefined],
  ["SQLITE_IOERR_READ", "store_unreachable", "reading or writing the store file failed", false, undefined],
  [
    "SQLITE_CONSTRAINT_UNIQUE",
    "conflict",
    "the store already has a record with that name or id",
    false,
    undefined,
  ],
  [
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "conflict",
    "the store already has a record with that id",
    false,
    undefined,
  ],
  [
    "SQLITE_CONSTRAINT_FOREIGNKEY",
    "conflict",
    "the record that the new one belongs to is not in the store",
    false,
    undefined,
  ],
])("SQLite's %s becomes %s", (from, code, what, retryable, hint) => {
  const cause = sqlite(from);
  const failure = storeFailure(cause, "/kb.db");
  const message = `${what}: /kb.db (SQLite's words)`;
  expect(failure).toMatchObject({ code, message, retryable, subject: "/kb.db", cause });
  expect(failure.hint ?? "").toMatch(hint ?? /^$/);
});

it.each(["SQLITE_CONSTRAINT_CHECK", "SQLITE_MISUSE", "ENOENT", ""])(
  "any other failure, as %s, is one of the store",
  (code) => {
    const cause = sqlite(code);
    expect(storeFailure(cause, "/kb.db")).toMatchObject({
      code: "store_failed",
      message: "the store failed on /kb.db: SQLite's words",
      subject: "/kb.db",
      cause,
    });
  },
);

it("a failure of ours stays as it is", () => {
  const failure = new KbsyncError("no", { code: "lease_lost" });
  expect(storeFailure(failure, "/kb.db")).toBe(failure);
});
