import type { TermCursor, WalkedPart } from "./part.ts";
import { appendShifted, eachPosting, makeByteWriter, type PostingList, writePosting } from "./postings.ts";
import type { LivePart } from "./removed.ts";
import { makeRunWriter, sealNumbers, type RunHead } from "./run.ts";

/** A part that can be merged. */
export interface MergePart extends LivePart {
  readonly part: WalkedPart;
}

/** The parts of a merged run that are read before its pages. */
export interface MergedHead extends RunHead {
  /** Number of its chunks, and the sequence of the first. */
  readonly rows: number;
  readonly first: number;
}

/** Terms merged between two steps of the generator: a fraction of a millisecond, but for the longest lists. */
const TERMS_PER_STEP = 64;

/**
 * Merges parts, whose sequences ascend from each part to the next, into one run without their removed chunks. Yields the
 * run's pages in order, and empty lists while none is full, so that the caller can pause. Returns the rest of the run.
 * Throws `DamagedIndex`.
 */
export function* mergeParts(parts: readonly MergePart[]): Generator<Buffer[], MergedHead> {
  // A part whose chunks were all removed need not be read.
  const live = parts.filter(({ part, removed }) => removed.count() < part.rows);
  const { sequences, lengths, inputs } = survivors(live);
  const writer = makeRunWriter();
  const terms = makeHeap(inputs);
  let steps = 0;
  for (let hash = terms.hash(); hash !== Infinity; hash = terms.hash()) {
    const list = mergeLists(terms, hash);
    const pages = list === undefined ? [] : writer.add(hash, list);
    if (pages.length > 0 || ++steps % TERMS_PER_STEP === 0) yield pages;
  }
  const { pages, ...index } = writer.end();
  yield pages;
  return {
    rows: sequences.length,
    first: sequences[0] ?? 0,
    sequences: sealNumbers(sequences),
    lengths: sealNumbers(lengths),
    ...index,
  };
}

/** A part whose terms are being merged. */
interface Input {
  readonly term: TermCursor;
  /** New ordinal of its first chunk. */
  readonly shift: number;
  /** New ordinal by old ordinal, negative for removed chunks; undefined: none is removed. */
  readonly renumbered: Int32Array | undefined;
}

/** Numbers the chunks that were not removed. */
function survivors(parts: readonly MergePart[]) {
  const count = parts.reduce((sum, { part, removed }) => sum + part.rows - removed.count(), 0);
  const sequences = new Uint32Array(count);
  const lengths = new Uint16Array(count);
  let next = 0;
  const inputs = parts.map(({ part, removed }): Input => {
    const shift = next;
    const renumbered = removed.count() === 0 ? undefined : new Int32Array(part.rows).fill(-1);
    for (let at = 0; at < part.rows; at++) {
      if (renumbered !== undefined) {
        if (removed.has(at)) continue;
        renumbered[at] = next;
      }
      sequences[next] = part.sequence(at);
      lengths[next++] = part.lengths[at] ?? 0;
    }
    return { term: part.walk(), shift, renumbered };
  });
  return { sequences, lengths, inputs };
}

const merged = makeByteWriter();

/** Concatenates the lists of the least term and moves past it; undefined: all its chunks were removed. */
function mergeLists(terms: Heap, hash: number): PostingList | undefined {
  let previous = -1;
  let count = 0;
  while (terms.hash() === hash) {
    const { term, shift, renumbered } = terms.top();
    if (renumbered === undefined) {
      appendShifted(merged, previous, term, shift);
      previous = term.last + shift;
      count += term.count;
    } else {
      const append = (ordinal: number, times: number): void => {
        const next = renumbered[ordinal] ?? -1;
        if (next < 0) return;
        writePosting(merged, previous, next, times);
        previous = next;
        count++;
      };
      eachPosting(term.bytes, append, term.start, term.end);
    }
    terms.advance();
  }
  return count === 0 ? undefined : { bytes: merged.take(), count, last: previous };
}

/** Inputs ordered by the hash of their terms, then by their own order. */
interface Heap {
  /** Hash of the least term; Infinity: none is left. */
  hash(): number;
  /** The input of the least term. */
  top(): Input;
  /** Moves past the least term. */
  advance(): void;
}

/** Makes a binary heap over numbers alone: it is asked for every term of every input. */
function makeHeap(inputs: readonly Input[]): Heap {
  const hashes = Float64Array.from(inputs, ({ term }) => term.hash);
  const heap = Uint32Array.from(inputs.keys());
  const sink = (from: number): void => {
    const input = heap[from] ?? 0;
    const hash = hashes[input] ?? Infinity;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      let least = heap[child] ?? 0;
      let leastHash = hashes[least] ?? Infinity;
      const right = heap[child + 1];
      if (right !== undefined) {
        const rightHash = hashes[right] ?? Infinity;
        if (rightHash < leastHash || (rightHash === leastHash && right < least)) {
          child++;
          least = right;
          leastHash = rightHash;
        }
      }
      if (hash < leastHash || (hash === leastHash && input < least)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = input;
  };
  for (let at = heap.length >>> 1; at >= 0 && heap.length > 0; at--) sink(at);

  const top = (): Input => {
    const input = inputs[heap[0] ?? 0];
    if (input === undefined) throw new RangeError("a merge of nothing");
    return input;
  };
  return {
    hash: () => (heap.length === 0 ? Infinity : (hashes[heap[0] ?? 0] ?? Infinity)),
    top,
    advance() {
      const { term } = top();
      term.next();
      hashes[heap[0] ?? 0] = term.hash;
      sink(0);
    },
  };
}
