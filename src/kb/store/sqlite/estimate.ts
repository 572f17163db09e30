import { LEVELS } from "../../lexical/index-text.ts";
import type { Postings } from "./postings.ts";
import type { QueryTerm } from "./query-terms.ts";
import type { RowList } from "./row-list.ts";
import type { RowSet } from "./row-set.ts";
import { rowOf } from "./rows.ts";
import type { Place } from "./scopes.ts";

/** The level of every term, and those of marked forms. */
const [PLAIN, ...MARKED] = LEVELS;
const PLAIN_MEAN = PLAIN?.mean ?? 1;
/** Share of a query's weight whose terms the estimates may leave out. */
const UNTOLD_SHARE = 0.03;

/** A chunk whose exact score may be worth computing. */
export interface Candidate {
  readonly sequence: number;
  readonly estimate: number;
}

/**
 * Chooses the chunks of a place with the largest estimated scores, best first, ties by sequence: `wanted` of them, and as many
 * more as lists may name that are gone. `terms` are by falling weight. Where a list is still to be read (postings.ts), the
 * answer is undefined.
 */
export type Estimate = (place: Place, terms: readonly QueryTerm[], wanted: number) => Candidate[] | undefined;

/** Prepares the choice of candidates: an accumulator over all chunks of a scope, kept between queries. */
export function prepareEstimate(postings: Postings): Estimate {
  /** By place in the range; 0 where no term was found, and between queries. */
  let scores = new Float32Array(0);
  /** Where `scores` is not 0: a query of rare words touches few of very many chunks. */
  let touched = new Uint32Array(0);
  let touchedCount = 0;

  function clear(): void {
    for (let at = 0; at < touchedCount; at++) scores[touched[at] ?? 0] = 0;
    touchedCount = 0;
  }

  function add(rows: Uint32Array, first: number, weight: number, allowed: RowSet | undefined): void {
    for (let at = 0; at < rows.length; at++) {
      const sequence = rows[at] ?? 0;
      if (allowed !== undefined && !allowed.has(sequence)) continue;
      const index = sequence - first;
      const score = scores[index] ?? 0;
      if (score === 0) touched[touchedCount++] = index;
      scores[index] = score + weight;
    }
  }

  return (place, terms, wanted) => {
    const { scope, range, chunks, nextSequence, allowed } = place;
    const postingsOf = (term: string): RowList | undefined => postings.of(place, term);
    const first = range.first - rowOf(scope, 0);
    const size = Math.min(range.last - range.first + 1, nextSequence - first);
    if (size <= wanted && allowed === undefined) {
      return Array.from({ length: size }, (_, index) => ({ sequence: first + index, estimate: Infinity }));
    }
    const few = allowed?.within({ first, last: first + size - 1 }, wanted);
    if (few !== undefined && few.length <= wanted) {
      return few.map((sequence) => ({ sequence, estimate: Infinity }));
    }
    if (scores.length < size) {
      scores = new Float32Array(Math.ceil(size * 1.25));
      touched = new Uint32Array(scores.length);
    }
    const told = telling(terms);
    const isBroad = ({ rows }: QueryTerm): boolean => rows === undefined || rows.length * 2 > chunks;
    // All lists before any is counted, so that a search that has to wait for one has nothing to clear away.
    const marked = told.map(({ term }) => MARKED.map(({ mark }) => postingsOf(term + mark)));
    if (marked.flat().includes(undefined)) return undefined;
    const tally = (list: RowList | undefined, weight: number): void => {
      if (list !== undefined) add(list.within(first, first + size - 1), first, weight, allowed);
    };
    for (const [at, term] of told.entries()) {
      let counted = PLAIN_MEAN;
      // That a chunk has a word that most have tells nothing, so that longest of lists is left out.
      if (!isBroad(term)) tally(term.rows, term.weight * counted);
      for (const [level, { mean }] of MARKED.entries()) {
        // A chunk of a level is listed under those below it too, so only the difference is added.
        tally(marked[at]?.[level], term.weight * (mean - counted));
        counted = mean;
      }
    }
    if (touchedCount < wanted + postings.goneNamed()) {
      const broad = told.filter(isBroad);
      const lists = broad.map(({ term, rows }) => rows ?? postingsOf(term));
      if (lists.includes(undefined)) {
        clear();
        return undefined;
      }
      for (const [at, { weight }] of broad.entries()) tally(lists[at], weight);
    }

    const best = largest(scores, touched.subarray(0, touchedCount), wanted + postings.goneNamed());
    const candidates = best.map((index) => ({ sequence: first + index, estimate: scores[index] ?? 0 }));
    clear();
    return candidates;
  };
}

/** Those of `indexes` with the largest values, at most `count`, by descending value, ties by index. */
function largest(values: Float32Array, indexes: Uint32Array, count: number): number[] {
  const threshold = nthLargest(values, indexes, count);
  const found: number[] = [];
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] ?? 0;
    if ((values[index] ?? 0) >= threshold) found.push(index);
  }
  return found.sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b).slice(0, count);
}

/** Bins of the histogram by which the threshold is found without sorting. */
const BINS = 4096;

/** A value that at least `count` of the values reach, if there are so many, and not many more; by a histogram. */
function nthLargest(values: Float32Array, indexes: Uint32Array, count: number): number {
  let most = 0;
  for (let at = 0; at < indexes.length; at++) most = Math.max(most, values[indexes[at] ?? 0] ?? 0);
  if (most === 0 || indexes.length <= count) return 0;
  const bins = new Uint32Array(BINS);
  const scale = (BINS - 1) / most;
  for (let at = 0; at < indexes.length; at++) {
    const bin = ((values[indexes[at] ?? 0] ?? 0) * scale) | 0;
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  let seen = 0;
  let bin = BINS - 1;
  for (; bin > 0; bin--) {
    seen += bins[bin] ?? 0;
    if (seen >= count) break;
  }
  return bin / scale;
}

/** The terms that matter for the choice of candidates: without the weakest, those in nearly every chunk. */
function telling(terms: readonly QueryTerm[]): readonly QueryTerm[] {
  let untold = UNTOLD_SHARE * terms.reduce((sum, { weight }) => sum + weight, 0);
  let count = terms.length;
  while (count > 1 && (untold -= terms[count - 1]?.weight ?? 0) >= 0) count--;
  return terms.slice(0, count);
}
