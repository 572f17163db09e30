import type { Tier } from "../../wire/primitives.ts";
import type { SearchResult } from "../../wire/search.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { FoundChunk, LexicalHits, Scope, Store, VectorHit } from "../store/store.ts";
import { answerText } from "./answer-text.ts";
import { fuse, FUSED_DEPTH } from "./fuse.ts";
import { fallingScores, fusedEvidence, lexicalEvidence } from "./score.ts";

/** A question to the knowledge base. */
export interface SearchRequest {
  /** Where to look. A scope that does not exist gives no results: whether it exists is the caller's question. */
  readonly scope: Scope;
  /** Of the collection searched, or of the resource's collection. */
  readonly tier: Tier;
  readonly query: string;
  /** 1 – 100. */
  readonly topK: number;
  /** Results below this score are left out. */
  readonly scoreMin: number | undefined;
}

export interface SearchOutcome {
  /** By descending score, ties by id. */
  readonly results: readonly SearchResult[];
  /** Contents of the results, joined by a blank line. */
  readonly text: string;
}

/** What a search reads of the store. */
export type SearchedStore = Pick<Store, "lexical" | "nearest" | "chunksByRow" | "evidence">;

/**
 * Answers a question: `fastest` from words, the other tiers from words and vectors. Without an embedder, or when it
 * fails, they answer from words too; the state of the model tells it (ingest/model.ts). Scores mean the same in every tier (score.ts).
 */
export async function search(
  store: SearchedStore,
  embedder: Embedder | undefined,
  request: SearchRequest,
): Promise<SearchOutcome> {
  const { scope, query, tier, topK } = request;
  const vector = tier === "fastest" ? undefined : await queryVector(embedder, query);
  const limit = vector === undefined ? topK : Math.max(FUSED_DEPTH, topK);
  const lexical = { scope, query, limit };
  const nearest = vector && { scope, ...vector, limit };

  const [words, vectors] = await Promise.all([store.lexical(lexical), nearest && store.nearest(nearest)]);
  let wanted = bestOf(rank(words, vectors), request);
  let chunks = await store.chunksByRow(
    scope,
    wanted.map(({ row }) => row),
  );
  if (chunks.length < wanted.length) {
    // An update replaced some between the two reads. A resource is found at every moment, so all is read at once now.
    const evidence = await store.evidence({ lexical, nearest });
    wanted = bestOf(rank(evidence.lexical, evidence.nearest), request);
    chunks = evidence.chunks;
  }
  const found = new Map(chunks.map((chunk) => [chunk.row, chunk]));
  const results = wanted
    .flatMap(({ row, score }) => {
      const chunk = found.get(row);
      return chunk === undefined ? [] : resultOf(chunk, score);
    })
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  return { results, text: answerText(results.map(({ payload }) => payload.content)) };
}

interface Ranked {
  readonly row: number;
  readonly score: number;
}

/** By descending score. */
function rank({ hits, ceiling }: LexicalHits, nearest: readonly VectorHit[] | undefined): Ranked[] {
  if (nearest === undefined) {
    const scores = fallingScores(
      hits.map((hit) => ({ rank: hit.bm25, evidence: lexicalEvidence(hit, ceiling) })),
    );
    return hits.map(({ row }, at) => ({ row, score: scores[at] ?? 0 }));
  }
  const lexicalBest = lexicalEvidence(hits[0], ceiling);
  const cosineBest = nearest[0]?.cosine ?? 0;
  const fused = fuse(hits, nearest);
  const scores = fallingScores(
    fused.map(({ mix }) => ({ rank: mix, evidence: fusedEvidence(mix, lexicalBest, cosineBest) })),
  );
  return fused.map(({ row }, at) => ({ row, score: scores[at] ?? 0 }));
}

/** Those that the request asks for. */
function bestOf(ranked: readonly Ranked[], { scoreMin, topK }: SearchRequest): Ranked[] {
  return ranked.filter(({ score }) => score >= (scoreMin ?? 0)).slice(0, topK);
}

interface QueryVector {
  readonly vector: Float32Array;
  readonly fingerprint: string;
}

/** Undefined where there is no model, or it fails. */
async function queryVector(embedder: Embedder | undefined, query: string): Promise<QueryVector | undefined> {
  if (embedder === undefined) return undefined;
  try {
    const [vector] = await embedder.embed([query]);
    return vector && { vector, fingerprint: embedder.fingerprint };
  } catch {
    // The model's own state and the log tell it: a search that can answer from words is no failure.
    return undefined;
  }
}

function resultOf(chunk: FoundChunk, score: number): SearchResult {
  return {
    id: chunk.id,
    version: chunk.version,
    score,
    payload: {
      resourceId: chunk.resourceId,
      collectionId: chunk.collectionId,
      content: chunk.text,
      ownerId: chunk.ownerId,
    },
  };
}
