import { fdatasync } from "node:fs";
import { ledgerFailure, type Sqlite } from "./database/open.ts";

/** Gathers the writes of many files into few transactions: one flush to disk costs as much as hundreds of rows. */
export type GroupCommit = ReturnType<typeof groupCommits>;

/** How long a note may wait for others, in milliseconds. */
const NOTE_MS = 200;
/** At this many pending changes a transaction starts at once. */
const CHANGES_MAX = 1000;

/** The promise that all who wait for a transaction share. */
type Waiters = PromiseWithResolvers<void>;

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
  /** What the callers of the next transaction wait for; undefined: none does. */
  let waiting: Waiters | undefined;
  let failure: Error | undefined;
  let soon: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;
  let isAbandoned = false;
  const transact = db.transaction((group: readonly (() => void)[]) => {
    for (const change of group) change();
  });

  const fail = (error: unknown, groups: readonly Waiters[]): void => {
    failure ??= ledgerFailure(error, file);
    for (const { reject } of groups) reject(failure);
    onFailure(failure);
  };
  const disk = openDiskFlush(wal, step, fail);
  const clearTimers = (): void => {
    if (soon !== undefined) clearImmediate(soon);
    clearTimeout(later);
    soon = undefined;
    later = undefined;
  };
  const commit = (): void => {
    clearTimers();
    if (changes.length + last.size === 0 || isAbandoned) return;
    const group = [...changes, ...last.values()];
    const groups = waiting === undefined ? [] : [waiting];
    changes = [];
    last = new Map();
    waiting = undefined;
    try {
      if (failure !== undefined) throw failure;
      step("commit");
      transact.immediate(group);
    } catch (error) {
      fail(error, groups);
      return;
    }
    disk.flush(groups);
  };

  return {
    /** Resolves when the change is on disk. All changes requested in one turn of the loop share a transaction. */
    write: (change: () => void): Promise<void> => {
      changes.push(change);
      const { promise } = (waiting ??= Promise.withResolvers());
      if (changes.length >= CHANGES_MAX) commit();
      else soon ??= setImmediate(commit);
      return promise;
    },
    /** For changes that a crash may lose: joins the next transaction, or starts one a little later. */
    note: (change: () => void): void => {
      changes.push(change);
      if (changes.length >= CHANGES_MAX) commit();
      else later ??= setTimeout(commit, NOTE_MS);
    },
    /**
     * Like `note`, for the summary of a source: runs after all other changes of its transaction, and only once however often
     * it is requested. A sum of what is in flight must not miss what was acknowledged after the request.
     */
    noteLast: (source: number, change: () => void): void => {
      if (isAbandoned) return;
      last.set(source, change);
      later ??= setTimeout(commit, NOTE_MS);
    },
    /** Commits pending changes at once, so that a read sees them. Does not guarantee that they are on disk. */
    flush: (): void => {
      commit();
      if (failure !== undefined) throw failure;
    },
    /** Drops pending changes and accepts no more, as a crash would. */
    abandon: (): void => {
      isAbandoned = true;
      const left = disk.abandon();
      if (waiting !== undefined) left.push(waiting);
      changes = [];
      last = new Map();
      waiting = undefined;
      for (const { reject } of left) reject(failure ?? new Error("the ledger was closed"));
      clearTimers();
    },
  };
}

/** Flushes the log to disk. A flush serves all transactions that were committed before it began. */
function openDiskFlush(
  wal: number,
  step: GroupCommitOptions["step"],
  fail: (error: unknown, groups: readonly Waiters[]) => void,
) {
  let committed: Waiters[] = [];
  let isFlushing = false;
  let isAbandoned = false;
  const flush = (): void => {
    if (isFlushing || committed.length === 0) return;
    isFlushing = true;
    const groups = committed;
    committed = [];
    fdatasync(wal, (error) => {
      isFlushing = false;
      if (isAbandoned) return;
      try {
        if (error !== null) throw error;
        step("committed");
      } catch (cause) {
        fail(cause, [...groups, ...committed]);
        return;
      }
      for (const { resolve } of groups) resolve();
      flush();
    });
  };
  return {
    /** Resolves those who wait for committed transactions once these are on disk. */
    flush: (groups: readonly Waiters[]): void => {
      committed.push(...groups);
      flush();
    },
    /** Ends, and returns those whose transaction was not being flushed yet. */
    abandon: (): Waiters[] => {
      isAbandoned = true;
      return committed.splice(0);
    },
  };
}
