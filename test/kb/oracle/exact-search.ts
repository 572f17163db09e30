import { analyze } from "../../../src/kb/lexical/analyzer.ts";
import { termWeight } from "../../../src/kb/lexical/common-words.ts";
import { nearTerms } from "../../../src/kb/lexical/near-terms.ts";
import { sentencesOf } from "../../../src/kb/ingest/sentence-vectors.ts";
import type { Tier } from "../../../src/wire/primitives.ts";

/** A chunk as a client reads it, with what its document adds to it. */
export interface ExactChunk {
  readonly id: string;
  readonly resourceId: string;
  readonly title: string;
  readonly headings: readonly string[];
  readonly content: string;
  /** Text that the embedder got. */
  readonly embedded: string;
}

/** All chunks of one owner's part of a collection: what statistics are taken of. */
export type Part = readonly ExactChunk[];

/** What is asked of a part. */
export interface ExactQuery {
  readonly query: string;
  readonly tier: Tier;
  /** Of the part, those that may be found: all, those of one document, or those that a filter lets through. */
  readonly within: (chunk: ExactChunk) => boolean;
  /** One document is searched: then documents are not compared. */
  readonly isOneDocument: boolean;
  /** Undefined: no model. */
  readonly embed: ((text: string) => Float32Array) | undefined;
}

/** A chunk that must be found. */
export interface ExactHit {
  readonly id: string;
  /** What orders it; ties are free. */
  readonly mix: number;
  /** By its evidence alone. */
  readonly own: number;
}

/**
 * Searches a part by the formulas of docs/API.md and of the comments in src/kb/search, over the texts themselves, in the plainest way there
 * is. It shares with the service the tokeniser, the weights of common words, typing errors and the division into sentences, and nothing of
 * what stores, indexes, estimates or ranks. Hits are by falling mix.
 */
export function exactSearch(part: Part, asked: ExactQuery): ExactHit[] {
  const words = new Map(part.map((chunk) => [chunk.id, wordsOf(textOf(chunk))]));
  const query = wordsOf(asked.query);
  const chunks = part.filter(asked.within);
  const holding = (term: string): number =>
    part.filter(({ id }) => (words.get(id)?.counts.get(term) ?? 0) > 0).length;
  const terms = corrected(factorsOf(asked.query, query), holding);
  const mean = part.reduce((sum, { id }) => sum + (words.get(id)?.length ?? 0), 0) / part.length;

  const byWords = new Map<string, number>();
  for (const { id } of chunks) {
    const { counts, length } = words.get(id) ?? NO_WORDS;
    let sum = 0;
    for (const { term, factor } of terms) {
      const weight = factor * idf(holding(term), part.length);
      sum += weight * saturation(counts.get(term) ?? 0, length, mean);
    }
    if (sum > 0) byWords.set(id, sum);
  }
  const vector = asked.tier === "fastest" ? undefined : asked.embed?.(asked.query);
  const cosineOf = new Map(
    vector && chunks.map((chunk) => [chunk.id, dot(vector, asked.embed?.(chunk.embedded))]),
  );

  const bestWords = Math.max(...byWords.values());
  const bestCosine = Math.max(0, ...cosineOf.values());
  const half = byWords.size > 0 ? 0.5 : 0;
  const total = terms.reduce((sum, { asTyped }) => sum + asTyped, 0);
  let hits = chunks.flatMap(({ id, resourceId, content }) => {
    const share = (byWords.get(id) ?? 0) / (byWords.size > 0 ? bestWords : 1);
    const cosine = cosineOf.get(id);
    if (cosine === undefined && share === 0) return [];
    const near = bestCosine > 0 ? Math.max(0, (cosine ?? 0) / bestCosine) : 1;
    const wordShare = cosine === undefined ? 1 : half;
    const mix = cosine === undefined ? share : half * share + (1 - half) * near;
    const own = ownScore(terms, words.get(id) ?? NO_WORDS, total, cosine);
    return own > 0 ? [{ id, resourceId, content, mix, own, words: share, wordShare }] : [];
  });
  hits.sort((a, b) => b.mix - a.mix);
  if (asked.tier !== "high_accuracy") return hits;

  if (!asked.isOneDocument) {
    const documents = documentScores(part, new Set(hits.slice(0, JUDGED_MAX).map((hit) => hit.resourceId)));
    hits = hits.map((hit) => {
      const document = documents.get(hit.resourceId);
      if (document === undefined) return hit;
      const most = Math.max(...[...documents.values()].map(({ score }) => score));
      if (most === 0) return hit;
      const judged = hits.slice(0, JUDGED_MAX).filter(({ resourceId }) => documents.has(resourceId));
      const scale = Math.max(...judged.map((each) => each.words)) / most;
      const more = document.score * scale - hit.words;
      const weight = 0.5 * Math.min(1, 4 / document.chunks) * hit.wordShare;
      return { ...hit, mix: hit.mix + weight * more };
    });
  }
  if (vector !== undefined && hits.length > 0) {
    const sentence = new Map(
      hits.map(({ id, content }) => {
        const cosines = sentencesOf(content).map((text) => dot(vector, asked.embed?.(text)));
        return [id, Math.max(0, ...cosines)];
      }),
    );
    const typical = [...sentence.values()].reduce((sum, cosine) => sum + cosine, 0) / sentence.size;
    hits = hits.map((hit) => {
      const best = sentence.get(hit.id);
      const cosine = cosineOf.get(hit.id);
      const nearness = best === undefined || cosine === undefined ? cosine : 0.75 * cosine + 0.25 * best;
      return {
        ...hit,
        mix: 0.75 * hit.mix + 0.25 * (best ?? typical),
        own: ownScore(terms, words.get(hit.id) ?? NO_WORDS, total, nearness),
      };
    });
    hits = hits.filter(({ own }) => own > 0);
  }
  return hits.sort((a, b) => b.mix - a.mix);

  function documentScores(
    all: Part,
    of: ReadonlySet<string>,
  ): Map<string, { score: number; chunks: number }> {
    const documents = [...of].flatMap((resourceId) => {
      const own = all.filter((chunk) => chunk.resourceId === resourceId);
      if (own.length > 8) return [];
      const together = own.map(({ id }) => words.get(id) ?? NO_WORDS);
      const count = (term: string): number =>
        together.reduce((sum, { counts }) => sum + (counts.get(term) ?? 0), 0);
      const length = together.reduce((sum, each) => sum + each.length, 0);
      return [{ resourceId, chunks: own.length, length, count }];
    });
    const meanOf = (pick: (document: (typeof documents)[number]) => number): number =>
      documents.reduce((sum, document) => sum + pick(document), 0) / Math.max(1, documents.length);
    const lengthMean = meanOf(({ length }) => length);
    const chunksMean = Math.max(
      1,
      meanOf((document) => document.chunks),
    );
    const count = all.length / chunksMean;
    return new Map(
      documents.map((document) => {
        let score = 0;
        for (const { term, factor } of terms) {
          const share = holding(term) / all.length;
          const weight = factor * idf((1 - (1 - share) ** chunksMean) * count, count);
          score += weight * saturation(document.count(term), document.length, lengthMean);
        }
        return [document.resourceId, { score, chunks: document.chunks }];
      }),
    );
  }
}

