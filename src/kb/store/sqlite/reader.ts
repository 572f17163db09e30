import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { queryWords } from "../../lexical/word-match.ts";
import type { WaitingJob } from "../../queue/queue.ts";
import { deriveMethods, type Inside, type MethodsOf } from "../methods.ts";
import type { DocumentQuery, Evidence, EvidenceQuery, ChunkContext, Scope } from "../search-index.ts";
import { prepareOwners } from "./accounts/owner-reads.ts";
import { prepareChatReads } from "./chat/chat-reads.ts";
import { openForReading } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";
import { prepareQueueReads } from "./queue/queue-reads.ts";
import { prepareWebhookReads } from "./queue/webhook-reads.ts";
import { prepareLookups } from "./resources/lookups.ts";
import { prepareUnusedFiles } from "./resources/retention.ts";
import { prepareScopes, type SearchTarget } from "./scopes/scopes.ts";
import { prepareSentenceReads } from "./vectors/sentence-reads.ts";
import { prepareServingReads, type CompleteScope, type ServingReads } from "./vectors/serving.ts";
import { prepareVectors } from "./vectors/vectors.ts";
import { prepareDocumentWords } from "./words/document-words.ts";
import { prepareLexical } from "./words/lexical.ts";
import { preparePostings } from "./words/postings.ts";
import { prepareQueryTerms } from "./words/query-terms.ts";

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

/**
 * Slices that a search may read before it reads the rest in one go: far more than a million chunks need. Without the bound,
 * searches that together need more memory than the lists may have would evict each other's lists for ever.
 */
const SLICES_MAX = 2000;
/** Time after which a scan of all chunks lets other reads run. */
const SCAN_MS = 10;

/** Opens the store file, which the writer has created. Blocks its thread, so it needs one of its own. */
export function openReader(path: string): Reader {
  const db = openForReading(path);
  const lookups = prepareLookups(db);
  const scopes = prepareScopes(db);
  const postings = preparePostings(db);
  const queryTerms = prepareQueryTerms(db, postings);
  const lexical = prepareLexical(db, postings, queryTerms);
  const documentWords = prepareDocumentWords(db, queryTerms);
  const vectors = prepareVectors(db);
  const queue = prepareQueueReads(db);
  const sentences = prepareSentenceReads(db);
  const serving = prepareServingReads(db);
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

  /**
   * Repeats a search, each time on one snapshot, until all that it needs is in memory. Other reads run between the attempts.
   */
  const inSlices = <Q extends { readonly scope: Scope }, T>(
    nothing: (query: Q) => T,
    search: (target: SearchTarget, query: Q, isLast: boolean) => T | undefined,
  ) => {
    const attempt = read((query: Q, isLast: boolean) => {
      postings.beginSlice(isLast);
      const target = scopes.find(query.scope);
      return target === undefined ? nothing(query) : search(target, query, isLast);
    });
    return async (query: Q): Promise<T> => {
      for (let slice = 1; slice < SLICES_MAX; slice++) {
        const found = attempt(query, false);
        if (found !== undefined) return found;
        await setImmediate();
      }
      const found = attempt(query, true);
      assert(found !== undefined, "a search without a bound did not finish");
      return found;
    };
  };

  const evidence = (target: SearchTarget, query: EvidenceQuery, isLast: boolean): Evidence | undefined => {
    const { range, chunks: scopeChunks } = target;
    const { fingerprint = "", vector = new Float32Array(), limit = 0 } = query.nearest ?? {};
    const nearest = query.nearest && vectors.nearest(target, fingerprint, vector, limit, isLast);
    if (query.nearest !== undefined && nearest === undefined) return undefined;
    const words = queryWords(query.lexical.query);
    const found = lexical.search(target, words, query.lexical.limit);
    if (found === undefined) return undefined;
    const near = new Set(nearest?.map(({ ref }) => ref));
    const hits = new Set(found.hits.map(({ ref }) => ref));
    const first = found.hits.slice(0, query.depth).map(({ ref }) => ref);
    const notNear = first.filter((ref) => !near.has(ref));
    const onlyNear = [...near].filter((ref) => !hits.has(ref));
    return {
      lexical: found,
      scopeChunks,
      nearest,
      others: query.nearest ? sentences.cosines(range, fingerprint, vector, notNear) : [],
      nearestMatches: lexical.matches(target, words, onlyNear),
      chunks: lookups.foundChunks(range, query.withChunks ? [...hits, ...onlyNear] : []),
    };
  };
  const noEvidence = ({ nearest }: EvidenceQuery): Evidence => ({
    lexical: { hits: [], ceiling: 0 },
    scopeChunks: 0,
    nearest: nearest && [],
    others: [],
    nearestMatches: [],
    chunks: [],
  });

  const lackingVector = read(serving.lackingVector);
  const completeScope = read(serving.completeScope);
  const duePart = read(queue.duePart);
  /** Calls `step` for one row after another; each call returns the row to continue after, or undefined at the end. */
  const scan = async (from: number, step: (afterRow: number) => number | undefined): Promise<void> => {
    let until = performance.now() + SCAN_MS;
    for (let after: number | undefined = from; after !== undefined; after = step(after)) {
      if (performance.now() < until) continue;
      await setImmediate();
      until = performance.now() + SCAN_MS;
    }
  };

  const reads: Inside<"read"> = {
    records: {
      ...lookups,
      ...prepareWebhookReads(db),
      ...prepareChatReads(db),
      owners: prepareOwners(db),
      unusedFiles: prepareUnusedFiles(db),
    },
    queue,
    index: {
      embeddedChunks: serving.embeddedChunks,
      foundChunks: (scope, refs) => {
        const target = scopes.find(scope);
        return target === undefined ? [] : lookups.foundChunks(target.range, refs);
      },
      sentenceMatches: ({ scope, fingerprint, vector, refs }) => {
        const target = scopes.find(scope);
        return target === undefined ? [] : sentences.matches(target.range, fingerprint, vector, refs);
      },
      chunksWithoutSentences: (fingerprint, limit, after = -1) =>
        sentences.missing(fingerprint, after, limit),
    },
  };
  const inSnapshots = deriveMethods(
    ["read"],
    reads,
    (run) =>
      async (...given) =>
        read(run)(...given),
  );

  return {
    records: inSnapshots.records,
    queue: {
      ...inSnapshots.queue,
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
    },
    index: {
      ...inSnapshots.index,
      evidence: inSlices(noEvidence, evidence),
      documentMatches: inSlices(
        (_query: DocumentQuery) => [],
        (target, { query, refs }) => documentWords(target, query, refs),
      ),
      chunksWithoutVector: async (fingerprint, tiers, limit, from = -1) => {
        const found: ChunkContext[] = [];
        await scan(from, (afterRow) => {
          const step = lackingVector({ fingerprint, tiers, limit: limit - found.length, afterRow });
          found.push(...step.chunks);
          return step.checkedTo;
        });
        return found;
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
