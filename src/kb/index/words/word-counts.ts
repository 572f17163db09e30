import { matchOf, type QueryWords, type WordMatch } from "../../lexical/word-match.ts";
import { lookUp } from "./postings.ts";
import type { QueryTerm, WordSnapshot } from "./query-terms.ts";
import type { LivePart } from "./removed.ts";
import { hashOf } from "./term-hash.ts";
import type { Ranked } from "./top-hits.ts";

/** Matches chunks with the words of a query. The results are in the order of `sequences`; undefined: no such chunk. */
export function matchWords(
  { parts }: Pick<WordSnapshot, "parts">,
  words: QueryWords,
  sequences: readonly number[],
): (WordMatch | undefined)[] {
  const found = sequences.map((sequence) => locate(parts, sequence));
  const terms = listsOf(parts, words);
  const located = found.flatMap((chunk) => chunk ?? []);
  const matches = matchesOf(parts, terms, words, located);
  let at = 0;
  return found.map((chunk) => (chunk === undefined ? undefined : matches[at++]));
}

/** Occurrences of terms in a chunk, and its words. */
export interface ChunkCounts {
  /** By index of the term in the query. */
  readonly counts: readonly number[];
  readonly words: number;
}

/** Counts terms in chunks. The results are in the order of `sequences`; undefined: no such chunk. */
export function countTerms(
  { parts }: Pick<WordSnapshot, "parts">,
  terms: readonly QueryTerm[],
  sequences: readonly number[],
): (ChunkCounts | undefined)[] {
  const found = sequences.map((sequence) => locate(parts, sequence));
  const counted = countsOf(
    parts,
    terms,
    found.flatMap((chunk) => chunk ?? []),
  );
  let at = 0;
  return found.map((chunk) => (chunk === undefined ? undefined : counted[at++]));
}

/** Finds the chunk of a sequence among parts that ascend by their sequences. */
function locate(parts: readonly LivePart[], sequence: number): Ranked | undefined {
  let low = 0;
  let high = parts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((parts[middle]?.part.sequence(0) ?? 0) <= sequence) low = middle;
    else high = middle - 1;
  }
  const live = parts[low];
  if (live === undefined) return undefined;
  const ordinal = live.part.ordinalFrom(sequence);
  const isThere = ordinal < live.part.rows && live.part.sequence(ordinal) === sequence;
  return isThere && !live.removed.has(ordinal) ? { sequence, score: 0, part: low, ordinal } : undefined;
}

/** The lists of the words of a query, without weights. */
function listsOf(parts: readonly LivePart[], words: QueryWords): Pick<QueryTerm, "at" | "lists">[] {
  return words.terms.map((term, at) => {
    const hash = hashOf(term);
    return { at, lists: parts.map(({ part }) => part.list(hash)) };
  });
}

export function matchesOf(
  parts: readonly LivePart[],
  terms: readonly Pick<QueryTerm, "at" | "lists">[],
  words: QueryWords,
  chunks: readonly Ranked[],
): WordMatch[] {
  return countsOf(parts, terms, chunks).map((of) => matchOf(words.weights, of.counts, of.words));
}

/** Counts terms in chunks, in their order. */
function countsOf(
  parts: readonly LivePart[],
  terms: readonly Pick<QueryTerm, "at" | "lists">[],
  chunks: readonly Ranked[],
): ChunkCounts[] {
  const counts = chunks.map(() => terms.map(() => 0));
  const inOrder = [...chunks.keys()].sort((a, b) => byPart(chunks[a], chunks[b]));
  for (let from = 0; from < inOrder.length;) {
    const part = chunks[inOrder[from] ?? 0]?.part ?? 0;
    let to = from;
    while (to < inOrder.length && chunks[inOrder[to] ?? 0]?.part === part) to++;
    const wanted = inOrder.slice(from, to);
    const sought = Uint32Array.from(wanted, (at) => chunks[at]?.ordinal ?? 0);
    const times = new Uint32Array(sought.length);
    for (const { at: term, lists } of terms) {
      const list = lists[part];
      if (list === undefined) continue;
      lookUp(list, sought, sought.length, times);
      for (const [index, chunk] of wanted.entries()) {
        const of = counts[chunk];
        if (of !== undefined) of[term] = times[index] ?? 0;
      }
    }
    from = to;
  }
  return chunks.map(({ part, ordinal }, at) => ({
    counts: counts[at] ?? [],
    words: parts[part]?.part.lengths[ordinal] ?? 0,
  }));
}

function byPart(a: Ranked | undefined, b: Ranked | undefined): number {
  return (a?.part ?? 0) - (b?.part ?? 0) || (a?.ordinal ?? 0) - (b?.ordinal ?? 0);
}
