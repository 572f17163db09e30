import type { Connection } from "./connection.ts";
import { makeRowList, type RowList } from "./row-list.ts";
import { rowOf } from "./rows.ts";
import type { Place } from "./scopes.ts";

/** Memory for posting lists, in bytes: every word of thousands of questions at 100,000 chunks, of hundreds at a million. */
const BYTES_MAX = 64 * 1024 * 1024;
/** What a list takes beside its rows: its key, its objects. */
const LIST_BYTES = 400;
/**
 * Rows that one call reads, some 10 ms: the list of a very common word among a million chunks takes a good part of a
 * second, in which nobody else would be answered.
 */
const SLICE_ROWS = 20_000;
/** More than a list can have. */
const ALL_ROWS = 2 ** 33;
/** Share of a scope's chunks that may be gone while lists still name them; see `of`. */
const GONE_SHARE_MAX = 0.02;

/**
 * The list of a word that most chunks hold is brought up to date only when the scope has grown by this share: its length
 * is all that is needed of it, unless a query has no other words.
 */
const BROAD_GROWTH_MAX = 0.02;

/** Sequences (rows within the scope, ascending) of the chunks that are listed under a term. */
export interface Postings {
  /** Begins a slice of work, after which `of` puts off the rest; `isLast`: one without a bound. */
  beginSlice(isLast: boolean): void;
  /**
   * Reads a list, or brings the one in memory up to date: new chunks have higher numbers, so only they are read.
   * A list may still name chunks that were deleted since, up to a small share, and in the search of a whole scope that of
   * a word most chunks hold may lack the newest. Undefined: the slice is used up; the next one goes on where it ended.
   */
  of(place: Place, term: string): RowList | undefined;
  /** Chunks that are gone and that lists given in this slice may still name, at most. */
  goneNamed(): number;
}

interface List {
  readonly rows: RowList;
  /** Sequences below this one are in the list. */
  upTo: number;
  /** Whether it was read to its end once. */
  isWhole: boolean;
  readonly retitled: number;
  /** Chunks of the scope that had come and gone when the list was begun. */
  readonly gone: number;
}

/** Prepares posting lists of the full-text index, kept in memory up to a bound, those longest unused out first. */
export function preparePostings(db: Connection): Postings {
  const select = db
    .prepare<[first: bigint, term: string, from: bigint, to: bigint, limit: number], number>(
      // The bounds are bigint because FTS5 uses them in its look-up only when they are integers. What is left without the
      // scope's part is a small number, which costs less than half on its way to JavaScript.
      "SELECT rowid - ? FROM chunk_index WHERE chunk_index MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
    )
    .pluck();
  const lists = new Map<string, List>();
  let bytes = 0;
  let left = SLICE_ROWS;
  let goneNamed = 0;

  /** Reads on; whether all is read. */
  function readOn(list: List, place: Place, term: string): boolean {
    const first = rowOf(place.scope, 0);
    const limit = left;
    if (limit <= 0) return false;
    const from = BigInt(first + list.upTo);
    const found = select.all(BigInt(first), quoted(term), from, BigInt(first + place.nextSequence), limit);
    list.rows.append(found);
    left -= found.length;
    const last = found.at(-1);
    const isEnd = found.length < limit || last === undefined;
    list.upTo = isEnd ? place.nextSequence : last + 1;
    list.isWhole ||= isEnd;
    return isEnd;
  }

  function drop(key: string, list: List): void {
    lists.delete(key);
    bytes -= list.rows.bytes + LIST_BYTES;
  }

  function keep(key: string, list: List): void {
    lists.set(key, list);
    bytes += list.rows.bytes + LIST_BYTES;
    for (const [oldest, old] of lists) {
      if (bytes <= BYTES_MAX || lists.size === 1) break;
      drop(oldest, old);
    }
  }

  return {
    beginSlice: (isLast) => {
      left = isLast ? ALL_ROWS : SLICE_ROWS;
      goneNamed = 0;
    },
    of(place, term) {
      const key = `${place.scope} ${term}`;
      const gone = place.nextSequence - place.chunks;
      const known = lists.get(key);
      if (known !== undefined) drop(key, known);
      const isRight =
        known !== undefined &&
        known.retitled === place.retitled &&
        gone - known.gone <= place.chunks * GONE_SHARE_MAX &&
        known.upTo <= place.nextSequence;
      const list = isRight
        ? known
        : { rows: makeRowList(), upTo: 0, isWhole: false, retitled: place.retitled, gone };
      const isDone = list.upTo === place.nextSequence || mayLag(place, list) || readOn(list, place, term);
      keep(key, list);
      goneNamed = Math.max(goneNamed, gone - list.gone);
      return isDone ? list.rows : undefined;
    },
    goneNamed: () => goneNamed,
  };
}

function mayLag({ chunks, rangeChunks, nextSequence }: Place, list: List): boolean {
  const isBroad = list.isWhole && list.rows.length * 2 > chunks;
  return isBroad && rangeChunks === chunks && nextSequence - list.upTo < nextSequence * BROAD_GROWTH_MAX;
}

/** A term as an FTS5 string: between the quotes nothing has a meaning. */
function quoted(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}
