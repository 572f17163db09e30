import { fdatasync } from "node:fs";
import { ledgerFailure, type Sqlite } from "./open.ts";

/** Writes of many files gathered into few transactions: one flush to disk costs as much as hundreds of rows. */
export interface GroupCommit {
  /** Resolves when the change is on disk. All changes asked for in one turn of the loop share a transaction. */
  write(change: () => void): Promise<void>;
  /** For what may be lost in a crash: joins the next transaction, or starts one a little later. */
  note(change: () => void): void;
  /**
   * As `note`, for what sums up: runs after all other changes of its transaction, once however often it was asked for. A
   * sum of what is under way must not miss what was acknowledged after it was asked for.
   */
  noteLast(change: () => void): void;
  /** Commits at once what waits, so that a read sees it. That it is on disk is not said. */
  flush(): void;
  /** Drops what waits and takes nothing more, as a crash would. */
  abandon(): void;
}

/** How long a note may wait for company, in milliseconds. */
const NOTE_MS = 200;
/** At this many waiting changes a transaction starts without waiting for more. */
const CHANGES_MAX = 1000;

/** Someone who waits for a change to be on disk. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface GroupCommitOptions {
  /** Descriptor of the write-ahead log. */
  readonly wal: number;
  /** Told before a transaction and when it is on disk; may throw to simulate a crash. */
  readonly step: (name: string) => void;
  /**
   * A transaction failed. After that no write succeeds any more, for the notes in it are lost and what they say is no
   * longer known.
   */
  readonly onFailure: (error: Error) => void;
}

/**
 * Gathers writes to `db`. SQLite writes the log without flushing it (`synchronous = NORMAL`: consistent after any
 * crash, see https://sqlite.org/wal.html#performance_considerations); the flush is ours, in the thread pool, so that a
 * slow disk never holds the loop. A flush serves every transaction that was committed before it began.
 */
export function groupCommits(
  db: Sqlite,
  file: string,
  { wal, step, onFailure }: GroupCommitOptions,
): GroupCommit {
  let changes: (() => void)[] = [];
  let last = new Set<() => void>();
  let waiting: Waiter[] = [];
  /** Committed and not yet flushed. */
  let unflushed: Waiter[] = [];
  let flushing = false;
  let failure: Error | undefined;
  let soon: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;
  let abandoned = false;
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");

  const fail = (error: unknown, waiters: readonly Waiter[]): void => {
    failure ??= ledgerFailure(error, file);
    for (const { reject } of waiters) reject(failure);
    onFailure(failure);
  };
  const flushToDisk = (): void => {
    if (flushing || unflushed.length === 0 || abandoned) return;
    flushing = true;
    const waiters = unflushed;
    unflushed = [];
    fdatasync(wal, (error) => {
      flushing = false;
      if (abandoned) return;
      try {
        if (error !== null) throw error;
        step("committed");
      } catch (cause) {
        fail(cause, [...waiters, ...unflushed]);
        return;
      }
      for (const { resolve } of waiters) resolve();
      flushToDisk();
    });
  };
  const flush = (): void => {
    if (soon !== undefined) clearImmediate(soon);
    clearTimeout(later);
    soon = undefined;
    later = undefined;
    if (changes.length + last.size === 0 || abandoned) return;
    const group = [...changes, ...last];
    const waiters = waiting;
    changes = [];
    last = new Set();
    waiting = [];
    try {
      if (failure !== undefined) throw failure;
      step("commit");
      begin.run();
      for (const change of group) change();
      commit.run();
    } catch (error) {
      if (db.open && db.inTransaction) db.exec("ROLLBACK");
      fail(error, waiters);
      return;
    }
    unflushed.push(...waiters);
    flushToDisk();
  };

  return {
    write: (change) =>
      new Promise((resolve, reject) => {
        changes.push(change);
        waiting.push({ resolve, reject });
        if (changes.length >= CHANGES_MAX) flush();
        else soon ??= setImmediate(flush);
      }),
    note: (change) => {
      changes.push(change);
      if (changes.length >= CHANGES_MAX) flush();
      else later ??= setTimeout(flush, NOTE_MS);
    },
    noteLast: (change) => {
      if (abandoned) return;
      last.add(change);
      later ??= setTimeout(flush, NOTE_MS);
    },
    flush: () => {
      flush();
      if (failure !== undefined) throw failure;
    },
    abandon: () => {
      abandoned = true;
      const gone = [...waiting, ...unflushed];
      changes = [];
      last = new Set();
      waiting = [];
      unflushed = [];
      for (const { reject } of gone) reject(failure ?? new Error("the ledger was closed"));
      if (soon !== undefined) clearImmediate(soon);
      clearTimeout(later);
    },
  };
}
