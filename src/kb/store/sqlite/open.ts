import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { newHexId } from "../../../lib/ids.ts";
import { Tier } from "../../../wire/primitives.ts";
import type { Store } from "../store.ts";
import { prepareChatReads } from "./chat/chat-reads.ts";
import { openForReading } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { prepareKeyLookups } from "./accounts/key-rows.ts";
import { prepareLookups } from "./resources/lookups.ts";
import { prepareQueueReads } from "./queue/queue-reads.ts";
import type { ReaderMethods } from "./reader-worker.ts";
import { prepareServingReads } from "./vectors/serving.ts";
import { startStoreThread, type StoreThreadOptions } from "./thread.ts";
import { prepareWebhookReads } from "./queue/webhook-reads.ts";
import type { WriterMethods } from "./writer-worker.ts";

export interface SqliteStoreOptions extends StoreThreadOptions {
  /** The database file; a missing folder is created. Undefined: a temporary store, removed when it is closed. */
  readonly path?: string;
  /** Source of new account and collection ids; given by tests. */
  readonly newId?: () => string;
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
  const newId = options.newId ?? (() => newHexId(Date.now()));

  const writer = startStoreThread<WriterMethods>("writer-worker", path, options);
  const reader = startStoreThread<ReaderMethods>("reader-worker", path, options);
  try {
    const upgraded = await writer.call("open", undefined);
    if (upgraded !== undefined) options.onUpgraded?.(upgraded);
    await reader.call("open", undefined);
  } catch (error) {
    await Promise.all([writer.terminate(), reader.terminate()]);
    if (temporary !== undefined) rmSync(temporary, { recursive: true });
    throw error;
  }
  const db = openForReading(path);
  const lookups = prepareLookups(db);
  const queueReads = prepareQueueReads(db);
  const webhooks = prepareWebhookReads(db);
  const keyLookups = prepareKeyLookups(db);
  const chat = prepareChatReads(db);
  const serving = prepareServingReads(db);
  /** Runs a lookup of one small row on this thread, as a promise. */
  const local = async <T>(run: () => T): Promise<T> => {
    try {
      return run();
    } catch (error) {
      throw storeFailure(error, path);
    }
  };
  let closing: Promise<void> | undefined;

