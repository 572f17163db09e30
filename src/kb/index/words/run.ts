import type { TermCursor, WalkedPart } from "./part.ts";
import { makeByteWriter, readVarint, type PostingList } from "./postings.ts";
import { DamagedIndex, seal, unseal } from "../seal.ts";
import { HASH_BYTES, readHash } from "./term-hash.ts";

/** Bytes of a page without its checksum: one SQLite page holds one row of it. */
export const PAGE_BYTES = 4000;
/** Pages of a run, so that page numbers of different runs never meet. */
export const RUN_PAGES_MAX = 2 ** 24;
/** An entry of the directory: the hash of the first term that begins in a page, and its offset there. */
const ENTRY_BYTES = HASH_BYTES + 2;
/** Offset of a page in which no term begins: it continues the list of the term whose hash is named. */
const NONE_BEGINS = 0xffff;
/** Pages that are written at a time, and read at a time by a walk through all terms. */
const PAGES_AT_ONCE = 16;
/** Maximum bytes of a term before its list: the hash and three varints. */
const HEAD_BYTES_MAX = HASH_BYTES + 3 * 5;

/** Returns the number of pages of a run whose directory has so many bytes with its checksum. */
export function pagesListed(directoryBytes: number): number {
  return Math.floor(directoryBytes / ENTRY_BYTES);
}

/** The parts of a run that are read before a search: all but its pages. Each has a checksum at its end (seal.ts). */
export interface RunHead {
  /** Sequences of the chunks, ascending, by ordinal; 4 bytes each, the low byte first. */
  readonly sequences: Buffer;
  /** Lengths of the chunks in words, by ordinal; 2 bytes each, the low byte first. */
  readonly lengths: Buffer;
  readonly directory: Buffer;
  /** Excludes most terms that the run does not have. */
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
      seal(bytes.subarray(at * PAGE_BYTES, Math.min(end, (at + 1) * PAGE_BYTES))),
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
      const filter = makeTermFilter(hashes.subarray(0, terms));
      return { pages, directory: seal(directory.take()), filter: seal(filter) };
    },
  };
}

/**
 * Opens a run. `readPages` returns the pages from `first` to `last`, as the writer returned them. Throws `DamagedIndex`, as do
 * later reads of lists.
 */
export function openRun(head: RunHead, readPages: (first: number, last: number) => Buffer[]): WalkedPart {
  const sequences = numbers(unseal(head.sequences, "the sequences of a run"), Uint32Array);
  const lengths = numbers(unseal(head.lengths, "the lengths of a run"), Uint16Array);
  const directory = unseal(head.directory, "the directory of a run");
  const filter = unseal(head.filter, "the filter of a run");
  const pages = directory.length / ENTRY_BYTES;
  const hashOfPage = (page: number): number => readHash(directory, page * ENTRY_BYTES);
  const offsetOfPage = (page: number): number => directory.readUInt16BE(page * ENTRY_BYTES + HASH_BYTES);

  /** Returns the bytes of pages. Those that reach beyond the last page end there. */
  function read(first: number, count: number): Buffer {
    const last = Math.min(first + count, pages) - 1;
    if (last < first) return EMPTY;
    const found = readPages(first, last);
    if (found.length !== last - first + 1) throw new DamagedIndex("a page of a run is missing");
    const bytes = found.map((page) => unseal(page, "a page of a run"));
    return bytes[0] !== undefined && bytes.length === 1 ? bytes[0] : Buffer.concat(bytes);
  }

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

  /** Makes a cursor at the term that begins at an offset of a page. Reads `pagesAtOnce` pages, or more for a longer list. */
  function cursorAt(firstPage: number, offset: number, pagesAtOnce: number): TermCursor {
    /** `bytes` begins with this page. */
    let page = firstPage;
    let bytes = read(page, pagesAtOnce);
    const reader = { at: offset };
    const cursor = { hash: 0, bytes, start: 0, end: offset, count: 0, last: -1 };
    /** Reads on if the bytes end before this offset. */
    const reach = (end: number): void => {
      if (end <= bytes.length || page + Math.ceil(bytes.length / PAGE_BYTES) >= pages) return;
      const passed = Math.floor(reader.at / PAGE_BYTES);
      page += passed;
      reader.at -= passed * PAGE_BYTES;
      bytes = read(page, Math.max(pagesAtOnce, Math.ceil((end - passed * PAGE_BYTES) / PAGE_BYTES)));
    };
    const next = (): void => {
      reader.at = cursor.end;
      reach(reader.at + HEAD_BYTES_MAX);
      cursor.hash = reader.at < bytes.length ? readHash(bytes, reader.at) : Infinity;
      if (cursor.hash === Infinity) return;
      reader.at += HASH_BYTES;
      cursor.count = readVarint(bytes, reader);
      cursor.last = readVarint(bytes, reader);
      const length = readVarint(bytes, reader);
      reach(reader.at + length);
      cursor.bytes = bytes;
      cursor.start = reader.at;
      cursor.end = reader.at + length;
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
      const at = cursorAt(page, offsetOfPage(page), 1);
      while (at.hash < hash) at.next();
      if (at.hash !== hash) return undefined;
      // A copy: pages do not stay in memory for one of their lists.
      const bytes = Uint8Array.prototype.slice.call(at.bytes, at.start, at.end);
      return { bytes, count: at.count, last: at.last };
    },
    walk: () => cursorAt(0, 0, PAGES_AT_ONCE),
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

/** Returns numbers as `RunHead` has them. */
export function sealNumbers(array: Uint16Array | Uint32Array): Buffer {
  return seal(Buffer.from(array.buffer, array.byteOffset, array.byteLength));
}

/** Bits for each term, and bits that a term sets: about two absent terms in a hundred pass. */
const BITS_PER_TERM = 10;
const PROBES = 6;

/**
 * Makes a Bloom filter of terms, given by their hashes. A mistyped word is compared with a thousand near words, nearly all of
 * which no chunk has: without the filter each would read a page of every run.
 */
export function makeTermFilter(hashes: Float64Array): Buffer {
  const filter = Buffer.alloc(Math.ceil((hashes.length * BITS_PER_TERM) / 8));
  for (const hash of hashes) {
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = bitOf(hash, probe, filter.length * 8);
      filter[bit >>> 3] = (filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
  return filter;
}

/** Whether a filter may have been made of this term. */
export function mayContain(filter: Buffer, hash: number): boolean {
  for (let probe = 0; probe < PROBES; probe++) {
    const bit = bitOf(hash, probe, filter.length * 8);
    if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
  }
  return filter.length > 0;
}

/** Kirsch and Mitzenmacher, 2006: two parts of one hash serve as many hash functions. */
function bitOf(hash: number, probe: number, bits: number): number {
  const one = hash % 2 ** 23;
  const two = Math.floor(hash / 2 ** 23);
  return (one * 257 + two + probe * (two * 127 + one + 1)) % bits;
}
