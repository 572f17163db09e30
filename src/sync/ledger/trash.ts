import { join } from "node:path";
import type { DocumentKind, RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { isAtOrBelow } from "./database/subtree.ts";

/** Returns the folder of retained texts in a state folder. */
export function trashFolder(stateDir: string): string {
  return join(stateDir, "trash");
}

/** The retained text of a deleted file. */
export interface TrashedFile {
  readonly id: number;
  readonly source: number;
  /** The source's folder. */
  readonly root: string;
  readonly path: RelativePath;
  readonly docId: string;
  /** File in the trash folder. */
  readonly name: string;
  readonly title: string;
  readonly kind: DocumentKind;
  /** SHA-256 of the retained bytes. */
  readonly hash: string;
  /** Whether they are the very bytes of the deleted file. */
  readonly isExact: boolean;
  readonly sizeBytes: number;
  readonly deletedMs: number;
  readonly untilMs: number;
}

type Row = Omit<TrashedFile, "isExact"> & { isExact: number };

/** Prepares the statements over retained texts. */
export function openTrashRows(db: Sqlite) {
  const columns = `trash.id, source, sources.path AS root, trash.path, doc_id AS docId, name, title, kind, hash,
    is_exact AS isExact, size_bytes AS sizeBytes, deleted_ms AS deletedMs, until_ms AS untilMs`;
  const from = "FROM trash JOIN sources ON sources.id = trash.source";
  const add = db.prepare(
    `INSERT INTO trash (source, path, doc_id, name, title, kind, hash, is_exact, size_bytes, deleted_ms, until_ms)
     SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM sources WHERE path = ? ON CONFLICT DO NOTHING`,
  );
  const has = db.prepare<[string], number>("SELECT 1 FROM trash WHERE doc_id = ?").pluck();
  const below = db.prepare<[{ root: string | null; below: string | null }], Row>(
    `SELECT ${columns} ${from} WHERE (@root IS NULL OR sources.path = @root) AND ${isAtOrBelow("trash.path")}
     ORDER BY deleted_ms DESC, trash.id DESC`,
  );
  const oldest = db.prepare<[number], Row>(`SELECT ${columns} ${from} ORDER BY deleted_ms, trash.id LIMIT ?`);
  const expired = db.prepare<[number, number], Row>(
    `SELECT ${columns} ${from} WHERE until_ms <= ? ORDER BY until_ms LIMIT ?`,
  );
  const total = db.prepare<[], number>("SELECT coalesce(sum(size_bytes), 0) FROM trash").pluck();
  const knows = db.prepare<[string], number>("SELECT 1 FROM trash WHERE name = ?").pluck();
  const remove = db.prepare("DELETE FROM trash WHERE id = ?");
  const fromRow = ({ isExact, ...row }: Row): TrashedFile => ({ ...row, isExact: isExact !== 0 });

  return {
    /** Adds a text. Does nothing if the resource has one already, or if no known source has that folder. */
    add: ({
      root,
      path,
      docId,
      name,
      title,
      kind,
      hash,
      isExact,
      sizeBytes,
      deletedMs,
      untilMs,
    }: Omit<TrashedFile, "id" | "source">): void => {
      add.run(path, docId, name, title, kind, hash, isExact ? 1 : 0, sizeBytes, deletedMs, untilMs, root);
    },
    has: (docId: string): boolean => has.get(docId) !== undefined,
    /** Returns texts at or below a path of a source, or all, newest first. `root` is the source's folder. */
    below: (root?: string, path: RelativePath = ""): TrashedFile[] =>
      below.all({ root: root ?? null, below: path === "" ? null : path }).map(fromRow),
    /** Returns the oldest texts of all sources, at most `limit`. */
    oldest: (limit: number): TrashedFile[] => oldest.all(limit).map(fromRow),
    /** Returns expired texts, at most `limit`. */
    expired: (nowMs: number, limit: number): TrashedFile[] => expired.all(nowMs, limit).map(fromRow),
    totalBytes: (): number => total.get() ?? 0,
    knows: (name: string): boolean => knows.get(name) !== undefined,
    remove: (id: number): void => void remove.run(id),
  };
}
