import { fdatasync } from "node:fs";
import { ledgerFailure, type Sqlite } from "./database/open.ts";

/** Gathers the writes of many files into few transactions: one flush to disk costs as much as hundreds of rows. */
export type GroupCommit = ReturnType<typeof groupCommits>;

/** How long a note may wait for others, in milliseconds. */
const NOTE_MS = 200;
/** At this many pending changes a transaction starts at once. */
const CHANGES_MAX = 1000;

/** A caller that waits for a change to be on disk. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface GroupCommitOptions {
  /** Descriptor of the write-ahead log. */
  readonly wal: number;
  /** Called before a transaction and once it is on disk. May throw to simulate a crash. */
  readonly step: (name: string) => void;
  /**
   * Called when a transaction fails. After that no write succeeds, because its notes are lost and what they recorded is
   * unknown.
   */
  readonly onFailure: (error: Error) => void;
}

/**
 * Gathers writes to `db`. SQLite writes the log without flushing it (`synchronous = NORMAL`: consistent after any
 * crash, see https://sqlite.org/wal.html#performance_considerations). We flush it ourselves in the thread pool, so that
 * a slow disk never blocks the loop. A flush serves every transaction that was committed before it began.
 */
export function groupCommits(db: Sqlite, file: string, { wal, step, onFailure }: GroupCommitOptions) {
  let changes: (() => void)[] = [];
  let last = new Map<number, () => void>();
  let waiting: Waiter[] = [];
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
  const disk = openDiskFlush(wal, step, fail);
  const flush = (): void => {
    if (soon !== undefined) clearImmediate(soon);
    clearTimeout(later);
    soon = undefined;
    later = undefined;
    if (changes.length + last.size === 0 || abandoned) return;
    const group = [...changes, ...last.values()];
    const waiters = waiting;
    changes = [];
    last = new Map();
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
    disk.flush(waiters);
  };

  return {
    /** Resolves when the change is on disk. All changes requested in one turn of the loop share a transaction. */
    write: (change: () => void): Promise<void> =>
      new Promise((resolve, reject) => {
        changes.push(change);
        waiting.push({ resolve, reject });
        if (changes.length >= CHANGES_MAX) flush();
        else soon ??= setImmediate(flush);
      }),
    /** For changes that a crash may lose: joins the next transaction, or starts one a little later. */
    note: (change: () => void): void => {
      changes.push(change);
      if (changes.length >= CHANGES_MAX) flush();
      else later ??= setTimeout(flush, NOTE_MS);
    },
    /**
     * Like `note`, for the summary of a source: runs after all other changes of its transaction, and only once however often
     * it is requested. A sum of what is in flight must not miss what was acknowledged after the request.
     */
    noteLast: (source: number, change: () => void): void => {
      if (abandoned) return;
      last.set(source, change);
      later ??= setTimeout(flush, NOTE_MS);
    },
    /** Commits pending changes at once, so that a read sees them. Does not guarantee that they are on disk. */
    flush: (): void => {
      flush();
      if (failure !== undefined) throw failure;
    },
    /** Drops pending changes and accepts no more, as a crash would. */
    abandon: (): void => {
      abandoned = true;
      const gone = [...waiting, ...disk.abandon()];
      changes = [];
      last = new Map();
      waiting = [];
      for (const { reject } of gone) reject(failure ?? new Error("the ledger was closed"));
      if (soon !== undefined) clearImmediate(soon);
      clearTimeout(later);
    },
  };
}

/** Flushes the log to disk. A flush serves all transactions that were committed before it began. */
function openDiskFlush(
  wal: number,
  step: GroupCommitOptions["step"],
  fail: (error: unknown, waiters: readonly Waiter[]) => void,
): {
  /** Resolves those who wait for a committed transaction once it is on disk. */
  flush(waiters: readonly Waiter[]): void;
  /** Ends, and returns those whose transaction was not being flushed yet. */
  abandon(): readonly Waiter[];
} {
  let unflushed: Waiter[] = [];
  let flushing = false;
  let abandoned = false;
  const flush = (): void => {
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
      flush();
    });
  };
  return {
    flush: (waiters) => {
      unflushed.push(...waiters);
      flush();
    },
    abandon: () => {
      abandoned = true;
      const left = unflushed;
      unflushed = [];
      return left;
    },
  };
}
