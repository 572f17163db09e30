import type { Tier } from "../../wire/primitives.ts";
import type { FoundResult } from "../../wire/answers.ts";
import type { SearchFallback } from "../../wire/search.ts";
import type { Embedder } from "../embed/embedder.ts";
import { queryWords } from "../lexical/word-match.ts";
import type { QueryWords } from "../lexical/word-match.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { Index, Evidence, FoundChunk, LexicalHit, Scope, VectorHit } from "../store/search-index.ts";
import { mixDocuments, type WordRanked } from "./documents.ts";
import { fuse, FUSED_DEPTH, lexicalShare } from "./fuse.ts";
import { pathOf, positionOf } from "./position.ts";
import { blend, meanJudgement, RERANKED_DEPTH, SENTENCE_SHARE } from "./rerank.ts";
import type { Reranker } from "./reranker.ts";
import {
  judgedScore,
  reportedScores,
  scoreOf,
  shiftMaxOf,
  type ChunkEvidence,
  type ScoredHit,
} from "./score.ts";
import { mixTexts } from "./text-evidence.ts";

/** A search of one scope. */
export interface SearchRequest {
  /** A scope that does not exist gives no results; the caller checks whether it exists. */
  readonly scope: Scope;
  /** Tier of the collection searched, or of the resource's collection. */
  readonly tier: Tier;
  readonly query: string;
  /** 1 – 100. */
  readonly topK: number;
  /** Omits results below this score. */
  readonly scoreMin: number | undefined;
}

export interface SearchOutcome {
  /** By descending score, ties by id. */
  readonly results: readonly FoundResult[];
  /** Contents of the results, joined by a blank line. */
  readonly text: string;
  /** The chunks of the results, in the same order. */
  readonly chunks: readonly FoundChunk[];
  /** Absent if the search did all that its tier promises. */
  readonly fallback?: SearchFallback;
}

/** The part of the index that a search reads. */
export type SearchedIndex = Pick<Index, "foundChunks" | "documentMatches" | "evidence" | "sentenceMatches">;

/**
 * Depth of the lexical search in `high_accuracy`: a chunk that is near by meaning contributes its BM25 down to this rank.
 * Chunks outside the first FUSED_DEPTH of both lists stay out: admitting them lowered recall.
 */
const DEEP_WORDS = 300;

/**
 * Searches a scope. `fastest` searches by words. `moderate` fuses words and vectors. `high_accuracy` searches deeper by words
 * and reranks the top of the fused list, with a reranking model if there is one, else by documents, texts and sentences.
 *
 * Without an embedder, or if it fails, all tiers search by words; the outcome reports it as `fallback`, and the state of the
 * model has the failure (ingest/model.ts). A chunk without sentence vectors keeps its fused rank. Omits chunks without
 * evidence. Scores mean the same in every tier (score.ts).
 */
