import { join } from "node:path";
import type { DocumentKind, RelativePath } from "../plan/model.ts";
import type { Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";
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
  const { run, all, value, has } = statementsOf(db);
  const texts = `SELECT trash.id, source, sources.path AS root, trash.path, doc_id AS docId, name, title, kind, hash,
      is_exact AS isExact, size_bytes AS sizeBytes, deleted_ms AS deletedMs, until_ms AS untilMs
    FROM trash JOIN sources ON sources.id = trash.source`;
  const add = run<[Omit<Row, "id" | "source">]>(
    `INSERT INTO trash (source, path, doc_id, name, title, kind, hash, is_exact, size_bytes, deleted_ms, until_ms)
     SELECT id, @path, @docId, @name, @title, @kind, @hash, @isExact, @sizeBytes, @deletedMs, @untilMs
     FROM sources WHERE path = @root ON CONFLICT DO NOTHING`,
  );
  const below = all<[{ root: string | undefined; below: RelativePath | null }], Row>(
    `${texts} WHERE (@root IS NULL OR sources.path = @root) AND ${isAtOrBelow("trash.path")}
     ORDER BY deleted_ms DESC, trash.id DESC`,
  );
  const oldest = all<[limit: number], Row>(`${texts} ORDER BY deleted_ms, trash.id LIMIT ?`);
  const expired = all<[nowMs: number, limit: number], Row>(
    `${texts} WHERE until_ms <= ? ORDER BY until_ms LIMIT ?`,
  );
  const total = value<[], number>("SELECT sum(size_bytes) FROM trash");
  const fromRow = ({ isExact, ...row }: Row): TrashedFile => ({ ...row, isExact: isExact !== 0 });

  return {
    /** Adds a text. Does nothing if the resource has one already, or if no known source has that folder. */
    add: ({ isExact, ...text }: Omit<TrashedFile, "id" | "source">): void =>
      add({ ...text, isExact: Number(isExact) }),
    has: has<[docId: string]>("SELECT 1 FROM trash WHERE doc_id = ?"),
    /** Returns texts at or below a path of a source, or all, newest first. `root` is the source's folder. */
    below: (root?: string, path: RelativePath = ""): TrashedFile[] =>
      below({ root, below: path === "" ? null : path }).map(fromRow),
    /** Returns the oldest texts of all sources, at most `limit`. */
    oldest: (limit: number): TrashedFile[] => oldest(limit).map(fromRow),
    /** Returns expired texts, at most `limit`. */
    expired: (nowMs: number, limit: number): TrashedFile[] => expired(nowMs, limit).map(fromRow),
    totalBytes: (): number => total() ?? 0,
    knows: has<[name: string]>("SELECT 1 FROM trash WHERE name = ?"),
    remove: run<[id: number]>("DELETE FROM trash WHERE id = ?"),
  };
}
