import { indexEntry } from "../../lexical/index-text.ts";
import type { Connection } from "./connection.ts";
import { indexedText } from "./parts.ts";
import { rowOf } from "./rows.ts";
import type { Place } from "./scopes.ts";

/** A chunk, and what the index lists it under. */
export interface ListedChunk {
  readonly sequence: number;
  readonly forms: readonly string[];
}

/** Prepares finding, from their texts, what the chunks of a scope from a sequence on are listed under; some 50 µs each. */
export function prepareNewest(db: Connection): (place: Place, from: number) => ListedChunk[] {
  const select = db
    .prepare<[number, number], [row: number, title: string, headings: string, text: string]>(`
      SELECT row, (SELECT title FROM resource WHERE number = chunk.resource), headings, text FROM chunk
      WHERE row BETWEEN ? AND ? ORDER BY row`)
    .raw();
  return ({ scope, nextSequence }, from) => {
    const first = rowOf(scope, 0);
    return select.all(first + from, first + nextSequence - 1).map(([row, ...texts]) => {
      const entry = indexEntry(indexedText(...texts)).text.toString();
      return { sequence: row - first, forms: entry.trimEnd().split(" ") };
    });
  };
}
