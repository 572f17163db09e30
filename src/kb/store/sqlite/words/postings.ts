import type { Connection } from "../database/connection.ts";
import { prepareNewest } from "./newest.ts";
import { makeRowList, type RowList } from "../../../index/row-list.ts";
import { rowOf } from "../../../index/rows.ts";
import type { Place } from "../scopes/scopes.ts";

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

/**
 * New chunks since the last search whose words are found from their texts, some 50 µs each, and put into all lists in memory. With more, a
 * list is brought up to date from the index when its word is next asked for: some 0.1 ms for a rare word, 2 ms for a common one.
 */
const NEW_MAX = 256;
/** Words of them that one call looks at, some 10 ms: where chunks are large, the rest is found by the next search. */
const NEW_WORDS_MAX = 40_000;
/** Scopes that are followed so, those longest unused out first. */
const SCOPES_MAX = 1000;

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
  readonly scope: number;
  readonly term: string;
  readonly rows: RowList;
  /** Sequences below this one are in the list. */
  upTo: number;
  /** Whether it was read to its end once, */
  isWhole: boolean;
  /** and whether it was when it was read last. */
  isAtEnd: boolean;
  readonly retitled: number;
  /** Chunks of the scope that had come and gone when the list was begun. */
  readonly gone: number;
}

/** A scope whose new chunks are put into the lists as they come. */
interface Followed {
  /** A list that was up to date at this sequence or at a later one */
  readonly from: number;
  /** is up to date at this one: what came between is in it. */
  to: number;
  readonly retitled: number;
}

/**
 * Prepares posting lists of the full-text index, kept in memory up to a bound, those longest unused out first.
 *
 * While documents come in, every search would ask the index anew for each of its words, for the few chunks since that word was
 * last asked for; and just then its pages are not in memory, for each write empties SQLite's cache of them. So the words of new
 * chunks are found once, for all lists.
 */
export function preparePostings(db: Connection): Postings {
  const select = db
    .prepare<[first: bigint, term: string, from: bigint, to: bigint, limit: number], number>(
      // The bounds are bigint because FTS5 uses them in its look-up only when they are integers. What is left without the
      // scope's part is a small number, which costs less than half on its way to JavaScript.
      "SELECT rowid - ? FROM chunk_index WHERE chunk_index MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
    )
    .pluck();
  const newest = prepareNewest(db);
  /** Those longest unused first. */
  const lists = new Set<List>();
  /** The same by scope and term. */
  const byTerm = new Map<number, Map<string, List>>();
  const followed = new Map<number, Followed>();
  let bytes = 0;
  let left = SLICE_ROWS;
  let wordsLeft = NEW_WORDS_MAX;
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
    list.isAtEnd = isEnd;
    return isEnd;
  }

  /** Puts the new chunks of a scope into the lists of their words. */
  function follow(place: Place): Followed {
    const { scope, nextSequence, retitled } = place;
    const known = followed.get(scope);
    if (known?.to === nextSequence && known.retitled === retitled) return known;
    const isNear =
      known !== undefined &&
      known.retitled === retitled &&
      known.to < nextSequence &&
      nextSequence - known.to <= NEW_MAX;
    const next = isNear ? known : { from: nextSequence, to: nextSequence, retitled };
    if (isNear) {
      const ofScope = byTerm.get(scope);
      if (wordsLeft <= 0) return next;
      const { chunks, readTo, words } = newest(place, next.to, wordsLeft);
      for (const { sequence, forms } of chunks) {
        for (const form of forms) append(ofScope?.get(form), next, sequence);
      }
      next.to = readTo;
      wordsLeft -= words;
    }
    followed.delete(scope);
    followed.set(scope, next);
    for (const oldest of followed.keys()) {
      if (followed.size <= SCOPES_MAX) break;
      followed.delete(oldest);
    }
    return next;
  }

  function append(list: List | undefined, { from, retitled }: Followed, sequence: number): void {
    if (list === undefined || !list.isAtEnd || list.upTo < from || list.retitled !== retitled) return;
    // Read from the index meanwhile.
    if (list.upTo > sequence) return;
    bytes -= list.rows.bytes;
    list.rows.append([sequence]);
    list.upTo = sequence + 1;
    bytes += list.rows.bytes;
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
      if (bytes <= BYTES_MAX || lists.size === 1) break;
      drop(oldest);
    }
  }

  return {
    beginSlice: (isLast) => {
      left = isLast ? ALL_ROWS : SLICE_ROWS;
      wordsLeft = isLast ? ALL_ROWS : NEW_WORDS_MAX;
      goneNamed = 0;
    },
    of(place, term) {
      const { scope, retitled } = place;
      const { from, to } = follow(place);
      const gone = place.nextSequence - place.chunks;
      const known = byTerm.get(scope)?.get(term);
      if (known !== undefined) drop(known);
      const isRight =
        known !== undefined &&
        known.retitled === retitled &&
        gone - known.gone <= place.chunks * GONE_SHARE_MAX &&
        known.upTo <= place.nextSequence;
      const list = isRight
        ? known
        : { scope, term, rows: makeRowList(), upTo: 0, isWhole: false, isAtEnd: false, retitled, gone };
      if (list.isAtEnd && list.upTo >= from) list.upTo = Math.max(list.upTo, to);
      const isDone = list.upTo === place.nextSequence || mayLag(place, list) || readOn(list, place, term);
      keep(list);
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
