import { indexEntry } from "../../../lexical/index-text.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText } from "../database/parts.ts";
import { rowOf } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/** A chunk with its entries in the index. */
export interface ListedChunk {
  readonly sequence: number;
  /** Terms and their marked forms. */
  readonly forms: readonly string[];
}

/** The newest chunks of a scope. */
export interface NewestChunks {
  readonly chunks: readonly ListedChunk[];
  /** All chunks below this sequence are included. */
  readonly readTo: number;
  readonly words: number;
}

/**
 * Prepares a function that computes the index entries of a scope's chunks from a sequence on, from their texts, in about
 * 50 µs each. It stops after the chunk that exceeds `wordsMax`.
 */
export function prepareNewest(
  db: Connection,
): (target: SearchTarget, from: number, wordsMax: number) => NewestChunks {
  const select = db
    .prepare<[number, number], [row: number, words: number, title: string, headings: string, text: string]>(`
      SELECT row, words, (SELECT title FROM resource WHERE number = chunk.resource), headings, text FROM chunk
      WHERE row BETWEEN ? AND ? ORDER BY row`)
    .raw();
  return ({ scope, nextSequence }, from, wordsMax) => {
    const first = rowOf(scope, 0);
    const chunks: ListedChunk[] = [];
    let sum = 0;
    for (const [row, words, ...texts] of select.iterate(first + from, first + nextSequence - 1)) {
      const entry = indexEntry(indexedText(...texts)).text.toString();
      chunks.push({ sequence: row - first, forms: entry.trimEnd().split(" ") });
      sum += words;
      if (sum > wordsMax) return { chunks, readTo: row - first + 1, words: sum };
    }
    return { chunks, readTo: nextSequence, words: sum };
  };
}
