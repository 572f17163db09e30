import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { queryWords } from "../../lexical/word-match.ts";
import type { DocumentMatch, DocumentQuery } from "../documents.ts";
import type { OwnerCounts, OwnersQuery } from "../owners.ts";
import type { RowsQuery, SentenceMatch } from "../sentences.ts";
import type {
  Evidence,
  EvidenceQuery,
  CollectionRecord,
  FoundChunk,
  LexicalHits,
  LexicalQuery,
  ListPage,
  ListQuery,
  NearestQuery,
  Resource,
  ResourceKey,
  RowContext,
  RowText,
  Scope,
  VectorHit,
  VersionChunks,
} from "../records.ts";
import type { DueQuery, WaitingJob } from "../../queue/queue.ts";
import { prepareChatReads, type ChatReads } from "./chat/chat-reads.ts";
import { openForReading } from "./database/connection.ts";
import { prepareDocumentWords } from "./words/document-words.ts";
import { storeFailure } from "./database/failures.ts";
import { prepareLexical } from "./words/lexical.ts";
import { prepareQueueReads, type QueueReads } from "./queue/queue-reads.ts";
import { prepareLookups } from "./resources/lookups.ts";
import { prepareOwners } from "./accounts/owner-reads.ts";
import { preparePostings } from "./words/postings.ts";
import { prepareQueryTerms } from "./words/query-terms.ts";
import { prepareUnusedFiles } from "./resources/retention.ts";
import { prepareScopes, type SearchTarget } from "./scopes/scopes.ts";
import { prepareSentenceReads } from "./vectors/sentence-reads.ts";
import { prepareServingReads, type CompleteScope, type ServingReads } from "./vectors/serving.ts";
import { prepareVectors } from "./vectors/vectors.ts";
import { prepareWebhookReads, type WebhookReads } from "./queue/webhook-reads.ts";

/**
 * The reads of a store file. Each method reads one snapshot, and takes one argument, so that it can be called on a worker
 * thread.
 */
export type Searcher = {
  collections(accountId: string): CollectionRecord[];
  resource(at: ResourceKey): Resource | undefined;
  deletedResource(at: ResourceKey): Resource | undefined;
  listResources(query: ListQuery): ListPage;
  chunks(at: ResourceKey): VersionChunks | undefined;
  chunksByRow(argument: { scope: Scope; rows: readonly number[] }): FoundChunk[];
  lexical(query: LexicalQuery): Promise<LexicalHits>;
  nearest(query: NearestQuery): Promise<VectorHit[]>;
  evidence(query: EvidenceQuery): Promise<Evidence>;
  /** Scans all chunks in steps, and lets other reads run in between; so does `completeScopes`. */
  chunksWithoutVector(argument: Parameters<ServingReads["lackingVector"]>[0]): Promise<RowContext[]>;
  completeScopes(
    argument: Omit<Parameters<ServingReads["completeScope"]>[0], "afterRow">,
  ): Promise<CompleteScope[]>;
  embeddedChunks: ServingReads["embeddedChunks"];
  owners(query: OwnersQuery): OwnerCounts[];
  documentMatches(query: DocumentQuery): Promise<DocumentMatch[]>;
  sentenceMatches(query: RowsQuery): SentenceMatch[];
  chunksWithoutSentences(argument: { fingerprint: string; afterRow: number; limit: number }): RowText[];
  unusedFiles(argument: { beforeIso: string; limit: number }): string[];
  thread: ChatReads["thread"];
  due(query: DueQuery): Promise<readonly WaitingJob[]>;
  after: QueueReads["after"];
  nextDueMs: QueueReads["nextDueMs"];
  queueFigures: QueueReads["queueFigures"];
  passage: ChatReads["passage"];
  failedResources(accountId: string | undefined): number;
  deadDeliveries: WebhookReads["deadDeliveries"];
  endpoints: WebhookReads["endpoints"];
  close(): void;
};