/** Chunks that `high_accuracy` puts in order once more. */
const JUDGED_MAX = 50;

/** Returns how far the ranking may shift a score in a scope of `chunks` chunks. */
export function movedMax(tier: Tier, chunks: number): number {
  return 0.095 * Math.min(1, Math.max(0, Math.log10(chunks / 30) / 2));
}

/**
 * Returns the scores to report, in the order of the ranking: each own score moves towards the midpoint of the minimum before it
 * and the maximum behind it.
 */
export function reportedScores(own: readonly number[], most: number): number[] {
  return own.map((score, at) => {
    const falling = (Math.min(...own.slice(0, at + 1)) + Math.max(...own.slice(at))) / 2;
    return score + Math.sign(falling - score) * Math.min(most, Math.abs(falling - score));
  });
}

interface Words {
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

const NO_WORDS: Words = { counts: new Map(), length: 0 };

function wordsOf(text: string): Words {
  const { terms, counts, words } = analyze(text);
  return { counts: new Map(terms.map((term, at) => [term, counts[at] ?? 0])), length: words };
}

/** The terms of a query with their factors. The two spellings of a word with an umlaut share its factor. */
function factorsOf(query: string, { counts }: Words): readonly (readonly [term: string, factor: number])[] {
  const spelled = new Set((query.match(/\S*[äöüßÄÖÜ]\S*/g) ?? []).flatMap((word) => analyze(word).terms));
  return [...counts].map(([term, times]) => [term, Math.sqrt(times) / (spelled.has(term) ? 2 : 1)]);
}

/** A word of a query as it is searched for. */
interface QueryWord {
  readonly term: string;
  readonly factor: number;
  readonly weight: number;
  /** Weight of the word as it was typed. */
  readonly asTyped: number;
}

/** Replaces up to four words that nothing contains by one with a single typing error, at 70 % of their weight. */
function corrected(
  terms: readonly (readonly [term: string, factor: number])[],
  holding: (term: string) => number,
): QueryWord[] {
  const used = new Set(terms.map(([term]) => term));
  let tried = 0;
  return terms.map(([term, factor]) => {
    const asTyped = factor * termWeight(term);
    const same = { term, factor, weight: asTyped, asTyped };
    if (asTyped === 0 || holding(term) > 0 || ++tried > 4) return same;
    const near = nearTerms(term).find((other) => holding(other) > 0);
    if (near === undefined || used.has(near)) return same;
    used.add(near);
    const weight = 0.7 * Math.min(asTyped, factor * termWeight(near));
    return { term: near, factor: 0.7 * factor, weight, asTyped };
  });
}

function textOf({ title, headings, content }: ExactChunk): string {
  return [title, ...headings, content].join("\n");
}

function idf(holding: number, all: number): number {
  return Math.max(0.01, Math.log((all + 50 - holding + 0.5) / (holding + 0.5)));
}

function saturation(times: number, length: number, mean: number): number {
  return (times * 2.2) / (times + 1.2 * (0.25 + (0.75 * length) / mean));
}

function ownScore(
  terms: readonly QueryWord[],
  { counts, length }: Words,
  total: number,
  cosine: number | undefined,
): number {
  let matched = 0;
  let strength = 0;
  for (const { term, weight } of terms) {
    const count = counts.get(term) ?? 0;
    if (count > 0) matched += weight;
    strength += (weight * saturation(count, length, 150)) / 2.2;
  }
  if (matched === 0 && (cosine ?? 0) <= 0.2) return 0;
  const coverage = total > 0 ? matched / total : 0;
  const about = total > 0 ? Math.log(1 + strength * Math.min(1, 6 / total)) : 0;
  let logit = -3.77 + 1.42 * coverage + 2.33 * about;
  if (cosine !== undefined) logit = -2.49 + 0.53 * logit + 4.68 * Math.max(0.2, cosine);
  const score = 1 / (1 + Math.exp(-0.67 - logit));
  return total > 0 ? score : 0.3 * score;
}

function dot(one: Float32Array, other: Float32Array | undefined): number {
  return one.reduce((sum, value, at) => sum + value * (other?.[at] ?? 0), 0);
}
