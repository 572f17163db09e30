import { codeOf, KbsyncError, messageOf, type FailureFacts } from "../../../../lib/failure.ts";
import { CommitUnknown } from "../../commit-unknown.ts";
import { DATABASE_DAMAGE_HINT, INDEX_DAMAGE } from "../../damage.ts";

/** Converts an error of PostgreSQL or its driver to a KbsyncError with a message for people. Returns a KbsyncError unchanged. */
export function databaseFailure(error: unknown, subject: string): KbsyncError {
  if (error instanceof KbsyncError) return error;
  if (error instanceof CommitUnknown) {
    return new KbsyncError(
      `the connection to ${subject} was lost during a commit, which may have succeeded`,
      {
        ...AWAY,
        hint: "Repeat the request with the same `Idempotency-Key`: it finds out.",
        subject,
        cause: error,
      },
    );
  }
  // The driver's own error, before it sends anything: the server asks for a password, and there is none.
  const code = /client password must be/.test(messageOf(error)) ? "28P01" : (codeOf(error) ?? "");
  const found = isConnectionLoss(error) ? AWAY : FACTS.find(([prefix]) => code.startsWith(prefix))?.[1];
  const { what, ...facts } = found ?? { what: "the database failed", code: "store_failed" };
  return new KbsyncError(`${what}: ${subject} (${messageOf(error)})`, { ...facts, subject, cause: error });
}

/**
 * Reports whether an error means that the connection is gone, or that the server takes no work: it stops, starts, or is a standby
 * now. The transaction has not been committed, unless the error came in answer to COMMIT.
 */
export function isConnectionLoss(error: unknown): boolean {
  const code = codeOf(error);
  // Without a code these are the driver's own: a connection that ended, or that gave no answer in time.
  if (code === undefined)
    return /^Connection terminated|^Query read timeout|timeout exceeded when trying to connect|not queryable/.test(
      messageOf(error),
    );
  return LOST.has(code) || code.startsWith("08");
}

/** Reports whether the driver knew that the connection was lost, and sent nothing. */
export function wasNotSent(error: unknown): boolean {
  return /not queryable/.test(messageOf(error));
}

/** Reports whether the same transaction may succeed if it is run again: it lost against another one. */
export function isLostRace(error: unknown): boolean {
  const code = codeOf(error);
  return code === "40001" || code === "40P01";
}

/** Errors of sockets, and of https://www.postgresql.org/docs/15/errcodes-appendix.html. */
const LOST: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOENT", // a Unix socket of a server that does not run
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout
  "25P03", // idle_in_transaction_session_timeout
  "25006", // read_only_sql_transaction: the server became a standby
]);

interface Facts extends FailureFacts {
  readonly what: string;
}

const AWAY: Facts = {
  what: "the database does not answer",
  code: "store_busy",
  retryable: true,
  hint: "Start it, or check service.database. Services that run go on by themselves as soon as it answers.",
};

const FACTS: readonly (readonly [prefix: string, facts: Facts])[] = [
  [
    "40",
    { what: "the database is busy with writes to the same records", code: "store_busy", retryable: true },
  ],
  ["55P03", { what: "a lock in the database was not released in time", code: "store_busy", retryable: true }],
  ["57014", { what: "the database took too long", code: "store_busy", retryable: true }],
  ["53300", { what: "the database has no connection left", code: "store_busy", retryable: true }],
  [
    "53100",
    {
      what: "the disk has no space left for the database",
      code: "disk_full",
      hint: "Free some space.",
      retryable: true,
    },
  ],
  ["53", { what: "the database has too few resources", code: "store_busy", retryable: true }],
  ["58", { what: "the database could not read or write its files", code: "store_unreachable" }],
  ["XX00", { what: "the database is damaged", code: "store_damaged", hint: DATABASE_DAMAGE_HINT }],
  ["INDEX_DAMAGED", INDEX_DAMAGE],
  ["23505", { what: "the store already has a record with that name or id", code: "conflict" }],
  ["23503", { what: "the record that the new one belongs to is not in the store", code: "conflict" }],
  [
    "28",
    {
      what: "the database refuses the user or the password",
      code: "store_unreachable",
      hint: "Check the user in service.database, and the password in service.databasePasswordFile.",
    },
  ],
  ["3D000", { what: "the database does not exist", code: "store_unreachable", hint: "Create it." }],
  [
    "42501",
    {
      what: "the user of the database may not do that",
      code: "store_unreachable",
      hint: "Make that user the owner of the database.",
    },
  ],
];
