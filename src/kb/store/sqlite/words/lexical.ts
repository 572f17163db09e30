import { countTerms } from "../../../lexical/analyzer.ts";
import { K1, saturation } from "../../../lexical/bm25.ts";
import { matchOf, type QueryWords } from "../../../lexical/word-match.ts";
import type { LexicalHit, LexicalHits, RowMatch } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { prepareEstimate } from "./estimate.ts";
import { indexedText } from "../database/parts.ts";
import type { Postings } from "./postings.ts";
import { knownTerms, type QueryTerms } from "./query-terms.ts";
import { rowOf } from "../../../index/rows.ts";
import type { Place } from "../scopes/scopes.ts";

/**
 * Chunks whose text is read and scored for a query: as many as hits are wanted, and at least so many. Two and a half times as
 * many, which cost half of a search, moved no nDCG@10 by more than 0.0006 on two judged sets, in any tier.
 */
const SCORED_MIN = 100;
/**
 * Scoring ends at a candidate that would have to score this much above its estimate to come among the hits. One term
 * can be off by 1.4 (LEVELS), several hardly are at once: on 100,000 chunks of manual pages 1.4 found 0.3 % more of
 * the true ten best than 1.2 and took twice as long, 1.1 lost 5 %.
 */
const ESTIMATE_ERROR = 1.25;

/** Searches by words over one connection. */
export interface Lexical {
  /** Chunks of a place by the words of a query, best first; undefined: to be called again. */
  search(place: Place, words: QueryWords, limit: number): LexicalHits | undefined;
  /** What these chunks of the place hold of the query's words; rows that are gone are left out. */
  matches(place: Place, words: QueryWords, rows: readonly number[]): RowMatch[];
}

/**
 * Prepares the search for words: BM25 in two steps. The posting lists, which know only how heavy a term is, in steps,
 * estimate the score of every chunk with a word of the query; then the texts of the best ones are read, in order of
 * the estimate, and scored exactly, until no further one can come among the hits wanted or enough are scored.
 *
 * Where lists of the query's words are still to be read, a call reads a part and gives undefined: the same call again goes
 * on, and others may be answered between. How much one call may read, `postings` is told before it.
 */
export function prepareLexical(db: Connection, postings: Postings, queryTerms: QueryTerms): Lexical {
  // The title by a subquery: as a join the same look-up takes six times as long, and it is most of a search.
  const selectText = db
    .prepare<[number], [title: string, headings: string, text: string, words: number]>(`
      SELECT (SELECT title FROM resource WHERE number = chunk.resource), headings, text, words FROM chunk WHERE row = ?`)
    .raw();
  const estimate = prepareEstimate(postings);

  const matches: Lexical["matches"] = ({ range }, asked, rows) =>
    rows.flatMap((row) => {
      const found = row < range.first || row > range.last ? undefined : selectText.get(row);
      if (found === undefined) return [];
      const [title, headings, text, words] = found;
      const counts = countTerms(indexedText(title, headings, text), asked.terms);
      return { row, match: matchOf(asked.weights, counts, words) };
    });

  const search: Lexical["search"] = (place, asked, limit) => {
    const terms = queryTerms(place, asked);
    if (terms === undefined) return undefined;
    const known = knownTerms(terms);
    if (known.length === 0) return { hits: [], ceiling: 0 };

    const scoredMax = Math.max(SCORED_MIN, limit);
    const candidates = estimate(place, known, scoredMax);
    if (candidates === undefined) return undefined;
    const total = terms.reduce((sum, { weight }) => sum + weight, 0);
    const mean = place.words / place.chunks;
    const counted = known.map(({ term, weight }) => ({ at: asked.terms.indexOf(term), weight }));
    const best = new BestHits(limit);
    let scored = 0;
    for (const candidate of candidates) {
      if (scored === scoredMax || candidate.estimate * ESTIMATE_ERROR < best.least()) break;
      const row = rowOf(place.scope, candidate.sequence);
      const found = selectText.get(row);
      if (found === undefined) continue;
      scored += 1;
      const [title, headings, text, words] = found;
      const counts = countTerms(indexedText(title, headings, text), asked.terms);
      let bm25 = 0;
      for (const { at, weight } of counted) {
        const times = counts[at] ?? 0;
        if (times > 0) bm25 += weight * saturation(times, words, mean);
      }
      if (bm25 > 0) best.add({ row, bm25, match: matchOf(asked.weights, counts, words) });
    }
    return { hits: best.sorted(), ceiling: total * (K1 + 1) };
  };

  return { search, matches };
}

/** The best hits seen so far, at most `limit`. */
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

  /** Score of the last hit once there are as many as wanted, else 0. */
  least(): number {
    return this.#hits.length < this.#limit ? 0 : (this.#hits.at(-1)?.bm25 ?? 0);
  }

  sorted(): LexicalHit[] {
    return this.#hits;
  }
}

function isBefore(hit: LexicalHit, other: LexicalHit | undefined): boolean {
  if (other === undefined || hit.bm25 !== other.bm25) return hit.bm25 > (other?.bm25 ?? -1);
  return hit.row < other.row;
}
