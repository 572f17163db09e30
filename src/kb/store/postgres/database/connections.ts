import { Pool, types, type CustomTypesConfig, type PoolClient, type QueryResult } from "pg";
import { CommitUnknown } from "../../commit-unknown.ts";
import { isConnectionLoss, wasNotSent } from "./failures.ts";
import type { Parameters } from "../../sql/steps.ts";
import { numbered } from "./statement.ts";

/** Longest wait for a new connection. */
const CONNECT_MS = 5000;
/** Longest statement of a transaction. Everything that takes longer works in steps. */
const STATEMENT_MS = 30_000;
/** Longest wait for the lock of another transaction. */
const LOCK_MS = 10_000;
/** Longest pause of a transaction between statements: after it the process that held its locks counts as stopped. */
const IDLE_MS = 10_000;
/**
 * After this time the server counts as gone, even if the network reports nothing. Statements that are sent together wait for each other,
 * and this time counts from their sending.
 */
const ANSWER_MS = 4 * STATEMENT_MS;
/** Longest step of a migration, and longest wait for the one of another process. */
export const MIGRATION_MS = 6 * 3_600_000;

/** Statements of one transaction, or of a snapshot. A row has the names of the selected columns. */
export interface Transaction {
  /** Returns all rows. */
  all<Row>(statement: string, parameters?: Parameters): Promise<Row[]>;
  /** Returns the first row. */
  get<Row>(statement: string, parameters?: Parameters): Promise<Row | undefined>;
  /** Returns how many rows the statement changed. */
  run(statement: string, parameters?: Parameters): Promise<number>;
  /** Scopes whose merge becomes due with the commit. Undefined: nothing is written. */
  readonly due?: Set<number>;
}

/** Connections to one database for one kind of work. */
export interface Connections {
  /** Runs single statements, each on its own. */
  readonly single: Transaction;
  /**
   * Runs work once in a transaction and commits it. Throws the errors of PostgreSQL, and `CommitUnknown` if nobody can say whether
   * the commit was carried out.
   */
  transact<T>(begin: string, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Resolves when every connection has been returned and closed. */
  close(): Promise<void>;
}

/** Keeps up to `max` connections. `answerMs`: longest statement. */
export function openConnections(url: string, max: number, answerMs = ANSWER_MS): Connections {
  const pool = new Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: answerMs,
    keepAlive: true,
    application_name: "kbsync",
    types: TYPES,
    // Statements are sent without waiting for the answers to those before them, and carried out in the order in which they were sent.
    pipeline: true,
  });
  // A connection that ends while nobody uses it leaves the pool; the next work opens another one.
  pool.on("error", () => {});
  return {
    single: statementsOn(pool),
    async transact(begin, work) {
      const client = await pool.connect();
      // An error between statements also rejects the next one, which reports it.
      const ignore = (): void => {};
      client.on("error", ignore);
      const end = new AbortController();
      let failure: unknown;
      try {
        const begun = client.query(begin);
        // A part of the work may go on after another part has failed: what it sends then is of no transaction, or of the next one.
        const result = await work(statementsOn(client, begun, end.signal)).finally(() => end.abort());
        await begun;
        await commit(client);
        return result;
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        client.off("error", ignore);
        client.release(failure !== undefined && !(await isUsable(client, failure)));
      }
    },
    close: () => pool.end(),
  };
}

/**
 * How work runs: as single statements, in one snapshot, in a transaction that writes, in one that reads and whose every
 * statement sees what was committed before it, or in one that may take hours.
 */
export type Mode = "single" | "snapshot" | "write" | "latest" | "migration";

/** Statements that begin a transaction. One message: the settings cost no round trip, and work behind a pooler. */
export const BEGIN: Readonly<Record<Exclude<Mode, "single">, string>> = {
  latest: `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; ${limits()}`,
  snapshot: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${limits()}`,
  write: `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${limits()}`,
  migration: `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${limits(MIGRATION_MS, MIGRATION_MS)}`,
};

function limits(statementMs = STATEMENT_MS, lockMs = LOCK_MS): string {
  return `SET LOCAL statement_timeout = ${statementMs}; SET LOCAL lock_timeout = ${lockMs}; SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`;
}

async function commit(client: PoolClient): Promise<void> {
  let command: string;
  try {
    ({ command } = await client.query("COMMIT"));
  } catch (error) {
    if (!isConnectionLoss(error) || wasNotSent(error)) throw error;
    throw new CommitUnknown("the connection was lost during a commit", { cause: error });
  }
  // A transaction with a failed statement is rolled back, which is no error of COMMIT.
  if (command !== "COMMIT") throw new Error(`the transaction ended with ${command}`);
}

/** Reports whether a connection can be used again after a failure: it answers, and its transaction is undone. */
async function isUsable(client: PoolClient, failure: unknown): Promise<boolean> {
  if (failure instanceof CommitUnknown || isConnectionLoss(failure)) return false;
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the statements of a transaction that `begun` begins, or single ones. A read at the start is sent along with BEGIN. A write waits
 * for the answer: if BEGIN is cancelled, the statements behind it are carried out on their own. Nothing is sent after `ended`.
 */
function statementsOn(
  on: Pick<Pool | PoolClient, "query">,
  begun?: Promise<unknown>,
  ended?: AbortSignal,
): Transaction {
  let waiting = begun;
  let isHeld = false;
  // The work may end without a statement, and its failure comes first.
  void begun?.then(
    () => (waiting = undefined),
    () => undefined,
  );
  const query = async (statement: string, parameters: Parameters): Promise<QueryResult> => {
    const { text, names } = numbered(statement);
    // Whatever follows a statement that waits does so too: the order stays as it is.
    isHeld ||= !READ.test(text);
    if (waiting !== undefined && isHeld) await waiting;
    if (ended?.aborted === true) throw new Error("the transaction has ended");
    return on.query(
      text,
      names.map((name) => escaped(parameters[name] ?? null)),
    );
  };
  return {
    // The caller names the type of the rows that its statement selects.
    all: async <Row>(statement: string, parameters: Parameters = {}) =>
      (await query(statement, parameters)).rows as Row[],
    get: async <Row>(statement: string, parameters: Parameters = {}) =>
      (await query(statement, parameters)).rows[0] as Row | undefined,
    run: async (statement, parameters = {}) => (await query(statement, parameters)).rowCount ?? 0,
  };
}

/** A statement that changes nothing if it is carried out on its own. */
const READ = /^\s*SELECT\b/;

/** Integers of 64 bits are numbers here: rows, counts and times stay below 2^53. Sums of them are `numeric`. */
const TYPES: CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    if (oid === types.builtins.INT8 || oid === types.builtins.NUMERIC) return parseInteger;
    return oid === types.builtins.TEXT ? unescaped : types.getTypeParser(oid, format);
  },
};

function parseInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`the database returned ${text}, which is no safe integer`);
  return value;
}

/** Begins an escape in a stored text. */
const ESCAPE = "\u001A";

/** PostgreSQL's texts cannot hold the character U+0000, which documents may contain: every parameter is escaped. */
function escaped(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(escaped);
  if (typeof value !== "string" || !(value.includes("\0") || value.includes(ESCAPE))) return value;
  return value.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll("\0", `${ESCAPE}0`);
}

/** Undoes `escaped` in a text of a row. */
function unescaped(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, "\0").replaceAll(`${ESCAPE}1`, ESCAPE);
}
