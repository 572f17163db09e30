import { oneLine } from "../../lib/one-line.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { FoundResult } from "../../wire/answers.ts";
import type { Embedder } from "../embed/embedder.ts";
import { queryWords } from "../lexical/word-match.ts";
import type { Store } from "../store/store.ts";
import type { Evidence, FoundChunk, LexicalHit, Scope, VectorHit } from "../store/records.ts";
import { mixDocuments, type WordRanked } from "./documents.ts";
import { fuse, FUSED_DEPTH } from "./fuse.ts";
import { mixIn, RERANKED_DEPTH, SENTENCE_SHARE, typical } from "./rerank.ts";
import type { Reranker } from "./reranker.ts";
import {
  judgedScore,
  movedMaxOf,
  scoreOf,
  shownScores,
  type ChunkEvidence,
  type ScoredHit,
} from "./score.ts";

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
  readonly results: readonly FoundResult[];
  /** Contents of the results, joined by a blank line. */
  readonly text: string;
}

/** What a search reads of the store. */
export type SearchedStore = Pick<Store, "chunksByRow" | "documentMatches" | "evidence" | "sentenceMatches">;

/**
 * Hits by words that `high_accuracy` looks at: what is near by meaning and only this far down by words has its BM25 in the
 * mix as well. Nothing that neither way has among its first FUSED_DEPTH comes in: that lowered recall.
 */
const DEEP_WORDS = 300;

/**
 * Answers a question: `fastest` from words; `moderate` from words and vectors, fused; `high_accuracy` from a deeper look at the words, the
 * best of the fused list put in order once more by a reranking model, or else by the best sentence of each. Without an
 * embedder, or when it fails, they answer from words too; the state of the model tells it (ingest/model.ts). A chunk whose
 * sentences have no vectors yet keeps its fused place. What there is no evidence for is no result; scores mean the same in every
 * tier (score.ts).
 */
export async function search(
  store: SearchedStore,
  embedder: Embedder | undefined,
  request: SearchRequest,
  reranker?: Judge,
): Promise<SearchOutcome> {
  const { scope, query, tier, topK } = request;
  const vector = tier === "fastest" ? undefined : await queryVector(embedder, query);
  const isDeep = tier === "high_accuracy";
  // The same candidates for every top_k, so that a smaller one gives the beginning of a larger one.
  const limit = FUSED_DEPTH;
  const lexical = { query, limit: isDeep ? DEEP_WORDS : limit };
  const nearest = vector && { ...vector, limit };
  const ask = { scope, lexical, nearest, depth: limit };
  const { total } = queryWords(query);
  const ranked = async (evidence: Evidence): Promise<Scored[]> => {
    const hits = candidates(evidence, total, limit);
    const movedMax = movedMaxOf(evidence.scopeChunks);
    if (!isDeep) return bestOf(scored(hits, movedMax), request);
    const judged = reranker && (await judgements(store, reranker, request, hits));
    if (judged !== undefined) return bestOf(byJudgements(hits, judged, total), request);
    return bestOf(scored(await bySentences(store, request, hits, total, vector), movedMax), request);
  };

  let wanted = await ranked(await store.evidence({ ...ask, withChunks: false }));
  let chunks = await store.chunksByRow(
    scope,
    wanted.map(({ row }) => row),
  );
  if (chunks.length < wanted.length) {
    // An update replaced some between the two reads. A resource is found at every moment, so all is read at once now.
    const evidence = await store.evidence({ ...ask, withChunks: true });
    wanted = await ranked(evidence);
    chunks = evidence.chunks;
  }
  const found = new Map(chunks.map((chunk) => [chunk.row, chunk]));
  const results = wanted
    .flatMap(({ row, score }) => {
      const chunk = found.get(row);
      return chunk === undefined ? [] : resultOf(chunk, score);
    })
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, topK);
  return { results, text: answerText(results.map(({ payload }) => payload.content)) };
}

/** The first hits by words, and of the others those that are near by meaning. */
function foundHits(
  hits: readonly LexicalHit[],
  nearest: readonly VectorHit[],
  depth: number,
): readonly LexicalHit[] {
  const near = new Set(nearest.map(({ row }) => row));
  return hits.filter(({ row }, at) => at < depth || near.has(row));
}

/** What a search asks of a reranking model. */
type Judge = Pick<Reranker, "judge">;

/**
 * Judgements of a reranking model for the best hits. It reads query and text together, and its judgement depends on nothing else.
 * Undefined where it does not answer.
 */
