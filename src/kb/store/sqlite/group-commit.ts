import { KbsyncError } from "../../../lib/failure.ts";
import { openFairLine } from "../../../lib/fair-line.ts";
import type { Connection } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { openReserve } from "./database/reserve.ts";

/** Maximum writes in one transaction; keeps a commit short. A crash loses no acknowledged write. */
const BATCH_WRITES_MAX = 256;
/** Maximum time in a transaction before it is committed, so that one caller does not wait for all the others. */
const BATCH_MS_MAX = 100;
/** Size of the write-ahead log above which it is checkpointed even while more writes wait. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;
/** Size of the log above which it is checkpointed when no write waits. */
const WAL_BYTES_IDLE = 4 * 1024 * 1024;

/** Batches between checks of the log's size, each of which costs a system call. */
const CHECKPOINT_EVERY = 16;

/** Retries of a write that frees space on a full disk: first with the reserve, then with the log emptied too. */
const FREEING_TRIES = 2;

/**
 * The writes of a store. All that wait when a transaction begins share it and its flush to disk, as far as its time lasts.
 * Accounts take turns by the time that their writes took.
 */
export interface GroupCommit {
  /** Runs a write in a transaction, and resolves when that is on disk. */
  enqueue<T>(this: void, run: () => T, options?: WriteOptions): Promise<T>;
  /**
   * Rewrites the file without its free space, and empties the log. Other writes wait. Throws `store_busy` if a read prevents it,
   * and what the store throws.
   */
  compact(this: void): void;
  /** Commits waiting writes and closes the connection. */
  close(this: void): Promise<void>;
}

export interface WriteOptions {
  /** The account that the write belongs to. Default: none. */
  readonly account?: string;
  /** Whether it frees space, and must work on a full disk. Default: false. */
  readonly frees?: boolean;
}

interface Waiting {
  readonly account: string;
  readonly run: () => unknown;
  /** Retries left if the disk is full. */
  readonly triesOnFull: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** A write that ran, and what it returned. */
interface Done {
  readonly waiting: Waiting;
  readonly value: unknown;
}

/** Opens the writes of the connection to a store file. */
export function openGroupCommit(db: Connection, path: string): GroupCommit {
  const log = openLog(db);
  const reserve = openReserve(path);
  const inbox = openFairLine<Waiting>();
  const writeBatch = openBatches(db, path, (account, ms) => inbox.charge([account], ms));
  let scheduled = false;
  let batches = 0;

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // Runs after this turn of the event loop, which puts all messages that have arrived into the inbox.
    setImmediate(() => {
      scheduled = false;
      writeBatch(() => inbox.shift(), writeFromReserve);
      const isIdle = inbox.waiting() === 0;
      if (!isIdle) schedule();
      if (++batches % CHECKPOINT_EVERY === 0 || isIdle)
        log.checkpoint(isIdle ? WAL_BYTES_IDLE : WAL_BYTES_MAX);
      if (isIdle) reserve.refill();
    });
  }

  /** Runs a write that frees space on its own, with the reserve for its log. The freed space becomes the next reserve. */
  function writeFromReserve({ triesOnFull, ...waiting }: Waiting): void {
    reserve.release();
    // Only if the reserve alone did not suffice: a checkpoint that fails halfway uses it up.
    if (triesOnFull < FREEING_TRIES) log.empty();
    const again = [{ ...waiting, triesOnFull: triesOnFull - 1 }];
    writeBatch(() => again.pop(), writeFromReserve);
    log.empty();
    reserve.refill();
  }

  return {
    enqueue: async <T>(run: () => T, { account = "", frees = false }: WriteOptions = {}) =>
      new Promise<T>((resolve, reject) => {
        inbox.push([account], { account, run, triesOnFull: frees ? FREEING_TRIES : 0, resolve, reject });
        schedule();
      }),
    compact: () => {
      compactStore(db, path, log);
    },
    async close() {
      try {
        while (inbox.waiting() > 0) writeBatch(() => inbox.shift(), writeFromReserve);
      } finally {
        const failure = new KbsyncError("the store was closed", { code: "store_failed", subject: path });
        for (let left = inbox.shift(); left !== undefined; left = inbox.shift()) left.reject(failure);
        db.close();
      }
    },
  };
}

/**
 * Prepares batches: what `next` returns is written in one transaction, until it returns nothing or the transaction is full.
 * `retry` gets each write that frees space and found the disk full. `charge` gets the time that the writes of an account took.
 */
