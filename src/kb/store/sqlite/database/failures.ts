import { codeOf, KbsyncError, messageOf } from "../../../../lib/failure.ts";
import { DAMAGE_HINT, INDEX_DAMAGE } from "../../damage.ts";

/** Converts an error of SQLite to a KbsyncError with a message for people. Returns a KbsyncError unchanged. */
export function storeFailure(error: unknown, path: string): KbsyncError {
  if (error instanceof KbsyncError) return error;
  const code = codeOf(error) ?? "";
  const facts = FACTS.find(([prefix]) => code.startsWith(prefix))?.[1];
  if (facts === undefined) {
    return new KbsyncError(`the store failed on ${path}: ${messageOf(error)}`, {
      code: "store_failed",
      subject: path,
      cause: error,
    });
  }
  const { what, ...rest } = facts;
  return new KbsyncError(`${what}: ${path} (${messageOf(error)})`, { ...rest, subject: path, cause: error });
}

const FACTS: readonly (readonly [
  prefix: string,
  facts: { what: string; code: string; hint?: string; retryable?: boolean },
])[] = [
  [
    "SQLITE_NOTADB",
    {
      what: "the store file is not a SQLite database",
      code: "store_damaged",
      hint: DAMAGE_HINT,
    },
  ],
  [
    "SQLITE_CORRUPT",
    {
      what: "the store file is damaged",
      code: "store_damaged",
      hint: DAMAGE_HINT,
    },
  ],
  ["INDEX_DAMAGED", INDEX_DAMAGE],
  [
    "SQLITE_FULL",
    {
      what: "the disk has no space left for the store",
      code: "disk_full",
      hint: "Free some space.",
      retryable: true,
    },
  ],
  ["SQLITE_BUSY", { what: "another program has locked the store", code: "store_busy", retryable: true }],
  ["SQLITE_CANTOPEN", { what: "the store file cannot be opened", code: "store_unreachable" }],
  ["SQLITE_READONLY", { what: "the store file cannot be written", code: "store_unreachable" }],
  ["SQLITE_PERM", { what: "the store file cannot be opened", code: "store_unreachable" }],
  ["SQLITE_IOERR", { what: "reading or writing the store file failed", code: "store_unreachable" }],
  [
    "SQLITE_CONSTRAINT_UNIQUE",
    { what: "the store already has a record with that name or id", code: "conflict" },
  ],
  ["SQLITE_CONSTRAINT_PRIMARYKEY", { what: "the store already has a record with that id", code: "conflict" }],
  [
    "SQLITE_CONSTRAINT_FOREIGNKEY",
    { what: "the record that the new one belongs to is not in the store", code: "conflict" },
  ],
];
