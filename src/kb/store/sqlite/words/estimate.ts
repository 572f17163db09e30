import { LEVELS } from "../../../lexical/index-text.ts";
import type { Postings } from "./postings.ts";
import type { QueryTerm } from "./query-terms.ts";
import type { RowList } from "../../../index/row-list.ts";
import { rowOf } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";
import { makeSums } from "../../../index/sums.ts";

/** The level of every term, and the levels of marked forms. */
const [PLAIN, ...MARKED] = LEVELS;
const PLAIN_MEAN = PLAIN?.mean ?? 1;
/** Share of a query's weight whose terms the estimates may ignore. */
const IGNORED_SHARE = 0.03;

/** A chunk whose exact score may be worth computing. */
export interface Candidate {
  readonly sequence: number;
  readonly estimate: number;
}

/**
 * Selects the chunks with the largest estimated scores, best first, ties by sequence: `wanted` of them, plus as many as the
 * lists may name that no longer exist. `terms` descend by weight. Returns undefined if a list is not read completely yet
 * (postings.ts).
 */
export type Estimate = (
  target: SearchTarget,
  terms: readonly QueryTerm[],
  wanted: number,
) => Candidate[] | undefined;

/** Prepares the selection of candidates by sums over all chunks of a scope. */
export function prepareEstimate(postings: Postings): Estimate {
  const sums = makeSums();

  return (target, terms, wanted) => {
    const { scope, range, chunks, nextSequence, allowed } = target;
    const first = range.first - rowOf(scope, 0);
    const size = Math.min(range.last - range.first + 1, nextSequence - first);
    if (size <= wanted && allowed === undefined) {
      return Array.from({ length: size }, (_, index) => ({ sequence: first + index, estimate: Infinity }));
    }
    const few = allowed?.within({ first, last: first + size - 1 }, wanted);
    if (few !== undefined && few.length <= wanted) {
      return few.map((sequence) => ({ sequence, estimate: Infinity }));
    }
    const significant = significantTerms(terms);
    const isBroad = ({ rows }: QueryTerm): boolean => rows === undefined || rows.length * 2 > chunks;
    const added: { list: RowList; weight: number }[] = [];
    for (const term of significant) {
      let counted = PLAIN_MEAN;
      // A word in most chunks does not distinguish them, so its list, one of the longest, is left out.
      if (term.rows !== undefined && !isBroad(term)) {
        added.push({ list: term.rows, weight: term.weight * counted });
      }
      for (const { mark, mean } of MARKED) {
        const list = postings.of(target, term.term + mark);
        if (list === undefined) return undefined;
        // A chunk of a level is also listed under the levels below it, so only the difference is added.
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
        const broad = significant.filter(isBroad);
        const lists = broad.map(({ term, rows }) => rows ?? postings.of(target, term));
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

/** Returns the terms that matter for the selection: all but the weakest, which are in nearly every chunk. */
function significantTerms(terms: readonly QueryTerm[]): readonly QueryTerm[] {
  let ignored = IGNORED_SHARE * terms.reduce((sum, { weight }) => sum + weight, 0);
  let count = terms.length;
  while (count > 1 && (ignored -= terms[count - 1]?.weight ?? 0) >= 0) count--;
  return terms.slice(0, count);
}
