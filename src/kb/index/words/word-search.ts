import { K1, saturation } from "../../lexical/bm25.ts";
import type { QueryWords, WordMatch } from "../../lexical/word-match.ts";
import type { RowSet } from "../row-set.ts";
import { lookUp, type PostingList } from "./postings.ts";
import { queryTerms, scoredTerms, weightMax, type QueryTerm, type WordSnapshot } from "./query-terms.ts";
import type { LivePart } from "./removed.ts";
import { makeTopHits, type TopHits } from "./top-hits.ts";
import { matchesOf } from "./word-counts.ts";

/** A part of which fewer chunks than one in so many have words of the query is not walked through as a whole. */
const SPARSE = 16;
/** Chunks of a part from which on a threshold is worth its time. */
const PRUNED_MIN = 1024;
/** Postings that can be added up in the time in which one chunk is looked up in a list. */
const CANDIDATE_COST = 12;
/** Covers the rounding of sums. */
const ROUNDING = 1 - 1e-9;

export interface WordHits {
  /** By descending score, ties by sequence. */
  readonly hits: readonly { readonly sequence: number; readonly bm25: number; readonly match: WordMatch }[];
  /** Sum of the weights of all words of the query × (k1 + 1); 0 if no word is known. */
  readonly ceiling: number;
}

export interface WordQuery {
  readonly words: QueryWords;
  /** Hits wanted, from 1. */
  readonly limit: number;
  /** Sequences searched. The statistics are those of the whole scope. */
  readonly first: number;
  readonly last: number;
  /** Sequences that a filter lets through; undefined: all. */
  readonly allowed: RowSet | undefined;
}

/** Finds the best chunks by BM25, exactly, with the statistics of the scope. */
export function searchWords(snapshot: WordSnapshot, query: WordQuery): WordHits {
  const all = queryTerms(snapshot, query.words);
  const terms = scoredTerms(all);
  if (terms.length === 0) return { hits: [], ceiling: 0 };
  const top = makeTopHits(query.limit);
  const mean = snapshot.words / snapshot.chunks;
  // The largest first: hits that are known early spare work in the other parts.
  const byRows = [...snapshot.parts.entries()].sort(([, a], [, b]) => b.part.rows - a.part.rows);
  for (const [at, live] of byRows) rankPart(live, at, terms, mean, query, top);
  const best = top.sorted();
  const matches = matchesOf(snapshot.parts, all, query.words, best);
  const ceiling = weightMax(all, query.words) * (K1 + 1);
  return {
    ceiling,
    hits: best.map(({ sequence, score }, at) => ({
      sequence,
      bm25: score,
      match: matches[at] ?? { matched: 0, strength: 0 },
    })),
  };
}

/** Scores of the chunks of the part that is being ranked, by ordinal: all 0 before and after. */
let scores = new Float64Array(2 ** 10);
/** Ordinals of chunks: those with a score if there are few, or those that may still be hits. */
let ordinals = new Uint32Array(2 ** 10);

/** Occurrences of a term in chunks that are looked up. */
let occurrences = new Uint32Array(2 ** 10);

/** A part that is being ranked. */
interface Ranking {
  readonly live: LivePart;
  /** Its number in the snapshot. */
  readonly number: number;
  /** Ordinals searched: [from, to). */
  readonly from: number;
  readonly to: number;
  /** The terms with a list in the part, by descending weight. */
  readonly terms: readonly { readonly weight: number; readonly list: PostingList }[];
  /** Mean length of the scope's chunks. */
  readonly mean: number;
  readonly allowed: RowSet | undefined;
  readonly top: TopHits;
}

/** Adds the hits of a part. */
function rankPart(
  live: LivePart,
  number: number,
  known: readonly QueryTerm[],
  mean: number,
  { first, last, allowed }: WordQuery,
  top: TopHits,
): void {
  const { part } = live;
  const from = part.ordinalFrom(first);
  const to = part.ordinalFrom(last + 1);
  const terms = known.flatMap(({ weight, lists }) => {
    const list = lists[number];
    return list === undefined ? [] : { weight, list };
  });
  if (from === to || terms.length === 0) return;
  if (scores.length < part.rows) scores = new Float64Array(part.rows);
  if (ordinals.length < part.rows) ordinals = new Uint32Array(part.rows);
  const ranking = { live, number, from, to, terms, mean, allowed, top };
  const postings = terms.reduce((sum, { list }) => sum + list.count, 0);
  if (postings * SPARSE < to - from) rankFew(ranking);
  else rankMany(ranking, to - from < PRUNED_MIN ? 0 : postings);
}

/** Ranks a part of which few chunks have words of the query. */
function rankFew(ranking: Ranking): void {
  let count = 0;
  for (const { weight, list } of ranking.terms) count = addScores(ranking, weight, list, count);
  for (let at = 0; at < count; at++) offer(ranking, ordinals[at] ?? 0);
}

/**
 * Ranks a part of which many chunks have words of the query. Adds up the weightiest terms, until so few chunks can still be
 * hits that looking these up in the other lists costs less than adding up those (MaxScore; Turtle and Flood, 1995).
 */