function openBatches(
  db: Connection,
  path: string,
  charge: (account: string, ms: number) => void,
): (next: () => Waiting | undefined, retry: (waiting: Waiting) => void) => void {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const runOne = prepareSavepoints(db, path);

  return (next, retry) => {
    const done: Done[] = [];
    let waiting = next();
    if (waiting === undefined) return;
    const tookMs = new Map<string, number>();
    let isOpen = false;
    let beganMs = performance.now();
    try {
      begin.run();
      isOpen = true;
      // Measured from here, because waiting for the lock may take longer than BATCH_MS_MAX.
      beganMs = performance.now();
      for (; waiting !== undefined; waiting = isFull(done.length, beganMs) ? undefined : next()) {
        const startMs = performance.now();
        runOne(waiting, done);
        const ms = performance.now() - startMs;
        charge(waiting.account, ms);
        tookMs.set(waiting.account, (tookMs.get(waiting.account) ?? 0) + ms);
      }
      commit.run();
    } catch (error) {
      const failure = storeFailure(error, path);
      const rollbackFailure = rollBack(db, path);
      for (const { waiting: lost } of done) {
        if (rollbackFailure === undefined && failure.code === "disk_full" && lost.triesOnFull > 0)
          retry(lost);
        else lost.reject(failure);
      }
      // If no transaction can begin, no waiting write can succeed, and retrying would never end.
      if (!isOpen) for (; waiting !== undefined; waiting = next()) waiting.reject(failure);
      // The connection is unusable: its thread ends and is restarted.
      if (rollbackFailure !== undefined) throw rollbackFailure;
      return;
    }
    for (const each of done) each.waiting.resolve(each.value as never); // run and resolve come from one enqueue
    chargeRest(tookMs, performance.now() - beganMs, charge);
  };
}

/** Charges the accounts for the commit of a batch, in proportion to their own writes. */
function chargeRest(
  tookMs: ReadonlyMap<string, number>,
  batchMs: number,
  charge: (account: string, ms: number) => void,
): void {
  let ownMs = 0;
  for (const ms of tookMs.values()) ownMs += ms;
  if (ownMs === 0) return;
  for (const [account, ms] of tookMs) charge(account, (batchMs - ownMs) * (ms / ownMs));
}

/** Prepares writes that run in a savepoint each: a failure undoes only its own changes. They throw if the whole transaction is lost. */
function prepareSavepoints(db: Connection, path: string) {
  const savepoint = db.prepare("SAVEPOINT one");
  const release = db.prepare("RELEASE one");
  const undo = db.prepare("ROLLBACK TO one");
  return (waiting: Waiting, done: Done[]): void => {
    let hasSavepoint = false;
    try {
      savepoint.run();
      hasSavepoint = true;
      const value = waiting.run();
      release.run();
      done.push({ waiting, value });
    } catch (error) {
      // SQLite rolls back the whole transaction on some errors (disk full, I/O): the whole batch has failed.
      if (!hasSavepoint || !db.inTransaction) {
        done.push({ waiting, value: undefined });
        throw error;
      }
      waiting.reject(storeFailure(error, path));
      undo.run();
      release.run();
    }
  };
}

function isFull(writes: number, beganMs: number): boolean {
  return writes >= BATCH_WRITES_MAX || performance.now() >= beganMs + BATCH_MS_MAX;
}

/** Rolls back the transaction if there is one. Returns the error if that fails. */
function rollBack(db: Connection, path: string): Error | undefined {
  try {
    if (db.inTransaction) db.exec("ROLLBACK");
    return undefined;
  } catch (error) {
    return storeFailure(error, path);
  }
}

/** See `GroupCommit.compact`. */
function compactStore(db: Connection, path: string, log: ReturnType<typeof openLog>): void {
  try {
    // The copy that VACUUM makes has the size of the store, which memory may not have.
    db.pragma("temp_store = FILE");
    // Free space is zeroed by `secure_delete`, but pages keep remains of rows that moved to another page.
    db.exec("VACUUM");
    if (log.empty()) return;
  } catch (error) {
    throw storeFailure(error, path);
  } finally {
    db.pragma("temp_store = MEMORY");
  }
  throw new KbsyncError("a long read of the store keeps its log from being emptied", {
    code: "store_busy",
    subject: path,
    retryable: true,
  });
}

/** Opens the checkpoints of the write-ahead log, which keep it bounded. None blocks readers. */
function openLog(db: Connection) {
  const pageBytes = Number(db.pragma("page_size", { simple: true }));
  return {
    /** Checkpoints the log if it holds more than `bytesMax`. */
    checkpoint: (bytesMax: number): void => {
      try {
        // NOOP only returns the number of pages in the log and how many of them are checkpointed.
        const [log] = db.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
        if ((log.log - log.checkpointed) * pageBytes > bytesMax) db.pragma("wal_checkpoint(PASSIVE)");
      } catch {
        // On a full disk the pages stay in the log, where readers find them, and a later checkpoint copies them. The writes
        // report the failure of the disk to their callers.
      }
    },
    /** Checkpoints the whole log and truncates it, if the disk and readers permit. Reports whether they did. */
    empty: (): boolean => {
      try {
        const [result] = db.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }];
        return result.busy === 0;
      } catch {
        // As in `checkpoint`: readers read the log as it is, and the writes report the failure.
        return false;
      }
    },
  };
}
