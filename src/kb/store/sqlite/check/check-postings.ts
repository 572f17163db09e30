import { LENGTH_MAX, termsOf } from "../../../index/words/part.ts";
import { eachPosting } from "../../../index/words/postings.ts";
import { hashOf } from "../../../index/words/term-hash.ts";
import { rowOf, rowsOfScope } from "../../../index/rows.ts";
import { analyze, type Terms } from "../../../lexical/analyzer.ts";
import type { Connection } from "../database/connection.ts";
import { RULES } from "../../rules.ts";
import { indexedText, NAMES } from "../../rows/parts.ts";
import { prepareWordParts } from "../words/word-parts.ts";

/** Maximum chunks named in a finding. */
const NAMED = 3;
/** Sums stay below this, and exact integers while a posting is added. */
const SUM_MAX = 2 ** 51;

/**
 * Compares the index of words with the texts of the chunks: computes each chunk's terms and compares their sum with that of
 * its postings. Takes minutes at millions of chunks, and 24 bytes of memory per chunk of the largest owner. Returns messages
 * for people; empty: nothing is wrong.
 */
export function checkPostings(db: Connection): string[] {
  const selectChunks = db
    .prepare<[number, number], [row: number, names: string, headings: string, text: string, words: number]>(`
      SELECT row, ${NAMES}, headings, text, words FROM chunk JOIN resource ON resource.number = chunk.resource
      WHERE row BETWEEN ? AND ?`)
    .raw();
  const wrong: number[] = [];
  const unknown: number[] = [];
  for (const scope of db.prepare<[], number>("SELECT number FROM scope ORDER BY number").pluck().all()) {
    const { sums, lengths } = indexedChunks(db, scope);
    const { first, last } = rowsOfScope(scope);
    for (const [row, names, headings, text, words] of selectChunks.iterate(first, last)) {
      const indexed = indexedText(names, headings, text);
      const length = Math.min(words, LENGTH_MAX);
      const isOf = (found: Terms): boolean =>
        lengths.get(row) === length && words === found.words && sumOf(found) === (sums.get(row) ?? 0);
      // A chunk from before languages had stems of their own is found by those of English.
      if (!isOf(analyze(indexed)) && !isOf(analyze(indexed, true))) wrong.push(row);
      lengths.delete(row);
    }
    for (const row of lengths.keys()) unknown.push(row);
  }
  return [...summary(wrong, RULES.wrongWords.words), ...summary(unknown, RULES.strayWords.words)];
}

/** Sums of the postings, and lengths in words, of the chunks that the index of a scope has, by row. */
function indexedChunks(db: Connection, scope: number) {
  const sums = new Map<number, number>();
  const lengths = new Map<number, number>();
  for (const { part, removed } of prepareWordParts(db).marked(scope)) {
    const rows = Array.from({ length: part.rows }, (_, at) => rowOf(scope, part.sequence(at)));
    for (const [at, row] of rows.entries()) if (!removed.has(at)) lengths.set(row, part.lengths[at] ?? 0);
    for (const [hash, { bytes }] of termsOf(part)) {
      eachPosting(bytes, (ordinal, times) => {
        const row = rows[ordinal] ?? 0;
        if (!removed.has(ordinal)) sums.set(row, sumWith(sums.get(row) ?? 0, hash, times));
      });
    }
  }
  return { sums, lengths };
}

/** Sum of the postings that a chunk of these terms has. Terms of equal hash share one. */
function sumOf({ terms, counts }: Terms): number {
  const timesOf = new Map<number, number>();
  for (const [at, term] of terms.entries()) {
    const hash = hashOf(term);
    timesOf.set(hash, (timesOf.get(hash) ?? 0) + (counts[at] ?? 0));
  }
  let sum = 0;
  for (const [hash, times] of timesOf) sum = sumWith(sum, hash, times);
  return sum;
}

/** Adds a posting to a sum. Equal postings give equal sums in any order; different ones almost never do. */
function sumWith(sum: number, hash: number, times: number): number {
  return (sum + hash + Math.imul(times, 0x9e3779b1) * 2 ** 14 + SUM_MAX) % SUM_MAX;
}

function summary(rows: readonly number[], words: string): string[] {
  if (rows.length === 0) return [];
  const named = rows.slice(0, NAMED).map((row) => `chunk ${row}`);
  return [`${rows.length} ${words}: ${named.join(", ")}${rows.length > NAMED ? ", …" : ""}`];
}
