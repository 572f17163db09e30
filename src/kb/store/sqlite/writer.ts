import { KbsyncError } from "../../../lib/failure.ts";
import type { UpgradeListener } from "../../../lib/upgrade.ts";
import type { NewJob } from "../../queue/queue.ts";
import type { ResourceJob } from "../store.ts";
import type { SameTransaction } from "../request-note.ts";
import type {
  Chunking,
  Expected,
  KeyRecord,
  NewResource,
  ResourceChange,
  ResourceKey,
  Account,
  Resource,
  RowVector,
  StoredFile,
} from "../records.ts";
import { prepareAnswerNotes, type AnswerNotes } from "./database/answer-notes.ts";
import type { KeyChange } from "../keys.ts";
import type { LinkFetch } from "../links.ts";
import { prepareChatWrites, type ChatWrites } from "./chat/chat-writes.ts";
import type { RowSentences } from "../sentences.ts";
import { openForWriting } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { collectIndexChanges } from "./words/index-changes.ts";
import { prepareKeyWrites } from "./accounts/key-rows.ts";
import { openReserve } from "./database/reserve.ts";
import { prepareRetentionWrites, type RetentionWrites } from "./resources/retention.ts";
import { prepareServingWrites, type ServingWrites } from "./vectors/serving.ts";
import { prepareSmallWrites } from "./accounts/small-writes.ts";
import { prepareVectorWrites } from "./vectors/vector-writes.ts";
import { prepareQueueWrites, type QueueWrites } from "./queue/queue-writes.ts";
import { prepareWebhookWrites, type WebhookWrites } from "./queue/webhook-writes.ts";
import { prepareResourceWrites, type ResourceWrites } from "./resources/writes.ts";

/** Most writes in one transaction. A crash loses none that was acknowledged; the bound keeps a commit short. */
const BATCH_WRITES_MAX = 256;
/** Most time spent on a transaction before it is committed, so that one caller does not wait for all the others. */
const BATCH_MS_MAX = 100;
/** Size of the write-ahead log from which it is copied into the database even while more writes wait. */
const WAL_BYTES_MAX = 64 * 1024 * 1024;
/** Size of the log from which that is done when nothing waits. */
const WAL_BYTES_IDLE = 4 * 1024 * 1024;

/**
 * The one writer of a store file. All writes that wait when a transaction begins share it and its flush to disk.
 * The methods take one argument, so that a worker can answer them.
 */
export type Writer = {
  ensureAccount(argument: { name: string; ids: readonly string[] }): Promise<Account>;
  putKey(key: KeyRecord): Promise<void>;
  changeKey(change: KeyChange): Promise<KeyRecord | undefined>;
  noteLinkFetch(fetch: LinkFetch): Promise<void>;
  /** The answer comes without the content, which the caller has. */
  createResource(argument: {
    resource: NewResource;
    chunking: Chunking;
    sameTransaction: SameTransaction | undefined;
  }): Promise<Omit<Resource, "content">>;
  updateResource(argument: {
    change: ResourceChange;
    chunking: Chunking | undefined;
    sameTransaction: SameTransaction | undefined;
  }): Promise<Resource | undefined>;
  enqueueCreate(argument: {
    resource: NewResource;
    job: ResourceJob;
    sameTransaction: SameTransaction | undefined;
  }): Promise<Omit<Resource, "content">>;
  /** The answer comes without the content. */
  enqueueUpdate(argument: {
    at: ResourceKey & Expected & { readonly nowIso: string };
    job: ResourceJob;
    sameTransaction: SameTransaction | undefined;
  }): Promise<Resource | undefined>;
  deleteResource(at: ResourceKey & Expected & { readonly nowIso: string }): Promise<Resource | undefined>;
  addFile(argument: { file: StoredFile; sameTransaction: SameTransaction | undefined }): Promise<void>;
  addQuestion(argument: {
    job: NewJob;
    sameTransaction: Pick<SameTransaction, "request"> | undefined;
  }): Promise<void>;
  putVectors(argument: { fingerprint: string; vectors: readonly RowVector[] }): Promise<void>;
  putSentences(argument: { fingerprint: string; chunks: readonly RowSentences[] }): Promise<void>;
  /** Commits what waits, copies the log into the database and closes the file. */
  close(): Promise<void>;
} & Queued<WebhookWrites> &
  Queued<ChatWrites> &
  Queued<QueueWrites> &
  Queued<RetentionWrites> &
  Queued<Pick<ResourceWrites, "failJob">> &
  Queued<Pick<AnswerNotes, "sweep">> &
  Queued<ServingWrites>;

