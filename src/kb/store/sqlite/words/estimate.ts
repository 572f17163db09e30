import { LEVELS } from "../../../lexical/index-text.ts";
import type { Postings } from "./postings.ts";
import type { QueryTerm } from "./query-terms.ts";
import type { RowList } from "../../../index/row-list.ts";
import { rowOf } from "../../../index/rows.ts";
import type { Place } from "../scopes/scopes.ts";
import { makeSums } from "../../../index/sums.ts";

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

/** Prepares the choice of candidates, from sums over all chunks of a scope. */
export function prepareEstimate(postings: Postings): Estimate {
  const sums = makeSums();

  return (place, terms, wanted) => {
    const { scope, range, chunks, nextSequence, allowed } = place;
    const first = range.first - rowOf(scope, 0);
    const size = Math.min(range.last - range.first + 1, nextSequence - first);
    if (size <= wanted && allowed === undefined) {
      return Array.from({ length: size }, (_, index) => ({ sequence: first + index, estimate: Infinity }));
    }
    const few = allowed?.within({ first, last: first + size - 1 }, wanted);
    if (few !== undefined && few.length <= wanted) {
      return few.map((sequence) => ({ sequence, estimate: Infinity }));
    }
    const told = telling(terms);
    const isBroad = ({ rows }: QueryTerm): boolean => rows === undefined || rows.length * 2 > chunks;
    const added: { list: RowList; weight: number }[] = [];
    for (const term of told) {
      let counted = PLAIN_MEAN;
      // That a chunk has a word that most have tells nothing, so that longest of lists is left out.
      if (term.rows !== undefined && !isBroad(term)) {
        added.push({ list: term.rows, weight: term.weight * counted });
      }
      for (const { mark, mean } of MARKED) {
        const list = postings.of(place, term.term + mark);
        if (list === undefined) return undefined;
        // A chunk of a level is listed under those below it too, so only the difference is added.
        added.push({ list, weight: term.weight * (mean - counted) });
        counted = mean;
      }
    }
    const entries = added.reduce((sum, { list }) => sum + list.length, 0);
    sums.begin({ first, size, entries, allowed });
    try {
      for (const { list, weight } of added) sums.add(list, weight);
      const count = wanted + postings.goneNamed();
      let best = sums.largest(count);
      if (best.length < count) {
        const broad = told.filter(isBroad);
        const lists = broad.map(({ term, rows }) => rows ?? postings.of(place, term));
        if (lists.includes(undefined)) return undefined;
        for (const [at, { weight }] of broad.entries()) {
          const list = lists[at];
          if (list !== undefined) sums.add(list, weight);
        }
        best = sums.largest(count);
      }
      return best.map(({ offset, sum }) => ({ sequence: first + offset, estimate: sum }));
    } finally {
      sums.end();
    }
  };
}

/** The terms that matter for the choice of candidates: without the weakest, those in nearly every chunk. */
function telling(terms: readonly QueryTerm[]): readonly QueryTerm[] {
  let untold = UNTOLD_SHARE * terms.reduce((sum, { weight }) => sum + weight, 0);
  let count = terms.length;
  while (count > 1 && (untold -= terms[count - 1]?.weight ?? 0) >= 0) count--;
  return terms.slice(0, count);
}
