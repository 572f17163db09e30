import type { Chunking } from "../../chunks.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText, joinHeadings, namesOf, type Part } from "../../rows/parts.ts";
import type { ResourceRow } from "../../rows/records.ts";
import type { ScopeWrites } from "../scopes/scope-writes.ts";
import { prepareVectorReuse } from "../vectors/vector-reuse.ts";
import type { VectorWrites } from "../vectors/vector-writes.ts";
import type { WordWrites } from "../words/word-writes.ts";

/** Writes of the chunks of a version, with their words. Each runs inside a transaction of the caller. */
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
  /**
   * Indexes the chunks of a resource under its new names. They move to new rows, because the index knows the words of a row
   * once and for all. Returns the first row, and by how many words they grew.
   */
  rename(resource: ResourceRow, names: Names): { readonly firstRow: number; readonly grown: number };
  /** Returns their number of words. */
  remove(resource: ResourceRow): number;
}

/** Title and label: what all chunks of a resource are found by. */
type Names = Pick<ResourceRow, "title" | "label">;

/** Prepares the statements on the writing connection. */
export function prepareChunkWrites(
  db: Connection,
  index: WordWrites,
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
  const selectTexts = db.prepare<[number, number], { headings: string; text: string }>(
    "SELECT headings, text FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  const copyChunk = db.prepare(`
    INSERT INTO chunk (row, resource, start, words, headings, text, gap, line)
    SELECT @to, resource, start, @words, headings, text, gap, line FROM chunk WHERE row = @from`);
  const reuse = prepareVectorReuse(db, vectors);

  const add: ChunkWrites["add"] = (resource, parts, chunking, firstRow) => {
    const names = namesOf(resource);
    const headings = parts.map((_, at) => joinHeadings(chunking.spans[at] ?? { headings: [] }));
    const words = index.add(
      firstRow,
      parts.map(({ text }, at) => indexedText(names, headings[at] ?? "", text)),
    );
    for (const [at, { start, line, text, gap }] of parts.entries()) {
      insertChunk.run(firstRow + at, resource.number, start, words[at], headings[at], text, gap, line);
    }
    return words.reduce((sum, count) => sum + count, 0);
  };
  const remove: ChunkWrites["remove"] = (row) => {
    if (row.chunks === 0) return 0;
    const last = row.first_row + row.chunks - 1;
    const words = sumWords.get(row.first_row, last) ?? 0;
    index.remove(row.first_row, row.chunks);
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
      const { scope, first_row: from, chunks } = row;
      const last = from + chunks - 1;
      const firstRow = scopes.reserveRows(scope, chunks);
      const texts = selectTexts.all(from, last);
      const words = index.add(
        firstRow,
        texts.map(({ headings, text }) => indexedText(namesOf(names), headings, text)),
      );
      for (const [at, count] of words.entries())
        copyChunk.run({ from: from + at, to: firstRow + at, words: count });
      vectors.moveRange(scope, from, last, firstRow);
      const grown = words.reduce((sum, count) => sum + count, 0) - remove(row);
      // The label is in no vector.
      if (names.title !== row.title) reuse.markStale({ ...row, first_row: firstRow });
      return { firstRow, grown };
    },
  };
}
