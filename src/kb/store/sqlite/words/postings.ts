import type { Connection } from "../database/connection.ts";
import { makeRowList, type RowList } from "../../../index/row-list.ts";
import { rowOf } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/** Memory for posting lists, in bytes: all words of thousands of questions at 100,000 chunks, of hundreds at a million. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Overhead of a list: its key and its objects. */
const LIST_BYTES = 400;
/**
 * Maximum rows that one call reads, in about 10 ms. The list of a very common word in a million chunks takes a large part of
 * a second, during which no other read could run.
 */
const SLICE_ROWS = 20_000;
/** More rows than a list can have. */
const ALL_ROWS = 2 ** 33;
/** Share of a scope's chunks that may be removed before a list is stale; see `of`. */
const GONE_SHARE_MAX = 0.02;

/**
 * Growth of a scope after which the list of a word in most chunks is updated. Only the length of such a list is needed,
 * unless a query has no other words.
 */
const BROAD_GROWTH_MAX = 0.02;

/** Posting lists: the sequences (rows within the scope, ascending) of the chunks that contain a term. */
export interface Postings {
  /** Begins a slice, which bounds what the next calls of `of` read. `isLast`: no bound. */
  beginSlice(isLast: boolean): void;
  /**
   * Reads a list, or updates the one in memory: new chunks have higher numbers, so only they are read. A list may still name
   * a small share of chunks that were deleted since. In a search of a whole scope, the list of a word in most chunks may lack
   * the newest. Returns undefined if the slice is used up; the next slice continues.
   */
  of(target: SearchTarget, term: string): RowList | undefined;
  /** Maximum number of deleted chunks that lists returned in this slice may still name. */
  goneNamed(): number;
}

interface List {
  readonly scope: number;
  readonly term: string;
  readonly rows: RowList;
  /** Sequences below this one are in the list. */
  upTo: number;
  /** Whether the list has been read to its end at least once. */
  isWhole: boolean;
  readonly retitled: number;
  /** Chunks of the scope that had been removed when the list was created. */
  readonly gone: number;
}

/** Prepares the posting lists of the full-text index, with a cache of `bytesMax` that evicts the least recently used ones. */
export function preparePostings(db: Connection, bytesMax: number = BYTES_MAX): Postings {
  const select = db
    .prepare<[first: bigint, term: string, from: bigint, to: bigint, limit: number], number>(
      // The bounds are bigint because FTS5 uses them in its lookup only if they are integers. Subtracting the first row of the
      // scope leaves small numbers, whose conversion to JavaScript costs less than half.
      "SELECT rowid - ? FROM chunk_index WHERE chunk_index MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
    )
    .pluck();
  /** Least recently used first. */
  const lists = new Set<List>();
  /** The same lists by scope and term. */
  const byTerm = new Map<number, Map<string, List>>();
  let bytes = 0;
  let left = SLICE_ROWS;
  let goneNamed = 0;

  /** Continues to read a list. Returns whether it is complete. */
  function readOn(list: List, target: SearchTarget, term: string): boolean {
    const first = rowOf(target.scope, 0);
    const limit = left;
    if (limit <= 0) return false;
    const from = BigInt(first + list.upTo);
    const found = select.all(BigInt(first), quoted(term), from, BigInt(first + target.nextSequence), limit);
    list.rows.append(found);
    left -= found.length;
    const last = found.at(-1);
    const isEnd = found.length < limit || last === undefined;
    list.upTo = isEnd ? target.nextSequence : last + 1;
    list.isWhole ||= isEnd;
    return isEnd;
  }

  function drop(list: List): void {
    lists.delete(list);
    bytes -= list.rows.bytes + LIST_BYTES;
    const ofScope = byTerm.get(list.scope);
    ofScope?.delete(list.term);
    if (ofScope?.size === 0) byTerm.delete(list.scope);
  }

  function keep(list: List): void {
    lists.add(list);
    bytes += list.rows.bytes + LIST_BYTES;
    const ofScope = byTerm.get(list.scope) ?? new Map<string, List>();
    byTerm.set(list.scope, ofScope.set(list.term, list));
    for (const oldest of lists) {
      if (bytes <= bytesMax || lists.size === 1) break;
      drop(oldest);
    }
  }

  return {
    beginSlice: (isLast) => {
      left = isLast ? ALL_ROWS : SLICE_ROWS;
      goneNamed = 0;
    },
    of(target, term) {
      const { scope, retitled } = target;
      const gone = target.nextSequence - target.chunks;
      const known = byTerm.get(scope)?.get(term);
      if (known !== undefined) drop(known);
      const isCurrent =
        known !== undefined &&
        known.retitled === retitled &&
        gone - known.gone <= target.chunks * GONE_SHARE_MAX &&
        known.upTo <= target.nextSequence;
      const list = isCurrent
        ? known
        : { scope, term, rows: makeRowList(), upTo: 0, isWhole: false, retitled, gone };
      const isDone = list.upTo === target.nextSequence || mayLag(target, list) || readOn(list, target, term);
      keep(list);
      goneNamed = Math.max(goneNamed, gone - list.gone);
      return isDone ? list.rows : undefined;
    },
    goneNamed: () => goneNamed,
  };
}

function mayLag({ chunks, rangeChunks, nextSequence }: SearchTarget, list: List): boolean {
  const isBroad = list.isWhole && list.rows.length * 2 > chunks;
  return isBroad && rangeChunks === chunks && nextSequence - list.upTo < nextSequence * BROAD_GROWTH_MAX;
}

/** Quotes a term as an FTS5 string, in which no character has a special meaning. */
export function quoted(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}
