import { countTerms } from "../../../lexical/analyzer.ts";
import { K1, saturation } from "../../../lexical/bm25.ts";
import { matchOf, type QueryWords } from "../../../lexical/word-match.ts";
import type { LexicalHit, LexicalHits, ChunkMatch, MatchedTerms } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { prepareEstimate } from "./estimate.ts";
import { indexedText, NAMES } from "../database/parts.ts";
import type { Postings } from "./postings.ts";
import { knownTerms, type QueryTerms } from "./query-terms.ts";
import { rowOf } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/**
 * Minimum number of chunks whose text is read and scored for a query; with a higher limit, as many as hits are wanted. Two
 * and a half times as many cost half of a search and changed no nDCG@10 by more than 0.0006 on two judged sets, in any tier.
 */
const SCORED_MIN = 100;
/**
 * Scoring ends at the first candidate whose score would have to exceed its estimate by this factor to be a hit. One term can
 * be off by 1.4 (LEVELS), but hardly several at once: on 100,000 chunks of manual pages, 1.4 found 0.3 % more of the true ten
 * best than 1.2 and took twice as long; 1.1 lost 5 %.
 */
const ESTIMATE_ERROR = 1.25;

/** Searches by words. */
export interface Lexical {
  /** Finds chunks by the words of a query, best first; undefined: call again. */
  search(target: SearchTarget, words: QueryWords, limit: number): LexicalHits | undefined;
  /** Matches these chunks against the query's words. Leaves out rows that no longer exist. */
  matches(target: SearchTarget, words: QueryWords, rows: readonly number[]): ChunkMatch[];
  /** Returns those of the terms that these chunks are found by. Leaves out rows that no longer exist. */
  matchedTerms(target: SearchTarget, terms: readonly string[], rows: readonly number[]): MatchedTerms[];
}

/**
 * Prepares the search by words: BM25 in two steps. The posting lists, which store only levels of a term's weight, give an
 * estimate for every chunk with a word of the query. Then the texts of the best candidates are read in the order of their
 * estimates and scored exactly, until no further candidate can be a hit or enough are scored.
 *
 * If lists of the query's words are not in memory, a call reads a part of them and returns undefined. The same call
 * continues later, so that other reads can run in between. `postings.beginSlice` sets how much a call may read.
 */
export function prepareLexical(db: Connection, postings: Postings, queryTerms: QueryTerms): Lexical {
  // The names come from a subquery: a join takes six times as long, and this lookup dominates the time of a search.
  const selectText = db
    .prepare<[number], [names: string, headings: string, text: string, words: number]>(`
      SELECT (SELECT ${NAMES} FROM resource WHERE number = chunk.resource), headings, text, words FROM chunk WHERE row = ?`)
    .raw();
  const estimate = prepareEstimate(postings);

  /** Counts the terms in a chunk; undefined if the target has no such row. */
  const countsIn = ({ range }: SearchTarget, terms: readonly string[], row: number) => {
    const found = row < range.first || row > range.last ? undefined : selectText.get(row);
    if (found === undefined) return undefined;
    const [names, headings, text, words] = found;
    return { counts: countTerms(indexedText(names, headings, text), terms), words };
  };

  const matches: Lexical["matches"] = (target, query, rows) =>
    rows.flatMap((row) => {
      const found = countsIn(target, query.terms, row);
      return found === undefined
        ? []
        : { ref: row, match: matchOf(query.weights, found.counts, found.words) };
    });

  const matchedTerms: Lexical["matchedTerms"] = (target, terms, rows) =>
    rows.flatMap((row) => {
      const found = countsIn(target, terms, row);
      return found === undefined
        ? []
        : { ref: row, terms: terms.filter((_, at) => (found.counts[at] ?? 0) > 0) };
    });

  const search: Lexical["search"] = (target, query, limit) => {
    const terms = queryTerms(target, query);
    if (terms === undefined) return undefined;
    const known = knownTerms(terms);
    if (known.length === 0) return { hits: [], ceiling: 0 };

    const scoredMax = Math.max(SCORED_MIN, limit);
    const candidates = estimate(target, known, scoredMax);
    if (candidates === undefined) return undefined;
    const total = terms.reduce((sum, { weight }) => sum + weight, 0);
    const mean = target.words / target.chunks;
    const counted = known.map(({ term, weight }) => ({ at: query.terms.indexOf(term), weight }));
    const best = new BestHits(limit);
    let scored = 0;
    for (const candidate of candidates) {
      if (scored === scoredMax || candidate.estimate * ESTIMATE_ERROR < best.least()) break;
      const row = rowOf(target.scope, candidate.sequence);
      const found = selectText.get(row);
      if (found === undefined) continue;
      scored += 1;
      const [names, headings, text, words] = found;
      const counts = countTerms(indexedText(names, headings, text), query.terms);
      let bm25 = 0;
      for (const { at, weight } of counted) {
        const times = counts[at] ?? 0;
        if (times > 0) bm25 += weight * saturation(times, words, mean);
      }
      if (bm25 > 0) best.add({ ref: row, bm25, match: matchOf(query.weights, counts, words) });
    }
    return { hits: best.sorted(), ceiling: total * (K1 + 1) };
  };

  return { search, matches, matchedTerms };
}

/** The best hits so far, at most `limit`. */
class BestHits {
  readonly #limit: number;
  #hits: LexicalHit[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(hit: LexicalHit): void {
    const hits = this.#hits;
    let at = hits.length;
    while (at > 0 && isBefore(hit, hits[at - 1])) at--;
    hits.splice(at, 0, hit);
    if (hits.length > this.#limit) hits.pop();
  }

  /** Score of the last hit if there are `limit` hits, else 0. */
  least(): number {
    return this.#hits.length < this.#limit ? 0 : (this.#hits.at(-1)?.bm25 ?? 0);
  }

  sorted(): LexicalHit[] {
    return this.#hits;
  }
}

function isBefore(hit: LexicalHit, other: LexicalHit | undefined): boolean {
  if (other === undefined || hit.bm25 !== other.bm25) return hit.bm25 > (other?.bm25 ?? -1);
  return hit.ref < other.ref;
}
