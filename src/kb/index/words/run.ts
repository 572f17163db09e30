import type { TermCursor, WalkedPart } from "./part.ts";
import { makeByteWriter, readVarint, type PostingList } from "./postings.ts";
import { makeTermFilter, mayContain } from "./term-filter.ts";
import { HASH_BYTES, readHash } from "./term-hash.ts";

/** Bytes of a page: one SQLite page holds one row of it. */
export const PAGE_BYTES = 4000;
/** Pages of a run, so that page numbers of different runs never meet. */
export const RUN_PAGES_MAX = 2 ** 24;
/** An entry of the directory: the hash of the first term that begins in a page, and its offset there. */
const ENTRY_BYTES = HASH_BYTES + 2;
/** Offset of a page in which no term begins: it continues the list of the term whose hash is named. */
const NONE_BEGINS = 0xffff;
/** Pages that are written at a time. */
const PAGES_AT_ONCE = 16;

/** What is read of a run before a search: all but its pages. */
export interface RunHead {
  /** Sequences of the chunks, ascending, by ordinal; 4 bytes each, the low byte first. */
  readonly sequences: Buffer;
  /** Lengths of the chunks in words, by ordinal; 2 bytes each, the low byte first. */
  readonly lengths: Buffer;
  readonly directory: Buffer;
  /** Says of most terms that the run does not have that it does not (term-filter.ts). */
  readonly filter: Buffer;
}

/** Writes a run's terms, which ascend by hash, as pages. */
export interface RunWriter {
  /** Appends a term. Returns full pages from time to time. */
  add(hash: number, list: PostingList): Buffer[];
  /** Returns the last pages, and what is read before pages. */
  end(): { readonly pages: Buffer[] } & Pick<RunHead, "directory" | "filter">;
}

/**
 * A run is one stream of terms, cut into pages. A term is its hash, the length of its list, its last ordinal, the number of
 * bytes and the bytes. Pages may cut a term anywhere.
 */
export function makeRunWriter(): RunWriter {
  const stream = makeByteWriter();
  const directory = makeByteWriter();
  /** Bytes of the pages that were returned. */
  let written = 0;
  /** Pages that have an entry in the directory. */
  let listed = 0;
  let lastHash = 0;
  let hashes = new Float64Array(2 ** 10);
  let terms = 0;

  const list = (hash: number, offset: number): void => {
    directory.uint(hash, HASH_BYTES);
    directory.uint(offset, 2);
    listed++;
  };
  const listPagesUpTo = (page: number): void => {
    for (let count = page - listed; count > 0; count--) list(lastHash, NONE_BEGINS);
  };
  const takePages = (isLast: boolean): Buffer[] => {
    if (!isLast && stream.length() < PAGE_BYTES * PAGES_AT_ONCE) return [];
    const bytes = stream.take();
    const end = isLast ? bytes.length : bytes.length - (bytes.length % PAGE_BYTES);
    stream.bytes(bytes, end, bytes.length);
    written += end;
    return Array.from({ length: Math.ceil(end / PAGE_BYTES) }, (_, at) =>
      bytes.subarray(at * PAGE_BYTES, Math.min(end, (at + 1) * PAGE_BYTES)),
    );
  };

  return {
    add(hash, { bytes, count, last }) {
      const position = written + stream.length();
      const page = Math.floor(position / PAGE_BYTES);
      listPagesUpTo(page);
      if (listed === page) list(hash, position % PAGE_BYTES);
      lastHash = hash;
      if (terms === hashes.length) {
        const longer = new Float64Array(terms * 2);
        longer.set(hashes);
        hashes = longer;
      }
      hashes[terms++] = hash;
      stream.uint(hash, HASH_BYTES);
      stream.varint(count);
      stream.varint(last);
      stream.varint(bytes.length);
      stream.bytes(bytes, 0, bytes.length);
      return takePages(false);
    },
    end() {
      const pages = takePages(true);
      listPagesUpTo(Math.ceil(written / PAGE_BYTES));
      return { pages, directory: directory.take(), filter: makeTermFilter(hashes.subarray(0, terms)) };
    },
  };
}