  return {
    ensureAccount: (name) =>
      writer.call("ensureAccount", { name, ids: [newId(), ...Tier.options.map(() => newId())] }),
    putKey: (key) => writer.call("putKey", key),
    changeKey: (change) => writer.call("changeKey", change),
    keys: (accountId) => local(() => keyLookups.keys(accountId)),
    accounts: () => local(() => keyLookups.accounts()),
    linkFetch: (accountId, url) => local(() => keyLookups.linkFetch(accountId, url)),
    noteLinkFetch: (fetch) => writer.call("noteLinkFetch", fetch),
    keyByHash: (sha256) => local(() => lookups.keyByHash(sha256)),
    collections: (accountId) => reader.call("collections", accountId),
    owners: (query) => reader.call("owners", query),
    createResource: async (resource, chunking, sameTransaction) => {
      const created = await writer.call("createResource", { resource, chunking, sameTransaction });
      return { ...created, content: resource.content };
    },
    updateResource: (change, chunking, sameTransaction) =>
      writer.call("updateResource", { change, chunking, sameTransaction }),
    deleteResource: (at) => writer.call("deleteResource", at),
    resource: (at) => reader.call("resource", at),
    tierOf: (at) => local(() => lookups.tierOf(at)),
    listResources: (query) => reader.call("listResources", query),
    chunks: (query) => reader.call("chunks", query),
    lexical: (query) => reader.call("lexical", query),
    nearest: (query) => reader.call("nearest", query),
    evidence: (query) => reader.call("evidence", query),
    chunksByRow: (scope, rows) => reader.call("chunksByRow", { scope, rows }),
    addFile: (file, sameTransaction) => writer.call("addFile", { file, sameTransaction }),
    file: (token) => local(() => lookups.file(token)),
    recall: (accountId, key, nowMs) => local(() => lookups.recall(accountId, key, nowMs)),
    enqueueCreate: async (resource, job, sameTransaction) => {
      const queued = await writer.call("enqueueCreate", { resource, job, sameTransaction });
      return { ...queued, content: "" };
    },
    enqueueUpdate: (at, job, sameTransaction) => writer.call("enqueueUpdate", { at, job, sameTransaction }),
    failJob: (job, { code, message }, nowIso) => writer.call("failJob", { job, code, message, nowIso }),
    failedResources: (accountId) => reader.call("failedResources", accountId),
    addEndpoint: (endpoint, endpointsMax) => writer.call("addEndpoint", { endpoint, endpointsMax }),
    changeEndpoint: (change) => writer.call("changeEndpoint", change),
    removeEndpoint: (at) => writer.call("removeEndpoint", at),
    endpoint: (at) => local(() => webhooks.endpoint(at)),
    endpoints: (accountId) => reader.call("endpoints", accountId),
    addDelivery: (delivery) => writer.call("addDelivery", delivery),
    settleDelivery: (job, outcome) => writer.call("settleDelivery", { job, outcome }),
    deadDeliveries: (query) => reader.call("deadDeliveries", query),
    replayDeliveries: (query) => writer.call("replayDeliveries", query),
    addAgent: (agent, agentsMax) => writer.call("addAgent", { agent, agentsMax }),
    changeAgent: (agent) => writer.call("changeAgent", agent),
    removeAgent: (at) => writer.call("removeAgent", at),
    agent: (at) => local(() => chat.agent(at)),
    agents: (accountId) => local(() => chat.agents(accountId)),
    thread: (query) => reader.call("thread", query),
    addTurn: (turn) => writer.call("addTurn", turn),
    addQuestion: (job, sameTransaction) => writer.call("addQuestion", { job, sameTransaction }),
    queue: {
      put: (job) => writer.call("put", job),
      due: (query) => reader.call("due", query),
      after: (query) => reader.call("after", query),
      first: (query) => local(() => queueReads.first(query)),
      lease: (request) => writer.call("lease", request),
      renew: (renewal) => writer.call("renew", renewal),
      complete: (lease) => writer.call("complete", lease),
      postpone: (lease, wait) => writer.call("postpone", { lease, wait }),
      fail: (lease, problem) => writer.call("fail", { lease, problem }),
      release: (worker) => writer.call("release", worker),
      resume: (worker, nowMs, isAlone) => writer.call("resume", { worker, nowMs, isAlone }),
      nextDueMs: (queue, nowMs) => reader.call("nextDueMs", { queue, nowMs }),
      figures: (queue, accountId) => reader.call("queueFigures", { queue, accountId }),
    },
    passage: (at) => reader.call("passage", at),
    purgeThreads: (beforeIso, limit) => writer.call("purgeThreads", { beforeIso, limit }),
    purgeThreadImages: (beforeIso, limit) => writer.call("purgeThreadImages", { beforeIso, limit }),
    deletedResource: (at) => reader.call("deletedResource", at),
    purgeDeleted: (beforeIso, limit) => writer.call("purgeDeleted", { beforeIso, limit }),
    unusedFiles: (beforeIso, limit) => reader.call("unusedFiles", { beforeIso, limit }),
    removeUnusedFile: (token, beforeIso) => writer.call("removeUnusedFile", { token, beforeIso }),
    sweepAnswers: (nowMs, limit) => writer.call("sweep", { nowMs, limit }),
    purgeDead: (beforeMs, limit) => writer.call("purgeDead", { beforeMs, limit }),
    chunksWithoutVector: (fingerprint, tiers, limit, afterRow = -1) =>
      reader.call("chunksWithoutVector", { fingerprint, tiers, limit, afterRow }),
    servingFingerprint: (scope) => local(() => serving.servingFingerprint(scope)),
    servingFingerprints: () => local(() => serving.servingFingerprints()),
    serveComplete: async (fingerprint, tiers, exceptRows) => {
      const scopes = await reader.call("completeScopes", { fingerprint, tiers, exceptRows });
      return scopes.length === 0 ? 0 : writer.call("serve", { fingerprint, scopes });
    },
    dropRetired: (fingerprint, limit) => writer.call("dropRetired", { fingerprint, limit }),
    embeddedChunks: (at, fingerprint) => reader.call("embeddedChunks", { ...at, fingerprint }),
    documentMatches: (query) => reader.call("documentMatches", query),
    sentenceMatches: (query) => reader.call("sentenceMatches", query),
    chunksWithoutSentences: (fingerprint, afterRow, limit) =>
      reader.call("chunksWithoutSentences", { fingerprint, afterRow, limit }),
    putSentences: (fingerprint, chunks) => writer.call("putSentences", { fingerprint, chunks }),
    putVectors: (fingerprint, vectors) => writer.call("putVectors", { fingerprint, vectors }),
    problem: () => writer.problem() ?? reader.problem(),
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    try {
      db.close();
      // The writer closes last, so that SQLite checkpoints the write-ahead log. A thread that ended has closed its connection.
      if (reader.problem() === undefined) await reader.call("close", undefined);
      if (writer.problem() === undefined) await writer.call("close", undefined);
    } finally {
      // A thread that still runs would keep the process alive.
      await Promise.all([writer.terminate(), reader.terminate()]);
      if (temporary !== undefined) rmSync(temporary, { recursive: true });
    }
  }
}
