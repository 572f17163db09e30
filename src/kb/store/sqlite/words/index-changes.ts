import type { Connection } from "../database/connection.ts";

interface Change {
  /** The row is in the index since an earlier transaction and must be removed. */
  readonly remove: boolean;
  /** The new entry of the row; undefined: none. */
  readonly text: Buffer | undefined;
}

/** Collects the changes of a transaction to the full-text index. */
export interface IndexChanges {
  insert(row: number, text: Buffer): void;
  remove(row: number): void;
  replace(row: number, text: Buffer): void;
  /** Accepts the changes since the last call of `settle`. */
  settle(): void;
  /** Discards the changes since the last call of `settle`. */
  revert(): void;
  /** Writes the settled changes in row order, because FTS5 flushes its buffer whenever a row number falls, and clears them. */
  write(): void;
  /** Discards all changes. */
  clear(): void;
}

/**
 * Collects changes of the full-text index, which are sorted and written at the end of a transaction. Otherwise FTS5 would
 * flush a segment at every savepoint and whenever a row number falls, so that several small writes in one transaction would
 * cost as much as many transactions.
 */
export function collectIndexChanges(db: Connection): IndexChanges {
  const insertRow = db.prepare("INSERT INTO chunk_index (rowid, terms) VALUES (?, ?)");
  const deleteRow = db.prepare("DELETE FROM chunk_index WHERE rowid = ?");
  const settled = new Map<number, Change>();
  const open = new Map<number, Change>();
  const isIndexed = (row: number): boolean => (open.get(row) ?? settled.get(row))?.remove ?? true;

  return {
    insert: (row, text) => open.set(row, { remove: false, text }),
    remove: (row) => open.set(row, { remove: isIndexed(row), text: undefined }),
    replace: (row, text) => open.set(row, { remove: isIndexed(row), text }),
    settle: () => {
      for (const [row, change] of open) settled.set(row, change);
      open.clear();
    },
    revert: () => open.clear(),
    write: () => {
      const changes = [...settled].sort(([a], [b]) => a - b);
      settled.clear();
      for (const [row, change] of changes) {
        if (change.remove) deleteRow.run(row);
        if (change.text !== undefined) insertRow.run(row, change.text);
      }
    },
    clear: () => {
      settled.clear();
      open.clear();
    },
  };
}