/**
 * Slices that a search may read before it reads the rest in one go: far more than a million chunks need. Without the bound,
 * searches that together need more memory than the lists may have would evict each other's lists for ever.
 */
const SLICES_MAX = 2000;
/** Time after which a scan of all chunks lets other reads run. */
const SCAN_MS = 10;

/** Opens the store file, which the writer has created. Blocks its thread, so it needs one of its own. */
export function openSearcher(path: string): Searcher {
  const db = openForReading(path);
  const lookups = prepareLookups(db);
  const scopes = prepareScopes(db);
  const postings = preparePostings(db);
  const queryTerms = prepareQueryTerms(db, postings);
  const lexical = prepareLexical(db, postings, queryTerms);
  const documentWords = prepareDocumentWords(db, queryTerms);
  const vectors = prepareVectors(db);
  const webhooks = prepareWebhookReads(db);
  const chat = prepareChatReads(db);
  const queue = prepareQueueReads(db);
  const unusedFiles = prepareUnusedFiles(db);
  const sentences = prepareSentenceReads(db);
  const serving = prepareServingReads(db);
  const begin = db.prepare("BEGIN");
  const commit = db.prepare("COMMIT");

  /** Runs a read whose statements all see one snapshot. */
  function read<A, T>(run: (argument: A) => T): (argument: A) => T {
    return (argument) => {
      try {
        begin.run();
        return run(argument);
      } catch (error) {
        throw storeFailure(error, path);
      } finally {
        if (db.inTransaction) commit.run();
      }
    };
  }

  const chunksByRow = ({ scope, rows }: { scope: Scope; rows: readonly number[] }): FoundChunk[] => {
    const target = scopes.find(scope);
    return target === undefined ? [] : lookups.chunksByRow(target.range, rows);
  };
  const byWords = (
    target: SearchTarget,
    { query, limit }: EvidenceQuery["lexical"],
  ): LexicalHits | undefined => lexical.search(target, queryWords(query), limit);
  const byVector = (
    target: SearchTarget,
    { fingerprint, vector, limit }: NonNullable<EvidenceQuery["nearest"]>,
    isLast: boolean,
  ): VectorHit[] | undefined => vectors.nearest(target, fingerprint, vector, limit, isLast);
  const evidence = (target: SearchTarget, query: EvidenceQuery, isLast: boolean): Evidence | undefined => {
    const nearest = query.nearest && byVector(target, query.nearest, isLast);
    if (query.nearest !== undefined && nearest === undefined) return undefined;
    const words = queryWords(query.lexical.query);
    const found = lexical.search(target, words, query.lexical.limit);
    if (found === undefined) return undefined;
    const near = new Set(nearest?.map(({ row }) => row));
    const hits = new Set(found.hits.map(({ row }) => row));
    const first = found.hits.slice(0, query.depth).map(({ row }) => row);
    const others =
      query.nearest &&
      sentences.cosines(
        target.range,
        query.nearest.fingerprint,
        query.nearest.vector,
        first.filter((row) => !near.has(row)),
      );
    const onlyNear = [...near].filter((row) => !hits.has(row));
    const nearestMatches = lexical.matches(target, words, onlyNear);
    const rows = query.withChunks ? [...hits, ...onlyNear] : [];
    const chunks = lookups.chunksByRow(target.range, rows);
    const scopeChunks = target.chunks;
    return { lexical: found, scopeChunks, nearest, others: others ?? [], nearestMatches, chunks };
  };

  /**
   * Repeats a search, each time on one snapshot, until all that it needs is in memory. Other reads run between the attempts.
   */
  const inSlices = <A extends { readonly scope: Scope }, T>(
    nothing: (argument: A) => T,
    search: (target: SearchTarget, argument: A, isLast: boolean) => T | undefined,
  ) => {
    const attempt = read(({ argument, isLast }: { argument: A; isLast: boolean }) => {
      postings.beginSlice(isLast);
      const target = scopes.find(argument.scope);
      return target === undefined ? nothing(argument) : search(target, argument, isLast);
    });
    return async (argument: A): Promise<T> => {
      for (let slice = 1; slice < SLICES_MAX; slice++) {
        const found = attempt({ argument, isLast: false });
        if (found !== undefined) return found;
        await setImmediate();
      }
      const found = attempt({ argument, isLast: true });
      assert(found !== undefined, "a search without a bound did not finish");
      return found;
    };
  };

  const lackingVector = read(serving.lackingVector);
  const completeScope = read(serving.completeScope);
  /** Calls `step` for one row after another; each call returns the row to continue after, or undefined at the end. */
  const scan = async (from: number, step: (afterRow: number) => number | undefined): Promise<void> => {
    let until = performance.now() + SCAN_MS;
    for (let after: number | undefined = from; after !== undefined; after = step(after)) {
      if (performance.now() < until) continue;
      await setImmediate();
      until = performance.now() + SCAN_MS;
    }
  };
  const duePart = read(queue.duePart);

  return {
    collections: read(lookups.collections),
    resource: read(lookups.resource),
    deletedResource: read(lookups.deletedResource),
    listResources: read(lookups.listResources),
    chunks: read(lookups.chunks),
    chunksByRow: read(chunksByRow),
    lexical: inSlices((_query: LexicalQuery) => ({ hits: [], ceiling: 0 }), byWords),
    nearest: inSlices((_query: NearestQuery) => [], byVector),
    evidence: inSlices(
      ({ nearest }: EvidenceQuery) => ({
        lexical: { hits: [], ceiling: 0 },
        scopeChunks: 0,
        nearest: nearest && [],
        others: [],
        nearestMatches: [],
        chunks: [],
      }),
      evidence,
    ),
    documentMatches: inSlices(
      (_query: DocumentQuery) => [],
      (target, { query, rows }) => documentWords(target, query, rows),
    ),
    chunksWithoutVector: async (argument) => {
      const found: RowContext[] = [];
      await scan(argument.afterRow, (afterRow) => {
        const step = lackingVector({ ...argument, limit: argument.limit - found.length, afterRow });
        found.push(...step.chunks);
        return step.checkedTo;
      });
      return found;
    },
    completeScopes: async (argument) => {
      const found: CompleteScope[] = [];
      await scan(-1, (afterRow) => {
        const step = completeScope({ ...argument, afterRow });
        if (step.scope !== undefined) found.push(step.scope);
        return step.checkedTo;
      });
      return found;
    },
    embeddedChunks: read(serving.embeddedChunks),
    owners: read(prepareOwners(db)),
    sentenceMatches: read(({ scope, fingerprint, vector, rows }) => {
      const target = scopes.find(scope);
      return target === undefined ? [] : sentences.matches(target.range, fingerprint, vector, rows);
    }),
    chunksWithoutSentences: read(({ fingerprint, afterRow, limit }) =>
      sentences.missing(fingerprint, afterRow, limit),
    ),
    unusedFiles: read(unusedFiles),
    thread: read(chat.thread),
    due: async (query) => {
      const found: WaitingJob[] = [];
      let { jobs: due, lastLine } = duePart({ ...query, afterLine: "" });
      found.push(...due);
      while (lastLine !== undefined) {
        // An account may have thousands of lines: other reads run in between.
        await setImmediate();
        ({ jobs: due, lastLine } = duePart({ ...query, afterLine: lastLine }));
        found.push(...due);
      }
      return found;
    },
    after: read(queue.after),
    nextDueMs: read(queue.nextDueMs),
    queueFigures: read(queue.queueFigures),
    passage: read(chat.passage),
    failedResources: read(lookups.failedResources),
    deadDeliveries: read(webhooks.deadDeliveries),
    endpoints: read(webhooks.endpoints),
    close: () => {
      db.close();
    },
  };
}
