/**
 * 1-bit codes: the signs of a vector's differences from the mean of its neighbours in the store. Two vectors whose
 * codes differ in few bits have a large cosine; a scan over codes costs a thirtieth of one over floats. Without
 * taking the mean off, real embeddings, which share a direction, would have nearly the same code.
 */
export interface CodeList {
  readonly size: number;
  /** Appends the code of a vector. */
  add(row: number, vector: Float32Array): void;
  /** Takes out all codes of rows in [first, last]. */
  removeRange(first: number, last: number): void;
  /**
   * Rows in [first, last] whose codes are nearest to the vector's, about `count` and at least that many if there are.
   * `isAllowed` leaves rows out.
   */
  nearest(
    vector: Float32Array,
    first: number,
    last: number,
    count: number,
    isAllowed?: (row: number) => boolean,
  ): number[];
  readonly bytes: number;
}

/** Makes an empty list for vectors of so many dimensions, centred on `mean`. */
export function makeCodeList(mean: Float32Array): CodeList {
  const dimensions = mean.length;
  const words = Math.ceil(dimensions / 32);
  let rows = new Float64Array(1024);
  let codes = new Uint32Array(1024 * words);
  let distances = new Uint16Array(1024);
  let size = 0;
  let lastRow = -1;
  const asked = new Uint32Array(words);

  function encode(vector: Float32Array, into: Uint32Array, offset: number): void {
    for (let word = 0; word < words; word++) {
      let bits = 0;
      const end = Math.min(32, dimensions - word * 32);
      for (let bit = 0; bit < end; bit++) {
        const at = word * 32 + bit;
        if ((vector[at] ?? 0) > (mean[at] ?? 0)) bits |= 1 << bit;
      }
      into[offset + word] = bits >>> 0;
    }
  }

  function grow(): void {
    const capacity = rows.length * 2;
    rows = copied(rows, new Float64Array(capacity));
    codes = copied(codes, new Uint32Array(capacity * words));
    distances = new Uint16Array(capacity);
  }

  return {
    get size() {
      return size;
    },
    get bytes() {
      return rows.byteLength + codes.byteLength + distances.byteLength;
    },
    add(row, vector) {
      if (size === rows.length) grow();
      rows[size] = row;
      encode(vector, codes, size * words);
      lastRow = Math.max(lastRow, row);
      size++;
    },
    removeRange(first, last) {
      // New rows lie behind all others, so most calls end here.
      if (first > lastRow) return;
      let kept = 0;
      for (let at = 0; at < size; at++) {
        const row = rows[at] ?? 0;
        if (row >= first && row <= last) continue;
        if (kept !== at) {
          rows[kept] = row;
          codes.copyWithin(kept * words, at * words, (at + 1) * words);
        }
        kept++;
      }
      size = kept;
    },
    nearest(vector, first, last, count, isAllowed) {
      encode(vector, asked, 0);
      const histogram = new Uint32Array(words * 32 + 1);
      for (let at = 0; at < size; at++) {
        let distance = 0;
        const offset = at * words;
        for (let word = 0; word < words; word++) {
          distance += ones((codes[offset + word] ?? 0) ^ (asked[word] ?? 0));
        }
        distances[at] = distance;
        const row = rows[at] ?? 0;
        if (row >= first && row <= last && isAllowed?.(row) !== false)
          histogram[distance] = (histogram[distance] ?? 0) + 1;
      }
      let threshold = 0;
      for (let seen = histogram[0] ?? 0; seen < count && threshold < words * 32;)
        seen += histogram[++threshold] ?? 0;
      const found: number[] = [];
      for (let at = 0; at < size; at++) {
        const row = rows[at] ?? 0;
        const isNear = (distances[at] ?? 0) <= threshold && row >= first && row <= last;
        if (isNear && isAllowed?.(row) !== false) found.push(row);
      }
      return found;
    },
  };
}

function copied<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Number of bits set in a 32-bit word. */
function ones(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
