import type { Connection } from "../database/connection.ts";

/** Pages of the index that one step writes, of 4 KB each: some tens of milliseconds. */
const STEP_PAGES = 500;

/**
 * Prepares the merge of the whole index of words into one segment. The index marks the words of a removed chunk as removed, and
 * only a merge drops them (https://sqlite.org/fts5.html#the_merge_command). Each call is a step inside a transaction of the
 * caller; the first one has to say so. Returns false once nothing is left to merge.
 */
export function prepareWordMerge(db: Connection): (isFirst: boolean) => boolean {
  const merge = db.prepare("INSERT INTO chunk_index (chunk_index, rank) VALUES ('merge', ?)");
  const changes = db.prepare<[], number>("SELECT total_changes()").pluck();
  return (isFirst) => {
    const before = changes.get() ?? 0;
    merge.run(isFirst ? -STEP_PAGES : STEP_PAGES);
    // A command that merges nothing changes at most one row, as SQLite documents.
    return isFirst || (changes.get() ?? 0) - before > 1;
  };
}
