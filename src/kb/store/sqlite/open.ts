import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { KbsyncError } from "../../../lib/failure.ts";
import { openGate } from "../../../lib/gate.ts";
import { accountOf, deriveMethods, makeMethods, type Inside } from "../methods.ts";
import { openRebuilds } from "../rebuilds.ts";
import type { Store } from "../store.ts";
import { prepareAccountReads } from "./accounts/accounts.ts";
import { prepareSessionReads } from "./accounts/sessions.ts";
import { prepareChatReads } from "./chat/chat-reads.ts";
import { openForReading, type Connection } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { prepareQueueReads } from "./queue/queue.ts";
import { prepareWebhookReads } from "./queue/webhook-reads.ts";
import type { ReaderMethods } from "./reader-worker.ts";
import { prepareFileReads } from "./resources/files.ts";
import { prepareLookups } from "./resources/lookups.ts";
import { startStoreThread, type StoreThreadOptions } from "./thread.ts";
import { prepareServingReads } from "./vectors/serving.ts";
import type { WriterMethods } from "./writer-worker.ts";

/** Reads in the reader's thread at a time: one runs, and the next is there when it ends. */
const READS_WIDTH = 2;
/** Further ones of accounts that have none there: they run between the slices of others' searches. */
const READS_GUESTS = 4;
/** Reads that may wait: more than all requests in flight make together. */
const READS_LINE_MAX = 16_384;

/** Rebuilds are of the whole file, not of an account. */
const WHOLE = "";

export interface SqliteStoreOptions extends StoreThreadOptions {
  /** The database file; a missing folder is created. Undefined: a temporary store, removed when it is closed. */
  readonly path?: string;
  /** Called after the upgrade of a file of an older version, with a message for the log. */
  readonly onUpgraded?: (message: string) => void;
}

/**
 * Opens a Store in one SQLite file. One thread writes and another one searches, so that no long statement runs on the
 * caller's event loop. Lookups of one small row run on the caller's thread, where they cost less than a message.
 * Throws a KbsyncError (`store_damaged`, `store_foreign`, `store_newer`, `store_older`, `store_unreachable`), and leaves
 * the file as it is, if it cannot be used.
 */
export async function openSqliteStore(options: SqliteStoreOptions = {}): Promise<Store> {
  const temporary = options.path === undefined ? mkdtempSync(join(tmpdir(), "kbsync-store-")) : undefined;
  const path = options.path ?? join(temporary ?? "", "kb.sqlite");
  mkdirSync(dirname(path), { recursive: true });

  const writer = startStoreThread<WriterMethods>("writer-worker", path, options);
  const reader = startStoreThread<ReaderMethods>("reader-worker", path, options);
  try {
    const upgraded = await writer.call("open", path);
    if (upgraded !== undefined) options.onUpgraded?.(upgraded);
    await reader.call("open", path);
  } catch (error) {
    await Promise.all([writer.terminate(), reader.terminate()]);
    if (temporary !== undefined) rmSync(temporary, { recursive: true });
    throw error;
  }
  const db = openForReading(path);
  const lookups = deriveMethods(["lookup"], lookupsOf(db), (run) => async (...given) => {
    try {
      return run(...given);
    } catch (error) {
      throw storeFailure(error, path);
    }
  });
  const reading = openGate({
    width: READS_WIDTH,
    guests: READS_GUESTS,
    lineMax: READS_LINE_MAX,
    full: () =>
      new KbsyncError("too many reads of the store are waiting", {
        code: "store_busy",
        subject: path,
        retryable: true,
      }),
  });
  const rebuilds = openRebuilds(() => writer.call("rebuild", undefined));
  const reads = makeMethods(["read", "scan"], (port, name, method) => (...given) => {
    const run = () => reader.call("run", { port, name, given });
    return rebuilds.watch(WHOLE, reading.run(run, { path: [accountOf(method, given)] }));
  });
  const writes = makeMethods(
    ["write", "free"],
    (port, name) =>
      (...given) =>
        writer.call("run", { port, name, given }),
  );
  let closing: Promise<void> | undefined;

  return {
    records: {
      ...lookups.records,
      ...reads.records,
      ...writes.records,
      createResource: async (resource, ...others) => {
        // The caller has the content.
        const created = await writes.records.createResource(resource, ...others);
        return { ...created, content: resource.content };
      },
    },
    queue: { ...lookups.queue, ...reads.queue, ...writes.queue },
    index: {
      ...lookups.index,
      ...reads.index,
      ...writes.index,
      serveComplete: async (fingerprint, tiers, exceptRows) => {
        const scopes = await reader.call("completeScopes", { fingerprint, tiers, exceptRows });
        return scopes.length === 0 ? 0 : writer.call("serve", { fingerprint, scopes });
      },
    },
    scrub: () => rebuilds.watch(WHOLE, writer.call("scrub", undefined)),
    problem: () => writer.problem() ?? reader.problem(),
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    try {
      db.close();
      // The writer closes last, so that SQLite checkpoints the write-ahead log. A thread that ended has closed its connection.
      await reader.close();
      await Promise.all([writer.close(), rebuilds.close()]);
    } catch (error) {
      // A thread that still runs would keep the process alive.
      await Promise.all([writer.terminate(), reader.terminate()]);
      throw error;
    } finally {
      if (temporary !== undefined) rmSync(temporary, { recursive: true });
    }
  }
}

function lookupsOf(db: Connection): Inside<"lookup"> {
  return {
    records: {
      ...prepareLookups(db),
      ...prepareAccountReads(db),
      ...prepareSessionReads(db),
      ...prepareFileReads(db),
      ...prepareWebhookReads(db),
      ...prepareChatReads(db),
    },
    queue: prepareQueueReads(db),
    index: prepareServingReads(db),
  };
}
