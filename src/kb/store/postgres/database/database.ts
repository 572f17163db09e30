import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../../../lib/failure.ts";
import { openGate, type Gate } from "../../../../lib/gate.ts";
import { BEGIN, MIGRATION_MS, openConnections, type Mode, type Transaction } from "./connections.ts";
import { CommitUnknown } from "../../commit-unknown.ts";
import { databaseFailure, isConnectionLoss, isLostRace } from "./failures.ts";

/** Transactions that write at a time. More only wait for each other's flushes. */
const WRITERS = 8;
/** Reads at a time. */
const READERS = 6;
/** Connections that reads leave to lookups of one small row, on which requests wait. */
const LOOKUPS = 2;
/** Further ones of accounts that have none running. */
const GUESTS = 2;
/** Work that may wait: more than all requests in flight make together. */
const LINE_MAX = 16_384;

/** Scopes whose merge is due that are remembered. A scan finds the others. */
const DUE_MAX = 10_000;

/** Tries of a transaction that lost a race. Each winner has committed, so work goes on meanwhile. */
const RACES_MAX = 8;
/** Tries after the connection was lost: enough for the connections that a restart of the server leaves in the pool. */
const LOSSES_MAX = 3;
const FIRST_PAUSE_MS = 20;

/** A PostgreSQL database, as this process uses it. */
export interface Database {
  /** Runs work for an account. It runs again after a lost race or connection, so it may have no other effects. Throws KbsyncErrors. */
  run<T>(mode: Mode, account: string, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Scopes whose merge became due with a write of this process, until someone takes them out. */
  readonly due: Set<number>;
  /** Why the database does not work at present; undefined: the last work succeeded. */
  problem(): KbsyncError | undefined;
  close(): Promise<void>;
}

/** Called when a database stops to answer, and when it answers again. */
export interface DatabaseListener {
  onAway(this: void, failure: KbsyncError): void;
  onBack(this: void): void;
}

/** Opens a database. The first work opens the first connection. */
export function openDatabase(url: string, listener?: DatabaseListener): Database {
  const name = nameOf(url);
  const writers = openConnections(url, WRITERS + GUESTS);
  const readers = openConnections(url, READERS + GUESTS + LOOKUPS);
  const writing = gateOf(WRITERS, name);
  const reading = gateOf(READERS, name);
  // The pool opens no connection before it is used.
  const migrations = openConnections(url, 1, MIGRATION_MS);
  let problem: KbsyncError | undefined;
  const due = new Set<number>();
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await Promise.all([writers.close(), readers.close(), migrations.close()]);
  };

  const attempt = <T>(mode: Mode, account: string, work: (tx: Transaction) => Promise<T>): Promise<T> => {
    if (mode === "single") return work(readers.single);
    if (mode === "migration") return migrations.transact(BEGIN.migration, work);
    const path = { path: [account] };
    return mode === "write"
      ? writing.run(() => write(work), path)
      : reading.run(() => readers.transact(BEGIN[mode], work), path);
  };
  const write = async <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => {
    const dueThen = new Set<number>();
    const result = await writers.transact(BEGIN.write, (tx) => work({ ...tx, due: dueThen }));
    for (const scope of dueThen) if (due.size < DUE_MAX) due.add(scope);
    return result;
  };

  return {
    async run(mode, account, work) {
      try {
        const result = await repeat(() => attempt(mode, account, work));
        if (problem !== undefined) listener?.onBack();
        problem = undefined;
        return result;
      } catch (error) {
        const failure = databaseFailure(error, name);
        if (isConnectionLoss(error) || error instanceof CommitUnknown) {
          // A commit whose outcome is unknown concerns its own caller; all others learn why the database does not work.
          const away = error instanceof CommitUnknown ? databaseFailure(error.cause, name) : failure;
          if (problem === undefined) listener?.onAway(away);
          problem = away;
        }
        throw failure;
      }
    },
    due,
    problem: () => problem,
    close: () => (closing ??= close()),
  };
}

/** Returns the address of a database without user and password, for messages. */
export function nameOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `postgres://${host}${pathname}`;
}

/** Repeats work that lost a race or its connection. */
async function repeat<T>(work: () => Promise<T>): Promise<T> {
  let losses = 0;
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (isConnectionLoss(error)) losses += 1;
      else if (!isLostRace(error)) throw error;
      if (losses >= LOSSES_MAX || tries >= RACES_MAX) throw error;
      // At random, so that the losers of one race do not meet again.
      await sleep(Math.random() * FIRST_PAUSE_MS * 2 ** tries);
    }
  }
}

function gateOf(width: number, name: string): Gate {
  return openGate({
    width,
    guests: GUESTS,
    lineMax: LINE_MAX,
    full: () =>
      new KbsyncError("too much work for the database is waiting", {
        code: "store_busy",
        subject: name,
        retryable: true,
      }),
  });
}
