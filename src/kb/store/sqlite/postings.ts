import type { Connection } from "./connection.ts";
import { rowOf } from "./rows.ts";
import type { Place } from "./scopes.ts";

/** Memory for posting lists, in bytes: every word of some hundred questions at 100,000 chunks. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Lists shorter than this are read each time: that costs no more than looking whether they are still right. */
const KEPT_MIN = 100;
/** Share of a scope's chunks that may be gone while lists still name them; see `rowsOf`. */
const GONE_SHARE_MAX = 0.02;

/**
 * The list of a word that most chunks hold is brought up to date only when the scope has grown by this share: its length
 * is all that is needed of it, unless a query has no other words.
 */
const BROAD_GROWTH_MAX = 0.02;

/** Sequences (rows within the scope, ascending) of the chunks that are listed under a term. */
export interface Postings {
  /**
   * Reads a list, or brings the one in memory up to date: new chunks have higher numbers, so only they are read.
   * A list may still name chunks that were deleted since, up to a small share, and in the search of a whole scope that of
   * a word most chunks hold may lack the newest.
   */
  of(place: Place, term: string): Uint32Array;
}

interface List {
  rows: Uint32Array;
  length: number;
  /** Sequences below this one are in the list. */
  upTo: number;
  readonly retitled: number;
  /** Chunks of the scope that had come and gone when the list was read. */
  readonly gone: number;
}

/** Prepares posting lists of the full-text index, kept in memory up to a bound, those longest unused out first. */
export function preparePostings(db: Connection): Postings {
  const select = db
    .prepare<[string, bigint, bigint], number>(
      // The bounds are bigint because FTS5 uses them in its look-up only when they are integers.
      "SELECT rowid FROM chunk_index WHERE chunk_index MATCH ? AND rowid BETWEEN ? AND ?",
    )
    .pluck();
  const lists = new Map<string, List>();
  let bytes = 0;

  const read = (place: Place, term: string, from: number): number[] => {
    const first = rowOf(place.scope, 0);
    return select
      .all(quoted(term), BigInt(first + from), BigInt(first + place.nextSequence))
      .map((row) => row - first);
  };

  function drop(key: string, list: List): void {
    lists.delete(key);
    bytes -= list.rows.byteLength;
  }

  function keep(key: string, list: List): void {
    lists.set(key, list);
    bytes += list.rows.byteLength;
    for (const [oldest, old] of lists) {
      if (bytes <= BYTES_MAX) break;
      drop(oldest, old);
    }
  }

  return {
    of(place, term) {
      const key = `${place.scope} ${term}`;
      const gone = place.nextSequence - place.chunks;
      const list = lists.get(key);
      if (list !== undefined) drop(key, list);
      const isRight =
        list !== undefined &&
        list.retitled === place.retitled &&
        gone - list.gone <= place.chunks * GONE_SHARE_MAX &&
        list.upTo <= place.nextSequence;
      if (!isRight) {
        const rows = Uint32Array.from(read(place, term, 0));
        if (rows.length >= KEPT_MIN) {
          const { nextSequence: upTo, retitled } = place;
          keep(key, { rows, length: rows.length, upTo, retitled, gone });
        }
        return rows;
      }
      if (list.upTo < place.nextSequence && !mayLag(place, list)) {
        append(list, read(place, term, list.upTo));
        list.upTo = place.nextSequence;
      }
      keep(key, list);
      return list.rows.subarray(0, list.length);
    },
  };
}

function mayLag({ chunks, rangeChunks, nextSequence }: Place, list: List): boolean {
  const isBroad = list.length * 2 > chunks;
  return isBroad && rangeChunks === chunks && nextSequence - list.upTo < nextSequence * BROAD_GROWTH_MAX;
}

function append(list: List, rows: readonly number[]): void {
  const length = list.length + rows.length;
  if (length > list.rows.length) {
    const longer = new Uint32Array(Math.ceil(length * 1.25));
    longer.set(list.rows.subarray(0, list.length));
    list.rows = longer;
  }
  list.rows.set(rows, list.length);
  list.length = length;
}

/** A term as an FTS5 string: between the quotes nothing has a meaning. */
function quoted(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}