function rankMany(ranking: Ranking, postings: number): void {
  const { terms, from, to } = ranking;
  /** The most that the terms which are not added up yet can add to a score, and their postings that may be spared. */
  let rest = terms.reduce((sum, { weight }) => sum + weight * (K1 + 1), 0);
  const total = rest;
  let left = postings;
  let least = 0;
  for (const [at, { weight, list }] of terms.entries()) {
    addScores(ranking, weight, list, -1);
    rest -= weight * (K1 + 1);
    left -= list.count;
    // Only a threshold above the rest makes a difference. It is at most what was added, and mostly a good part of that.
    if (left < to - from || rest * 3 > total - rest) continue;
    least = threshold(ranking, least);
    if (least <= rest) continue;
    const count = candidates(ranking, (least - Math.max(0, rest)) * ROUNDING);
    const others = terms.slice(at + 1);
    if (count * others.length * CANDIDATE_COST > left) continue;
    for (const other of others) addScoresOf(ranking, other.weight, other.list, count);
    for (let index = 0; index < count; index++) offer(ranking, ordinals[index] ?? 0);
    scores.fill(0, from, to);
    return;
  }
  for (let ordinal = from; ordinal < to; ordinal++) if ((scores[ordinal] ?? 0) > 0) offer(ranking, ordinal);
}

/** Offers a chunk with its score, which becomes 0. */
function offer({ live, number, allowed, top }: Ranking, ordinal: number): void {
  const score = scores[ordinal] ?? 0;
  scores[ordinal] = 0;
  const sequence = live.part.sequence(ordinal);
  if (!top.accepts(score, sequence) || live.removed.has(ordinal)) return;
  if (allowed === undefined || allowed.has(sequence)) top.add({ sequence, score, part: number, ordinal });
}

/** Returns a score that the last of the hits will have at least, from the scores so far; `known` is one from before. */
function threshold({ live, from, to, allowed, top }: Ranking, known: number): number {
  const best = top.scores();
  let least = Math.max(known, best.least());
  for (let ordinal = from; ordinal < to; ordinal++) {
    const score = scores[ordinal] ?? 0;
    if (score <= least || live.removed.has(ordinal)) continue;
    if (allowed !== undefined && !allowed.has(live.part.sequence(ordinal))) continue;
    best.add(score);
    least = Math.max(least, best.least());
  }
  return least;
}

/** Notes the chunks whose score so far is at least this. Returns their number. */
function candidates({ from, to }: Ranking, scoreMin: number): number {
  let count = 0;
  for (let ordinal = from; ordinal < to; ordinal++) {
    const score = scores[ordinal] ?? 0;
    // A chunk without a score has only words that are not added up yet.
    if (score >= scoreMin && (score > 0 || scoreMin <= 0)) ordinals[count++] = ordinal;
  }
  return count;
}

/**
 * Adds a term's share to the scores of the first `count` noted chunks. Computes it exactly as `addScores` does, so that equal
 * chunks have equal scores.
 */
function addScoresOf({ live, mean }: Ranking, weight: number, list: PostingList, count: number): void {
  if (occurrences.length < count) occurrences = new Uint32Array(count * 2);
  lookUp(list, ordinals, count, occurrences);
  const shares = sharesOf(live.part, mean);
  for (let at = 0; at < count; at++) {
    const times = occurrences[at] ?? 0;
    if (times === 0) continue;
    const ordinal = ordinals[at] ?? 0;
    const share = shares[ordinal] ?? 0;
    scores[ordinal] = (scores[ordinal] ?? 0) + weight * (times === 1 ? share : repeated(share, times));
  }
}

/** Saturations by part and ordinal, of terms that occur once; valid for one mean. */
const onceShares = new WeakMap<Uint16Array, { readonly mean: number; readonly shares: Float64Array }>();

/** Returns the saturation (bm25.ts) of a term that occurs once, for each chunk of a part. Most terms do. */
function sharesOf({ lengths }: LivePart["part"], mean: number): Float64Array {
  const known = onceShares.get(lengths);
  if (known?.mean === mean) return known.shares;
  const shares = known?.shares ?? new Float64Array(lengths.length);
  for (let at = 0; at < shares.length; at++) shares[at] = saturation(1, lengths[at] ?? 0, mean);
  onceShares.set(lengths, { mean, shares });
  return shares;
}

/** Returns the saturation of a term that occurs several times in a chunk, from that of one that occurs once. */
function repeated(once: number, times: number): number {
  return (times * (K1 + 1)) / (times - 1 + (K1 + 1) / once);
}

/**
 * Adds a term's share of BM25 to the scores of the chunks in [from, to). This loop dominates the time of a search, so it
 * reads the varints itself. `count` is the number of touched chunks so far; negative: they are not noted. Returns the
 * next `count`.
 */
function addScores(
  { live, mean, from, to }: Ranking,
  weight: number,
  { bytes }: PostingList,
  count: number,
): number {
  const shares = sharesOf(live.part, mean);
  const end = bytes.length;
  let noted = count;
  let ordinal = -1;
  for (let at = 0; at < end;) {
    let value = bytes[at++] ?? 0;
    if (value > 127) {
      value &= 127;
      for (let shift = 7; ; shift += 7) {
        const byte = bytes[at++] ?? 0;
        value |= (byte & 127) << shift;
        if (byte < 128) break;
      }
    }
    ordinal += (value >>> 2) + 1;
    let times = (value & 3) + 1;
    if (times === 4) {
      for (let shift = 0; ; shift += 7) {
        const byte = bytes[at++] ?? 0;
        times += (byte & 127) << shift;
        if (byte < 128) break;
      }
    }
    if (ordinal < from) continue;
    if (ordinal >= to) break;
    const before = scores[ordinal] ?? 0;
    if (noted >= 0 && before === 0) ordinals[noted++] = ordinal;
    const share = shares[ordinal] ?? 0;
    scores[ordinal] = before + weight * (times === 1 ? share : repeated(share, times));
  }
  return noted;
}
