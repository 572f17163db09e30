import { indexEntry } from "../../../lexical/index-text.ts";
import { sumWith } from "./check-sums.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText, NAMES } from "../database/parts.ts";

/** Maximum chunks named in a finding. */
const NAMED = 3;

/**
 * Compares the index of words with the texts of the chunks: computes each chunk's terms and compares their sum with that of
 * its entries in the index. Takes minutes, and 24 bytes of memory per chunk, at millions of chunks. Returns a message for
 * people; empty: nothing is wrong.
 */
export function checkPostings(db: Connection): string[] {
  const sums = new Map<number, number>();
  db.exec("CREATE VIRTUAL TABLE temp.chunk_index_terms USING fts5vocab (main, chunk_index, instance)");
  const entries = db
    .prepare<[], [term: string, row: number]>("SELECT term, doc FROM temp.chunk_index_terms")
    .raw();
  for (const [term, row] of entries.iterate()) sums.set(row, sumWith(sums.get(row) ?? 0, term));

  const chunks = db
    .prepare<[], [row: number, names: string, headings: string, text: string, words: number]>(`
      SELECT row, ${NAMES}, headings, text, words FROM chunk JOIN resource ON resource.number = chunk.resource`)
    .raw();
  const wrong: number[] = [];
  let count = 0;
  for (const [row, names, headings, text, words] of chunks.iterate()) {
    const entry = indexEntry(indexedText(names, headings, text));
    let sum = 0;
    for (const term of entry.text.toString("utf8").split(" ")) {
      if (term !== "") sum = sumWith(sum, term);
    }
    if (sum === (sums.get(row) ?? 0) && words === entry.words) continue;
    count += 1;
    if (wrong.length < NAMED) wrong.push(row);
  }
  if (count === 0) return [];
  const more = count > wrong.length ? ", …" : "";
  return [
    `${count} chunks are indexed under other words than they contain: chunk ${wrong.join(", chunk ")}${more}`,
  ];
}
