import { indexEntry } from "../../../lexical/index-text.ts";
import type { Chunking } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText, joinHeadings, namesOf, type Part } from "../database/parts.ts";
import type { ResourceRow } from "../database/records.ts";
import type { ScopeWrites } from "../scopes/scope-writes.ts";
import { prepareVectorReuse } from "../vectors/vector-reuse.ts";
import { writeVectors, type VectorWrites } from "../vectors/vector-writes.ts";
import type { IndexChanges } from "../words/index-changes.ts";

/** Writes of the chunks of a version, with their words and vectors. Each runs inside a transaction of the caller. */
export interface ChunkWrites {
  /** Writes the chunks of a version to rows that are reserved. Returns their number of words. */
  add(
    resource: Pick<ResourceRow, "number" | "scope" | keyof Names>,
    parts: readonly Part[],
    chunking: Chunking,
    firstRow: number,
  ): number;
  /**
   * Replaces the chunks of a resource, which gets these names. Unchanged chunks keep their vectors. Returns the first row, and
   * by how many words the chunks grew.
   */
  replace(
    resource: ResourceRow,
    names: Names,
    parts: readonly Part[],
    chunking: Chunking,
  ): { readonly firstRow: number; readonly grown: number };
  /** Indexes the chunks of a resource under its new names. Returns by how many words they grew. */
  rename(resource: ResourceRow, names: Names): number;
  /** Returns their number of words. */
  remove(resource: ResourceRow): number;
}

/** Title and label: what all chunks of a resource are found by. */
type Names = Pick<ResourceRow, "title" | "label">;

/** Prepares the statements on the writing connection. */
export function prepareChunkWrites(
  db: Connection,
  index: IndexChanges,
  vectors: VectorWrites,
  scopes: ScopeWrites,
): ChunkWrites {
  const insertChunk = db.prepare(
    "INSERT INTO chunk (row, resource, start, words, headings, text, gap, line) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const deleteChunks = db.prepare("DELETE FROM chunk WHERE row BETWEEN ? AND ?");
  const sumWords = db
    .prepare<[number, number], number>("SELECT total(words) FROM chunk WHERE row BETWEEN ? AND ?")
    .pluck();
  const selectTexts = db.prepare<[number, number], { row: number; headings: string; text: string }>(
    "SELECT row, headings, text FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  const setWords = db.prepare("UPDATE chunk SET words = ? WHERE row = ?");
  const reuse = prepareVectorReuse(db, vectors);

  const add: ChunkWrites["add"] = (resource, parts, chunking, firstRow) => {
    let words = 0;
    const names = namesOf(resource);
    for (const [at, { start, line, text, gap }] of parts.entries()) {
      const headings = joinHeadings(chunking.spans[at] ?? { headings: [] });
      const entry = indexEntry(indexedText(names, headings, text));
      const row = firstRow + at;
      insertChunk.run(row, resource.number, start, entry.words, headings, text, gap, line);
      index.insert(row, entry.text);
      words += entry.words;
    }
    writeVectors(vectors, resource.scope, firstRow, chunking);
    return words;
  };
  const remove: ChunkWrites["remove"] = (row) => {
    if (row.chunks === 0) return 0;
    const last = row.first_row + row.chunks - 1;
    const words = sumWords.get(row.first_row, last) ?? 0;
    for (let at = row.first_row; at <= last; at++) index.remove(at);
    vectors.removeRange(row.scope, row.first_row, last);
    deleteChunks.run(row.first_row, last);
    return words;
  };

  return {
    add,
    remove,
    replace(before, names, parts, chunking) {
      // Vectors depend on the title: with another title none can be reused.
      const reusable = names.title === before.title ? reuse.collect(before) : undefined;
      const removed = remove(before);
      const firstRow = scopes.reserveRows(before.scope, parts.length);
      const added = add({ ...before, ...names }, parts, chunking, firstRow);
      if (reusable !== undefined) reuse.apply(reusable, before.scope, firstRow, parts, chunking.spans);
      return { firstRow, grown: added - removed };
    },
    rename(row, names) {
      let grown = -(sumWords.get(row.first_row, row.first_row + row.chunks - 1) ?? 0);
      for (const chunk of selectTexts.all(row.first_row, row.first_row + row.chunks - 1)) {
        const entry = indexEntry(indexedText(namesOf(names), chunk.headings, chunk.text));
        setWords.run(entry.words, chunk.row);
        index.replace(chunk.row, entry.text);
        grown += entry.words;
      }
      scopes.noteRetitled(row.scope);
      // The label is in no vector.
      if (names.title !== row.title) reuse.markStale(row);
      return grown;
    },
  };
}