/** The same writes, each answered once its transaction is on the disk. */
type Queued<W> = {
  [K in keyof W]: W[K] extends (argument: infer A) => infer R ? (argument: A) => Promise<R> : never;
};

/** Batches between looks at the size of the log, which cost a system call each. */
const CHECKPOINT_EVERY = 16;

/** How often a write that frees space runs again on a full disk: from the reserve, and with the log emptied as well. */
const FREEING_TRIES = 2;

interface Waiting {
  readonly run: () => unknown;
  /** How often it may run again when the disk is full. */
  readonly triesOnFull: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** Opens the store file. Synchronous inside: meant for a thread of its own. `listener` is notified of an upgrade. */
export function openWriter(path: string, listener: UpgradeListener = {}): Writer {
  const db = openForWriting(path, listener);
  const index = collectIndexChanges(db);
  const vectors = prepareVectorWrites(db);
  const small = prepareSmallWrites(db);
  const notes = prepareAnswerNotes(db);
  const retention = prepareRetentionWrites(db);
  const keys = prepareKeyWrites(db);
  const queue = prepareQueueWrites(db);
  const resources = prepareResourceWrites(db, index, vectors, queue, { ...keys, ...notes });
  const webhooks = prepareWebhookWrites(db, queue);
  const chat = prepareChatWrites(db, queue, (file) => small.addFile(file));
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  const savepoint = db.prepare("SAVEPOINT one");
  const release = db.prepare("RELEASE one");
  const undo = db.prepare("ROLLBACK TO one");
  const pageBytes = Number(db.pragma("page_size", { simple: true }));
  const reserve = openReserve(path);
  const inbox: Waiting[] = [];
  let scheduled = false;
  let batches = 0;

  function enqueue<T>(run: () => T, triesOnFull = 0): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      inbox.push({ run, triesOnFull, resolve, reject });
      schedule();
    });
  }

  /** The writes of an object, each a write of its own in the queue. */
  function queued<W extends Record<keyof W, (argument: never) => unknown>>(
    writes: W,
    triesOnFull = 0,
  ): Queued<W> {
    const wrapped = Object.entries<(argument: never) => unknown>(writes).map(([name, write]) => [
      name,
      (argument: never) => enqueue(() => write(argument), triesOnFull),
    ]);
    return Object.fromEntries(wrapped) as Queued<W>; // each write by its own name
  }

  /** Notes a request together with the resource it made or changed. */
  function noted<R extends Parameters<AnswerNotes["resource"]>[0] | undefined>(
    written: R,
    sameTransaction: SameTransaction | undefined,
  ): R {
    if (written !== undefined && sameTransaction?.request !== undefined)
      notes.resource(written, sameTransaction.request);
    return written;
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    // Behind the event loop's turn, in which every message that has arrived is taken into the inbox.
    setImmediate(() => {
      scheduled = false;
      writeBatch(inbox);
      if (inbox.length > 0) schedule();
      if (++batches % CHECKPOINT_EVERY === 0 || inbox.length === 0) checkpoint();
      if (inbox.length === 0) reserve.refill();
    });
  }

  function writeBatch(batch: Waiting[]): void {
    const done: { waiting: Waiting; value: unknown }[] = [];
    if (batch.length === 0) return;
    let begun = false;
    try {
      begin.run();
      begun = true;
      // From here: waiting for the lock may have taken longer than a batch may.
      const until = performance.now() + BATCH_MS_MAX;
      while (batch.length > 0 && done.length < BATCH_WRITES_MAX && performance.now() < until) {
        const waiting = batch.shift();
        if (waiting !== undefined) runOne(waiting, done);
      }
      index.write();
      commit.run();
    } catch (error) {
      index.clear();
      const failure = storeFailure(error, path);
      const stuck = takeBack();
      for (const { waiting } of done) {
        if (stuck === undefined && failure.code === "disk_full" && waiting.triesOnFull > 0)
          writeFromReserve(waiting);
        else waiting.reject(failure);
      }
      // Where no transaction begins, none of those that wait can be written, and trying on would have no end.
      if (!begun) for (const waiting of batch.splice(0)) waiting.reject(failure);
      // The connection is of no more use: its thread ends and is started again.
      if (stuck !== undefined) throw stuck;
      return;
    }
    for (const { waiting, value } of done) waiting.resolve(value as never); // run and resolve come from one enqueue
  }

  /** Takes the transaction back, where there is one; returns why that failed. */
  function takeBack(): Error | undefined {
    try {
      if (db.inTransaction) rollback.run();
      return undefined;
    } catch (error) {
      return storeFailure(error, path);
    }
  }

  /** Runs one write so that its failure takes back its own changes only. Throws when the transaction is lost. */
  function runOne(waiting: Waiting, done: { waiting: Waiting; value: unknown }[]): void {
    let isBegun = false;
    try {
      savepoint.run();
      isBegun = true;
      const value = waiting.run();
      release.run();
      index.settle();
      done.push({ waiting, value });
    } catch (error) {
      index.revert();
      // SQLite itself takes the whole transaction back on some errors (disk full, I/O): all of the batch failed.
      if (!isBegun || !db.inTransaction) {
        done.push({ waiting, value: undefined });
        throw error;
      }
      waiting.reject(storeFailure(error, path));
      undo.run();
      release.run();
    }
  }

  /** Runs a write that frees space alone, with the reserve for its log, and turns what it freed into the next reserve. */
  function writeFromReserve({ triesOnFull, ...waiting }: Waiting): void {
    reserve.release();
    // Only when the reserve alone did not do: a copy that fails half-way has used it up.
    if (triesOnFull < FREEING_TRIES) emptyLog();
    writeBatch([{ ...waiting, triesOnFull: triesOnFull - 1 }]);
    emptyLog();
    reserve.refill();
  }

  /** Copies all of the log into the database and gives its space back to the disk, as far as the disk permits. */
  function emptyLog(): void {
    try {
      db.pragma("wal_checkpoint(TRUNCATE)");
    } catch {
      // As in `checkpoint`: all of the log is read where it is, and the writes report what is wrong.
    }
  }

  /** Copies the log into the database, so that it stays bounded; readers are not disturbed. */
  function checkpoint(): void {
    try {
      // NOOP only looks: how many pages the log holds, and how many of them are copied already.
      const [log] = db.pragma("wal_checkpoint(NOOP)") as [{ log: number; checkpointed: number }];
      const bytes = (log.log - log.checkpointed) * pageBytes;
      if (bytes > (inbox.length > 0 ? WAL_BYTES_MAX : WAL_BYTES_IDLE)) db.pragma("wal_checkpoint(PASSIVE)");
    } catch {
      // What a full disk keeps from being copied stays in the log, where all of it is read, and is copied after a later
      // write. What is wrong with the disk is told by the writes, each to who waits for it.
    }
  }

  return {
    ensureAccount: ({ name, ids }) => enqueue(() => small.ensureAccount(name, ids)),
    putKey: (key) => enqueue(() => keys.putKey(key)),
    changeKey: (change) => enqueue(() => keys.changeKey(change)),
    noteLinkFetch: (fetch) => enqueue(() => keys.noteLinkFetch(fetch)),
    createResource: ({ resource, chunking, sameTransaction }) =>
      enqueue(() => noted(resources.create(resource, chunking), sameTransaction)),
    updateResource: ({ change, chunking, sameTransaction }) =>
      enqueue(() => noted(resources.update(change, chunking, sameTransaction?.job), sameTransaction)),
    enqueueCreate: ({ resource, job, sameTransaction }) =>
      enqueue(() => noted(resources.enqueueCreate(resource, job), sameTransaction)),
    enqueueUpdate: ({ at, job, sameTransaction }) =>
      enqueue(() => noted(resources.enqueueUpdate(at, job), sameTransaction)),
    deleteResource: (at) => enqueue(() => resources.remove(at), FREEING_TRIES),
    addFile: ({ file, sameTransaction }) =>
      enqueue(() => {
        small.addFile(file);
        if (sameTransaction?.thread !== undefined)
          chat.linkImage({ link: sameTransaction.thread, token: file.token });
        if (sameTransaction?.request !== undefined) notes.file(file, sameTransaction.request);
      }),
    ...queued(webhooks),
    ...queued(chat),
    ...queued(queue),
    addQuestion: ({ job, sameTransaction }) =>
      enqueue(() => {
        queue.put(job);
        if (sameTransaction?.request !== undefined)
          notes.question(job.accountId, job.name, sameTransaction.request);
      }),
    ...queued(retention, FREEING_TRIES),
    ...queued({ failJob: resources.failJob }),
    ...queued({ sweep: notes.sweep }),
    ...queued(prepareServingWrites(db)),
    putVectors: (argument) => enqueue(() => vectors.put(argument.fingerprint, argument.vectors)),
    putSentences: ({ fingerprint, chunks }) => enqueue(() => vectors.putSentences(fingerprint, chunks)),
    async close() {
      try {
        while (inbox.length > 0) writeBatch(inbox);
      } finally {
        const failure = new KbsyncError("the store was closed", { code: "store_failed", subject: path });
        for (const waiting of inbox.splice(0)) waiting.reject(failure);
        db.close();
      }
    },
  };
}