async function judgements(
  store: SearchedStore,
  reranker: Judge,
  { scope, query }: SearchRequest,
  hits: readonly Candidate[],
): Promise<ReadonlyMap<number, number> | undefined> {
  const rows = hits.slice(0, RERANKED_DEPTH).map(({ row }) => row);
  const chunks = await store.chunksByRow(scope, rows);
  const judged = await reranker.judge(
    query,
    chunks.map(({ text }) => text),
  );
  if (judged === undefined) return undefined;
  const byRow = new Map<number, number>();
  for (const [at, { row }] of chunks.entries()) {
    const judgement = judged[at];
    if (judgement !== undefined) byRow.set(row, judgement);
  }
  return byRow;
}

/** By descending score. What the model did not judge is no result: it would have another score in a collection where it is judged. */
function byJudgements(
  hits: readonly Candidate[],
  judged: ReadonlyMap<number, number>,
  total: number,
): Scored[] {
  return hits
    .flatMap(({ row, score }) => {
      const judgement = judged.get(row);
      return judgement === undefined ? [] : [{ row, score: judgedScore(score, judgement, total) }];
    })
    .sort((a, b) => b.score - a.score);
}

/** Reorders the hits by their documents and by the best sentence of each. The sentence is evidence, so that it counts in the score too. */
async function bySentences(
  store: SearchedStore,
  { scope, query }: SearchRequest,
  hits: readonly Candidate[],
  total: number,
  vector: QueryVector | undefined,
): Promise<readonly Candidate[]> {
  const rows = hits.map(({ row }) => row);
  const [documents, matches] = await Promise.all([
    // Within one document it has the same to say of every chunk.
    "resourceId" in scope ? [] : store.documentMatches({ scope, query, rows: rows.slice(0, RERANKED_DEPTH) }),
    vector === undefined ? [] : store.sentenceMatches({ scope, ...vector, rows }),
  ]);
  const cosines = new Map(matches.map(({ row, cosine }) => [row, Math.max(0, cosine)]));
  const owned = hits.map((hit) => {
    const sentence = cosines.get(hit.row);
    if (sentence === undefined || hit.cosine === undefined) return hit;
    const cosine = (1 - SENTENCE_SHARE) * hit.cosine + SENTENCE_SHARE * sentence;
    return { ...hit, score: scoreOf({ match: hit.match, total, cosine }) };
  });
  return mixIn(mixDocuments(owned, documents), cosines, SENTENCE_SHARE, typical(cosines));
}

/** A hit with its own score. */
type Candidate = WordRanked & ScoredHit & Pick<ChunkEvidence, "match" | "cosine">;

interface Scored {
  readonly row: number;
  readonly score: number;
}

/** What there is evidence for, by descending mix; of words alone, where there are no vectors. */
function candidates(
  { lexical, nearest, others, nearestMatches }: Evidence,
  total: number,
  depth: number,
): Candidate[] {
  const hits = nearest === undefined ? lexical.hits : foundHits(lexical.hits, nearest, depth);
  const matchOf = new Map([...hits, ...nearestMatches].map(({ row, match }) => [row, match]));
  return fuse(hits, nearest ?? [], others, depth)
    .map((fused) => {
      const match = matchOf.get(fused.row) ?? NO_WORDS;
      return Object.assign(fused, { match, score: scoreOf({ match, total, cosine: fused.cosine }) });
    })
    .filter(({ score }) => score > 0);
}

const NO_WORDS = { matched: 0, strength: 0 };

/** By descending score. Among equal mixes the stronger evidence goes first: their scores must not depend on which was stored first. */
function scored(hits: readonly Candidate[], movedMax: number): Scored[] {
  const ranking = hits.toSorted((a, b) => b.mix - a.mix || b.score - a.score || a.row - b.row);
  const scores = shownScores(ranking, movedMax);
  return ranking.map(({ row }, at) => ({ row, score: scores[at] ?? 0 })).sort((a, b) => b.score - a.score);
}

/** Those that the request asks for, and those that are as good as the last of them: among these the ids decide. */
function bestOf(ranked: readonly Scored[], { scoreMin, topK }: SearchRequest): Scored[] {
  const least = Math.max(scoreMin ?? 0, ranked[topK - 1]?.score ?? 0);
  return ranked.filter(({ score }) => score >= least);
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

function resultOf(chunk: FoundChunk, score: number): FoundResult {
  return {
    id: chunk.id,
    version: chunk.version,
    score,
    payload: {
      resourceId: chunk.resourceId,
      collectionId: chunk.collectionId,
      content: chunk.text,
      ownerId: chunk.ownerId,
      title: chunk.title,
      headings: [...chunk.headings],
      path: [chunk.title, ...chunk.headings].map(oneLine).join(" > "),
      ...(chunk.before !== undefined && { before: chunk.before }),
      ...(chunk.after !== undefined && { after: chunk.after }),
    },
  };
}

/** The `text` of a search answer: the contents in result order, joined by a blank line; empty without results. */
function answerText(contents: readonly string[]): string {
  return contents.join("\n\n");
}
