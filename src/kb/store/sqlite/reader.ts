import { setImmediate } from "node:timers/promises";
import type { WaitingJob } from "../../queue/queue.ts";
import { deriveMethods, type Inside, type MethodsOf } from "../methods.ts";
import type { Scope } from "../search-index.ts";
import { prepareAccountReads } from "./accounts/accounts.ts";
import { prepareChatReads } from "./chat/chat-reads.ts";
import { openForReading, type Connection } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { prepareQueueReads } from "./queue/queue.ts";
import { prepareWebhookReads } from "./queue/webhook-reads.ts";
import { prepareLookups } from "./resources/lookups.ts";
import { prepareFileReads } from "./resources/files.ts";
import { prepareSurroundings } from "./resources/surroundings.ts";
import { prepareDocumentList } from "./scopes/document-list.ts";
import { prepareScopes } from "./scopes/scopes.ts";
import { preparePending } from "./scopes/pending.ts";
import { prepareSearches } from "./searches.ts";
import { prepareSentenceReads } from "./vectors/sentence-reads.ts";
import { prepareServingReads, type CompleteScope, type ServingReads } from "./vectors/serving.ts";

type Reads = MethodsOf<"read" | "scan">;

/** The reads of a store file. */
export interface Reader extends Pick<Reads, "records" | "queue"> {
  readonly index: Omit<Reads["index"], "serveComplete">;
  /** Scans all chunks of these tiers for the scopes that `serveComplete` may switch. */
  completeScopes(
    this: void,
    query: Omit<Parameters<ServingReads["completeScope"]>[0], "afterRow">,
  ): Promise<readonly CompleteScope[]>;
  close(this: void): void;
}

/** Time after which a scan of all chunks lets other reads run. */
const SCAN_MS = 10;

/** Opens the store file, which the writer has created. Blocks its thread, so it needs one of its own. */
export function openReader(path: string): Reader {
  const db = openForReading(path);
  const lookups = prepareLookups(db);
  const scopes = prepareScopes(db);
  const queue = prepareQueueReads(db);
  const sentences = prepareSentenceReads(db);
  const serving = prepareServingReads(db);
  const surroundings = prepareSurroundings(db);
  const begin = db.prepare("BEGIN");
  const commit = db.prepare("COMMIT");

  /** Wraps a read so that its statements all see one snapshot. */
  const read =
    <A extends readonly unknown[], T>(run: (...given: A) => T): ((...given: A) => T) =>
    (...given) => {
      try {
        begin.run();
        return run(...given);
      } catch (error) {
        throw storeFailure(error, path);
      } finally {
        if (db.inTransaction) commit.run();
      }
    };

  const searches = prepareSearches(db, read, scopes, lookups, sentences);
  const completeScope = read(serving.completeScope);
  const duePart = read(queue.duePart);
  const pending = read(preparePending(db, scopes));
  const listDocuments = read(prepareDocumentList(db, scopes));
  const findScope = read((scope: Scope) => scopes.find(scope));
  const inSnapshots = deriveMethods(
    ["read"],
    readsOf(db, lookups, scopes, queue, sentences, serving),
    (run) =>
      async (...given) =>
        read(run)(...given),
  );

  return {
    records: inSnapshots.records,
    queue: {
      ...inSnapshots.queue,
      due: (query) => dueJobs((afterLine) => duePart({ ...query, afterLine })),
    },
    index: {
      ...inSnapshots.index,
      ...searches,
      pending: async (query) => {
        for (;;) {
          const found = pending(query);
          if (found !== undefined) return found;
          await setImmediate();
        }
      },
      documents: async (query) => {
        const list = listDocuments(query);
        const step = read(list.step);
        await scan(0, () => (step() ? 0 : undefined));
        return read(list.page)();
      },
      surroundings: async (query) => {
        const { scope, refs } = query;
        const target = findScope(scope);
        if (target === undefined) return [];
        const found = surroundings(target.range, query);
        const add = read((ref: number) => found.add(ref));
        await scan(0, (at) => {
          const ref = refs[at];
          if (ref !== undefined) add(ref);
          return ref === undefined ? undefined : at + 1;
        });
        return found.result();
      },
    },
    completeScopes: async (query) => {
      const found: CompleteScope[] = [];
      await scan(-1, (afterRow) => {
        const step = completeScope({ ...query, afterRow });
        if (step.scope !== undefined) found.push(step.scope);
        return step.checkedTo;
      });
      return found;
    },
    close: () => {
      db.close();
    },
  };
}

/** Returns the reads whose statements share one snapshot each. */
function readsOf(
  db: Connection,
  lookups: ReturnType<typeof prepareLookups>,
  scopes: ReturnType<typeof prepareScopes>,
  queue: ReturnType<typeof prepareQueueReads>,
  sentences: ReturnType<typeof prepareSentenceReads>,
  serving: ServingReads,
): Inside<"read"> {
  return {
    records: {
      ...lookups,
      ...prepareWebhookReads(db),
      ...prepareChatReads(db),
      ...prepareAccountReads(db),
      ...prepareFileReads(db),
    },
    queue,
    index: {
      embeddingScopes: serving.embeddingScopes,
      documentsLacking: serving.documentsLacking,
      chunksLacking: serving.chunksLacking,
      foundChunks: (scope, refs) => {
        const target = scopes.find(scope);
        return target === undefined ? [] : lookups.foundChunks(target.range, refs);
      },
      sentenceMatches: ({ scope, fingerprint, vector, refs }) => {
        const target = scopes.find(scope);
        return target === undefined ? [] : sentences.matches(target.range, fingerprint, vector, refs);
      },
    },
  };
}

/** Reads the jobs that are due part by part: an account may have thousands of lines, and other reads run in between. */
async function dueJobs(
  readPart: (afterLine: string) => ReturnType<ReturnType<typeof prepareQueueReads>["duePart"]>,
): Promise<WaitingJob[]> {
  let { jobs, lastLine } = readPart("");
  const found = [...jobs];
  while (lastLine !== undefined) {
    await setImmediate();
    ({ jobs, lastLine } = readPart(lastLine));
    found.push(...jobs);
  }
  return found;
}

/** Calls `step` for one row after another; each call returns the row to continue after, or undefined at the end. */
async function scan(from: number, step: (afterRow: number) => number | undefined): Promise<void> {
  let until = performance.now() + SCAN_MS;
  for (let after: number | undefined = from; after !== undefined; after = step(after)) {
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SCAN_MS;
  }
}