export async function search(
  index: SearchedIndex,
  embedder: Embedder | undefined,
  request: SearchRequest,
  reranker?: Judge,
): Promise<SearchOutcome> {
  const { scope, query, tier, topK } = request;
  const vector = tier === "fastest" ? undefined : await queryVector(embedder, query);
  const isDeep = tier === "high_accuracy";
  // The same candidates for every top_k, so that a smaller top_k returns a prefix of a larger one.
  const limit = FUSED_DEPTH;
  const lexical = { query, limit: isDeep ? DEEP_WORDS : limit };
  const nearest = vector && { ...vector, limit };
  const ask = { scope, lexical, nearest, depth: limit };
  const words = queryWords(query);
  const { total } = words;
  let fallback: SearchFallback | undefined = tier !== "fastest" && vector === undefined ? "words" : undefined;
  const ranked = async (evidence: Evidence): Promise<Scored[]> => {
    const hits = candidates(evidence, total, limit);
    const shiftMax = shiftMaxOf(evidence.scopeChunks);
    if (!isDeep) return requested(scored(hits, shiftMax), request);
    const judgements = reranker && (await judge(index, reranker, request, hits));
    if (judgements !== undefined) return requested(scoredByJudgement(hits, judgements, total), request);
    if (reranker !== undefined) fallback ??= "sentences";
    return requested(scored(await reranked(index, request, hits, words, vector), shiftMax), request);
  };

  let wanted = await ranked(await index.evidence({ ...ask, withChunks: false }));
  let chunks = await index.foundChunks(
    scope,
    wanted.map(({ ref }) => ref),
  );
  if (chunks.length < wanted.length) {
    // An update replaced some chunks between the two reads. A resource must be found at every moment, so read both in one go.
    const evidence = await index.evidence({ ...ask, withChunks: true });
    wanted = await ranked(evidence);
    chunks = evidence.chunks;
  }
  const found = new Map(chunks.map((chunk) => [chunk.ref, chunk]));
  const best = wanted
    .flatMap(({ ref, score }) => {
      const chunk = found.get(ref);
      return chunk === undefined ? [] : { chunk, score };
    })
    .sort((a, b) => b.score - a.score || (a.chunk.id < b.chunk.id ? -1 : 1))
    .slice(0, topK);
  return {
    results: best.map(({ chunk, score }) => resultOf(chunk, score)),
    text: best.map(({ chunk }) => chunk.text).join("\n\n"),
    chunks: best.map(({ chunk }) => chunk),
    ...(fallback !== undefined && { fallback }),
  };
}

/** Returns the first `depth` lexical hits, and those of the rest that are near by meaning. */
function shallowOrNear(
  hits: readonly LexicalHit[],
  nearest: readonly VectorHit[],
  depth: number,
): readonly LexicalHit[] {
  const near = new Set(nearest.map(({ ref }) => ref));
  return hits.filter(({ ref }, at) => at < depth || near.has(ref));
}

type Judge = Pick<Reranker, "judge">;

/**
 * Has the reranking model judge the top hits. A judgement depends on query and text alone. Returns undefined if the model does
 * not answer.
 */
async function judge(
  index: SearchedIndex,
  reranker: Judge,
  { scope, query }: SearchRequest,
  hits: readonly Candidate[],
): Promise<ReadonlyMap<ChunkRef, number> | undefined> {
  const refs = hits.slice(0, RERANKED_DEPTH).map(({ ref }) => ref);
  const chunks = await index.foundChunks(scope, refs);
  const judged = await reranker.judge(
    query,
    chunks.map(({ text }) => text),
  );
  if (judged === undefined) return undefined;
  const byRef = new Map<ChunkRef, number>();
  for (const [at, { ref }] of chunks.entries()) {
    const judgement = judged[at];
    if (judgement !== undefined) byRef.set(ref, judgement);
  }
  return byRef;
}

/**
 * Scores the judged hits, by descending score. Drops a hit without a judgement: it would score differently in a collection
 * where the model judges it.
 */
function scoredByJudgement(
  hits: readonly Candidate[],
  judgements: ReadonlyMap<ChunkRef, number>,
  total: number,
): Scored[] {
  return hits
    .flatMap(({ ref, score }) => {
      const judgement = judgements.get(ref);
      return judgement === undefined ? [] : { ref, score: judgedScore(score, judgement, total) };
    })
    .sort((a, b) => b.score - a.score);
}

/**
 * Reranks the hits by their documents, by their texts, and by each hit's best sentence, which is also evidence for the score.
 * Omits a hit whose sentence leaves it without evidence.
 */
