import { indexEntry } from "../../lexical/index-text.ts";
import type { Chunking, NewResource, Resource, ResourceChange, ResourceKey } from "../store.ts";
import type { Connection } from "./connection.ts";
import { readContent } from "./content.ts";
import type { IndexChanges } from "./index-changes.ts";
import { indexedText, joinHeadings, takeApart, type Part } from "./parts.ts";
import { resourceOf, SELECT_RESOURCE, type ResourceRow } from "./records.ts";
import { prepareScopeWrites } from "./scope-writes.ts";
import { writeVectors, type VectorWrites } from "./vector-writes.ts";

/** Writes of resources and their chunks; each runs inside a transaction of the caller. */
export interface ResourceWrites {
  /** The answer comes without the content, which the caller has. */
  create(resource: NewResource, chunking: Chunking): Omit<Resource, "content">;
  update(change: ResourceChange, chunking: Chunking | undefined): Resource | undefined;
  remove(at: ResourceKey & { readonly nowIso: string }): Resource | undefined;
}

/** Prepares the statements on the writing connection. */
export function prepareResourceWrites(
  db: Connection,
  index: IndexChanges,
  vectors: VectorWrites,
): ResourceWrites {
  const selectResource = db.prepare<[string, string], ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`,
  );
  const content = readContent(db);
  const scopes = prepareScopeWrites(db);
  const insertResource = db.prepare(`
    INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at,
      updated_at, first_row, chunks)
    VALUES (@id, @accountId, @scope, @origin, @title, @description, @url, @head, @settings, @createdAt,
      @createdAt, @firstRow, @chunks)`);
  const updateResource = db.prepare(`
    UPDATE resource SET title = @title, description = @description, url = @url, head = @head, settings = @settings,
      refreshed_at = @nowIso, updated_at = @nowIso, version = @version, first_row = @firstRow, chunks = @chunks
    WHERE number = @number`);
  const markDeleted = db.prepare(`
    UPDATE resource SET is_deleted = 1, updated_at = ?, head = '', chunks = 0 WHERE number = ?`);
  const insertChunk = db.prepare(
    "INSERT INTO chunk (row, resource, start, words, headings, text, gap) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const deleteChunks = db.prepare("DELETE FROM chunk WHERE row BETWEEN ? AND ?");
  const sumWords = db
    .prepare<[number, number], number>("SELECT total(words) FROM chunk WHERE row BETWEEN ? AND ?")
    .pluck();
  const selectTexts = db.prepare<[number, number], { row: number; headings: string; text: string }>(
    "SELECT row, headings, text FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row",
  );
  const setWords = db.prepare("UPDATE chunk SET words = ? WHERE row = ?");
  const read = (at: ResourceKey): ResourceRow | undefined => selectResource.get(at.id, at.accountId);

  /** Writes the chunks of one version; returns where they begin and how many words they have. */
  function addChunks(
    resource: { readonly number: number; readonly scope: number; readonly title: string },
    parts: readonly Part[],
    chunking: Chunking,
    firstRow: number,
  ): number {
    let words = 0;
    for (const [at, { start, text, gap }] of parts.entries()) {
      const headings = joinHeadings(chunking.spans[at]?.headings ?? []);
      const entry = indexEntry(indexedText(resource.title, headings, text));
      const row = firstRow + at;
      insertChunk.run(row, resource.number, start, entry.words, headings, text, gap);
      index.insert(row, entry.text);
      words += entry.words;
    }
    writeVectors(vectors, resource.scope, firstRow, chunking);
    return words;
  }

  /** Takes the chunks, vectors and index entries of a resource away; returns how many words they had. */
  function dropChunks(row: ResourceRow): number {
    if (row.chunks === 0) return 0;
    const last = row.first_row + row.chunks - 1;
    const words = sumWords.get(row.first_row, last) ?? 0;
    for (let at = row.first_row; at <= last; at++) index.remove(at);
    vectors.removeRange(row.scope, row.first_row, last);
    deleteChunks.run(row.first_row, last);
    return words;
  }

  /** Indexes the chunks of a resource anew under its changed title; returns by how many words they grew. */
  function retitle(row: ResourceRow, title: string): number {
    let grown = -(sumWords.get(row.first_row, row.first_row + row.chunks - 1) ?? 0);
    for (const chunk of selectTexts.all(row.first_row, row.first_row + row.chunks - 1)) {
      const entry = indexEntry(indexedText(title, chunk.headings, chunk.text));
      setWords.run(entry.words, chunk.row);
      index.replace(chunk.row, entry.text);
      grown += entry.words;
    }
    scopes.noteRetitled(row.scope);
    return grown;
  }

  return {
    create(resource, chunking) {
      const { head, chunks: parts } = takeApart(resource.content, chunking.spans);
      const { scope, collectionId } = scopes.open(resource);
      const firstRow = scopes.takeRows(scope, chunking.spans.length);
      const { lastInsertRowid } = insertResource.run({
        ...pick(resource),
        scope,
        head,
        settings: JSON.stringify(resource.settings),
        firstRow,
        chunks: chunking.spans.length,
      });
      const number = Number(lastInsertRowid);
      const words = addChunks({ number, scope, title: resource.title }, parts, chunking, firstRow);
      scopes.count(scope, 1, chunking.spans.length, words);
      const { content: _, ...rest } = resource;
      return {
        ...rest,
        collectionId,
        version: 1,
        chunkCount: chunking.spans.length,
        refreshedAt: null,
        updatedAt: resource.createdAt,
        isDeleted: false,
        status: "chunked",
      };
    },

    update(change, chunking) {
      const before = read(change);
      if (before === undefined) return undefined;
      const title = change.title ?? before.title;
      const text = change.content ?? content.of(before);
      const fields = {
        number: before.number,
        title,
        description: change.description ?? before.description,
        url: change.url ?? before.url,
        settings: change.settings === undefined ? before.settings : JSON.stringify(change.settings),
        nowIso: change.nowIso,
      };
      if (chunking === undefined) {
        const grown = title === before.title ? 0 : retitle(before, title);
        scopes.count(before.scope, 0, 0, grown);
        const { head, version, chunks, first_row: firstRow } = before;
        updateResource.run({ ...fields, head, version, firstRow, chunks });
      } else {
        const { head, chunks: parts } = takeApart(text, chunking.spans);
        const wordsBefore = dropChunks(before);
        const firstRow = scopes.takeRows(before.scope, chunking.spans.length);
        const words = addChunks({ ...before, title }, parts, chunking, firstRow);
        scopes.count(before.scope, 0, chunking.spans.length - before.chunks, words - wordsBefore);
        updateResource.run({
          ...fields,
          head,
          version: before.version + 1,
          firstRow,
          chunks: chunking.spans.length,
        });
      }
      return resourceOf(existing(read(change)), text);
    },

    remove(at) {
      const before = read(at);
      if (before === undefined) return undefined;
      const text = content.of(before);
      scopes.count(before.scope, -1, -before.chunks, -dropChunks(before));
      markDeleted.run(at.nowIso, before.number);
      return { ...resourceOf(before, text), isDeleted: true, updatedAt: at.nowIso };
    },
  };
}

function pick({ id, accountId, origin, title, description, url, createdAt }: NewResource): object {
  return { id, accountId, origin, title, description, url, createdAt };
}

function existing(row: ResourceRow | undefined): ResourceRow {
  if (row === undefined) throw new TypeError("a resource just written was not found");
  return row;
}
