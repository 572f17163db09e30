import { rowOf, rowsOfScope, scopeOfRow } from "../../../index/rows.ts";
import { isSealed } from "../../../index/seal.ts";
import { pagesListed, type RunHead } from "../../../index/words/run.ts";
import type { Connection } from "../database/connection.ts";
import { prepareRunWrites } from "../words/run-writes.ts";
import { pageNumber } from "../words/word-parts.ts";
import type { WordWrites } from "../words/word-writes.ts";
import type { ResourceWrites } from "./writes.ts";

/** Chunks whose documents one step indexes anew: others who write wait for it. */
const CHUNKS = 200;

/** A part of the index of words: a run by its number, or a segment by its first row. */
interface PartName {
  readonly kind: "segment" | "run";
  readonly number: number;
}

/** A part with the row of its first chunk. */
interface PlacedPart extends PartName {
  readonly first: number;
}

/**
 * Prepares the rebuild of the parts that differ from what was written: their documents move to new parts, a few in each step, then the
 * part is dropped. Returns steps, each to be run in a transaction, which return false when they have ended. A repetition after a crash
 * goes on.
 */
export function prepareRebuild(
  db: Connection,
  resources: Pick<ResourceWrites, "reindex">,
  merges: Pick<WordWrites, "abandon">,
): () => () => boolean {
  const selectParts = prepareParts(db);
  const selectScopes = db.prepare<[], number>("SELECT number FROM scope").pluck();
  const selectResources = db
    .prepare<[first: number, last: number], number>(
      `SELECT resource FROM chunk JOIN resource ON number = resource
      WHERE row BETWEEN ? AND ? AND is_deleted = 0 ORDER BY row LIMIT ${CHUNKS}`,
    )
    .pluck();
  const isSound = prepareCheck(db);
  const runs = prepareRunWrites(db);

  /** Makes a step of the rebuild of a part. Returns the runs that are dropped at its end; undefined: it has not ended. */
  function step({ kind, number: name, first }: PlacedPart): number[] | undefined {
    const scope = scopeOfRow(first);
    const parts = selectParts(scope);
    const at = parts.findIndex((part) => part.kind === kind && part.number === name);
    // A merge has taken its place.
    if (at < 0) return [];
    const last = (parts[at + 1]?.first ?? rowOf(scope + 1, 0)) - 1;
    const moving = new Set(selectResources.all(first, last));
    for (const number of moving) resources.reindex(number);
    if (moving.size > 0) return undefined;
    // One that is under way may still have the chunks that moved.
    merges.abandon();
    const range = { scope, first: first - rowOf(scope, 0), last: last - rowOf(scope, 0) };
    return runs.exchange({ ...range, lastRemoval: Number.MAX_SAFE_INTEGER, number: 0, head: EMPTY });
  }
  function* steps(): Generator<undefined> {
    for (const scope of selectScopes.all()) {
      for (const part of selectParts(scope)) {
        yield;
        if (isSound(part)) continue;
        let dropped = step(part);
        for (; dropped === undefined; dropped = step(part)) yield;
        for (const run of dropped) yield* runs.removePages(run);
      }
    }
  }
  return () => {
    const made = steps();
    return () => made.next().done !== true;
  };
}

const NONE = Buffer.alloc(0);
const EMPTY = { rows: 0, first: 0, sequences: NONE, lengths: NONE, directory: NONE, filter: NONE };

/** Prepares the reading of the parts of a scope, ordered by their first rows. */
function prepareParts(db: Connection): (scope: number) => PlacedPart[] {
  const select = db.prepare<[{ scope: number; first: number; last: number }], PlacedPart>(`
    SELECT 'segment' AS kind, first_row AS number, first_row AS first FROM word_segment
      WHERE first_row BETWEEN @first AND @last
    UNION ALL SELECT 'run', number, @first + first FROM word_run WHERE scope = @scope
    ORDER BY first`);
  return (scope) => select.all({ scope, ...rowsOfScope(scope) });
}

/** Prepares whether a part is as it was written. */
function prepareCheck(db: Connection): (part: PartName) => boolean {
  const selectSegment = db
    .prepare<[number], Buffer>("SELECT data FROM word_segment WHERE first_row = ?")
    .pluck();
  const selectRun = db.prepare<[number], RunHead>(
    "SELECT sequences, lengths, directory, filter FROM word_run WHERE number = ?",
  );
  const selectPages = db
    .prepare<[number, number], Buffer>("SELECT data FROM word_page WHERE number BETWEEN ? AND ?")
    .pluck();
  return ({ kind, number }) => {
    if (kind === "segment") return isSealed(selectSegment.get(number) ?? NONE);
    const head = selectRun.get(number);
    if (head === undefined || !Object.values(head).every(isSealed)) return false;
    let pages = 0;
    for (const data of selectPages.iterate(pageNumber(number, 0), pageNumber(number + 1, 0) - 1)) {
      if (!isSealed(data)) return false;
      pages += 1;
    }
    return pages === pagesListed(head.directory.length);
  };
}