/** Opens a run. `read` returns the bytes of the pages from `first` to `last`, as many of them as there are. */
export function openRun(head: RunHead, read: (first: number, last: number) => Buffer): WalkedPart {
  const sequences = numbers(head.sequences, Uint32Array);
  const lengths = numbers(head.lengths, Uint16Array);
  const { directory, filter } = head;
  const pages = directory.length / ENTRY_BYTES;
  const hashOfPage = (page: number): number => readHash(directory, page * ENTRY_BYTES);
  const offsetOfPage = (page: number): number => directory.readUInt16BE(page * ENTRY_BYTES + HASH_BYTES);

  /** Returns the page in which the term of this hash begins, if there is one. */
  function pageOf(hash: number): number {
    let low = 0;
    let high = pages - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      if (hashOfPage(middle) <= hash) low = middle + 1;
      else high = middle - 1;
    }
    while (high >= 0 && offsetOfPage(high) === NONE_BEGINS) high--;
    return high;
  }

  /** Makes a cursor at the term that begins at offset `at` of a page. */
  function cursorAt(firstPage: number, offset: number): TermCursor {
    let page = firstPage;
    // The head of a term takes at most 21 bytes, so it is on its page or the next one.
    let bytes = read(page, page + 1);
    const reader = { at: offset };
    const cursor = { hash: 0, bytes, start: 0, end: offset, count: 0, last: -1 };
    const next = (): void => {
      if (cursor.end >= PAGE_BYTES) {
        page += Math.floor(cursor.end / PAGE_BYTES);
        cursor.end %= PAGE_BYTES;
        bytes = page < pages ? read(page, page + 1) : EMPTY;
      }
      reader.at = cursor.end;
      cursor.bytes = bytes;
      cursor.hash = reader.at < bytes.length ? readHash(bytes, reader.at) : Infinity;
      if (cursor.hash === Infinity) return;
      reader.at += HASH_BYTES;
      cursor.count = readVarint(bytes, reader);
      cursor.last = readVarint(bytes, reader);
      cursor.end = readVarint(bytes, reader) + reader.at;
      cursor.start = reader.at;
      if (cursor.end > bytes.length) cursor.bytes = read(page, page + Math.ceil(cursor.end / PAGE_BYTES) - 1);
    };
    next();
    return Object.assign(cursor, { next });
  }

  return {
    rows: sequences.length,
    lengths,
    sequence: (ordinal) => sequences[ordinal] ?? 0,
    ordinalFrom(sequence) {
      let low = 0;
      let high = sequences.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((sequences[middle] ?? 0) < sequence) low = middle + 1;
        else high = middle;
      }
      return low;
    },
    list(hash) {
      const page = mayContain(filter, hash) ? pageOf(hash) : -1;
      if (page < 0) return undefined;
      const at = cursorAt(page, offsetOfPage(page));
      while (at.hash < hash) at.next();
      if (at.hash !== hash) return undefined;
      // A copy: pages do not stay in memory for one of their lists.
      const bytes = Uint8Array.prototype.slice.call(at.bytes, at.start, at.end);
      return { bytes, count: at.count, last: at.last };
    },
    walk: () => cursorAt(0, 0),
  };
}

const EMPTY = Buffer.alloc(0);

/** Copies the bytes of numbers: those in a database row may lie at an odd address. */
function numbers<T extends Uint16Array | Uint32Array>(
  bytes: Buffer,
  type: new (buffer: ArrayBuffer) => T,
): T {
  const copy = new Uint8Array(bytes);
  return new type(copy.buffer);
}

/** Returns the bytes of numbers, as `RunHead` has them. */
export function bytesOf(array: Uint16Array | Uint32Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}
