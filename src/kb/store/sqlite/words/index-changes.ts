import type { Connection } from "../database/connection.ts";

interface Change {
  /** The row stands in the index from an earlier transaction and has to leave. */
  readonly remove: boolean;
  /** What the row is to be found by afterwards; undefined: by nothing. */
  readonly text: Buffer | undefined;
}

/** Collects what a transaction does to the full-text index. */
export interface IndexChanges {
  insert(row: number, text: Buffer): void;
  remove(row: number): void;
  replace(row: number, text: Buffer): void;
  /** Keeps what came since the last settling. */
  settle(): void;
  /** Drops what came since the last settling. */
  revert(): void;
  /** Writes everything in row order and starts anew: FTS5 flushes its buffer whenever a row number falls. */
  write(): void;
  /** Starts anew without writing. */
  clear(): void;
}

/**
 * Changes of the full-text index within one transaction, written at its end and sorted: FTS5 would flush a segment
 * at every savepoint and at every step back in row numbers, which makes several small writes in one transaction
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