async function reranked(
  index: SearchedIndex,
  { scope, query }: SearchRequest,
  hits: readonly Candidate[],
  words: QueryWords,
  vector: QueryVector | undefined,
): Promise<readonly Candidate[]> {
  const { total } = words;
  const refs = hits.map(({ ref }) => ref);
  const first = refs.slice(0, RERANKED_DEPTH);
  const [documents, matches, chunks] = await Promise.all([
    // Within one document it would be the same for every chunk.
    "resourceId" in scope ? [] : index.documentMatches({ scope, query, refs: first }),
    vector === undefined ? [] : index.sentenceMatches({ scope, ...vector, refs }),
    index.foundChunks(scope, first),
  ]);
  const cosines = new Map(matches.map(({ ref, cosine }) => [ref, Math.max(0, cosine)]));
  const rescored = hits
    .map((hit) => {
      const sentence = cosines.get(hit.ref);
      if (sentence === undefined || hit.cosine === undefined) return hit;
      const cosine = (1 - SENTENCE_SHARE) * hit.cosine + SENTENCE_SHARE * sentence;
      return { ...hit, score: scoreOf({ match: hit.match, total, cosine }) };
    })
    .filter(({ score }) => score > 0);
  const blended = blend(mixDocuments(rescored, documents), cosines, SENTENCE_SHARE, meanJudgement(cosines));
  return mixTexts(blended, chunks, words);
}

type Candidate = WordRanked & ScoredHit & Pick<ChunkEvidence, "match" | "cosine">;

interface Scored {
  readonly ref: ChunkRef;
  readonly score: number;
}

/** Fuses the evidence and returns the chunks with any, by descending mix. Uses words alone if there are no vectors. */
function candidates(
  { lexical, nearest, others, nearestMatches }: Evidence,
  total: number,
  depth: number,
): Candidate[] {
  const hits = nearest === undefined ? lexical.hits : shallowOrNear(lexical.hits, nearest, depth);
  const matchOf = new Map([...hits, ...nearestMatches].map(({ ref, match }) => [ref, match]));
  return fuse(hits, nearest ?? [], others, depth, lexicalShare(hits[0]?.match, total))
    .map((fused) => {
      const match = matchOf.get(fused.ref) ?? NO_WORDS;
      return Object.assign(fused, { match, score: scoreOf({ match, total, cosine: fused.cosine }) });
    })
    .filter(({ score }) => score > 0);
}

const NO_WORDS = { matched: 0, strength: 0 };

/** Scores the hits, by descending score. Among equal mixes the stronger evidence goes first, whichever was stored first. */
function scored(hits: readonly Candidate[], shiftMax: number): Scored[] {
  const ranking = hits.toSorted((a, b) => b.mix - a.mix || b.score - a.score || a.ref - b.ref);
  const scores = reportedScores(ranking, shiftMax);
  return ranking.map(({ ref }, at) => ({ ref, score: scores[at] ?? 0 })).sort((a, b) => b.score - a.score);
}

/** Returns the hits that the request asks for, and all that tie with the last of them: ids break the tie later. */
function requested(ranked: readonly Scored[], { scoreMin, topK }: SearchRequest): Scored[] {
  const least = Math.max(scoreMin ?? 0, ranked[topK - 1]?.score ?? 0);
  return ranked.filter(({ score }) => score >= least);
}

interface QueryVector {
  readonly vector: Float32Array;
  readonly fingerprint: string;
}

/** Embeds the query. Returns undefined if there is no model or it fails. */
async function queryVector(embedder: Embedder | undefined, query: string): Promise<QueryVector | undefined> {
  if (embedder === undefined) return undefined;
  try {
    const [vector] = await embedder.embed([query]);
    return vector && { vector, fingerprint: embedder.fingerprint };
  } catch {
    // The answer's `fallback`, the model's state and the log report it. The search still answers by words.
    return undefined;
  }
}

/** Returns a chunk as a search returns it. */
export function resultOf(chunk: FoundChunk, score: number): FoundResult {
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
      path: pathOf(chunk),
      ...positionOf(chunk),
      ...(chunk.sha256 !== undefined && { sha256: chunk.sha256 }),
      ...(chunk.url !== null && { fileUrl: chunk.url }),
      ...(chunk.filePath !== undefined && { filePath: chunk.filePath }),
      ...(chunk.folderDescription !== undefined && { folderDescription: chunk.folderDescription }),
      ...(chunk.before !== undefined && { before: chunk.before }),
      ...(chunk.after !== undefined && { after: chunk.after }),
    },
  };
}
