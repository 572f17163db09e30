import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LANE_BYTES, scanCodes } from "../../../src/kb/index/code-scan.ts";
import { makeCodeList } from "../../../src/kb/index/codes.ts";
import { dotQuantized, quantize } from "../../../src/kb/index/quantized.ts";

/** Hamming distance of two codes, counted bit by bit. */
function differing(a: Uint8Array, b: Uint8Array): number {
  let count = 0;
  for (const [at, byte] of a.entries()) {
    for (let rest = byte ^ (b[at] ?? 0); rest !== 0; rest >>= 1) count += rest & 1;
  }
  return count;
}

describe("scanCodes", () => {
  it.each([
    ["one lane", 1, 3000],
    ["384 dimensions, more than a block", 3, 6000],
    ["distances beyond 255", 40, 700],
    ["codes of the maximum length", 511, 5],
    ["no codes", 3, 0],
  ])("the scan returns the same distances as counting bit by bit: %s", (_name, lanes, count) => {
    const size = lanes * LANE_BYTES;
    let state = 1;
    const random = (): number => (state = Math.imul(state, 1_664_525) + 1_013_904_223) >>> 24;
    const codes = Uint8Array.from({ length: size * count }, random);
    // The last code is the complement of the query: every bit differs.
    const query = Uint8Array.from({ length: size }, random);
    if (count > 0) {
      codes.set(
        query.map((byte) => ~byte),
        (count - 1) * size,
      );
    }
    const distances = new Uint16Array(count);
    scanCodes(codes, count, query, distances);
    const expected = Array.from({ length: count }, (_, at) =>
      differing(codes.subarray(at * size, (at + 1) * size), query),
    );
    expect([...distances]).toEqual(expected);
  });
});

describe("makeCodeList", () => {
  const dimensions = 40;
  const vector = fc
    .array(fc.integer({ min: -3, max: 3 }), { minLength: dimensions, maxLength: dimensions })
    .map((values) => Float32Array.from(values));
  const distance = (a: Float32Array, b: Float32Array): number =>
    a.filter((value, at) => value > 0 !== (b[at] ?? 0) > 0).length;

  it("a code list finds the same rows as a scan of every vector, after any removals", () => {
    fc.assert(
      fc.property(
        fc.array(vector, { maxLength: 60 }),
        vector,
        fc.array(fc.tuple(fc.nat(60), fc.nat(3)), { maxLength: 3 }),
        fc.nat(60),
        fc.integer({ min: 1, max: 20 }),
        fc.boolean(),
        fc.boolean(),
        (vectors, query, cuts, first, count, isOdd, isCached) => {
          const list = makeCodeList(new Float32Array(dimensions), isCached ? 1e6 : 0);
          for (const [row, each] of vectors.entries()) list.add(row, each, quantize(each));
          let behind = 0;
          const ranges = cuts
            .toSorted(([a], [b]) => a - b)
            .flatMap(([from, length]) => {
              const range = { first: Math.max(from, behind), last: from + length };
              behind = Math.max(behind, range.last + 1);
              return range.last < range.first ? [] : [range];
            });
          list.removeRanges(ranges);
          const isAllowed = isOdd ? (row: number): boolean => row % 2 === 1 : undefined;
          const left = vectors
            .map((each, row) => ({ row, distance: distance(each, query) }))
            .filter(({ row }) => !ranges.some((range) => row >= range.first && row <= range.last));
          expect(list.size).toBe(left.length);
          const wanted = left.filter(({ row }) => row >= first && (!isOdd || row % 2 === 1));
          const limit = wanted.map((each) => each.distance).toSorted((a, b) => a - b)[count - 1] ?? Infinity;
          const slots = list.nearest(query, first, 1000, count, isAllowed);
          const rows = wanted.filter((each) => each.distance <= limit).map(({ row }) => row);
          expect(slots.map((slot) => list.rowAt(slot))).toEqual(rows);
          // A cached vector stays with its row through every removal.
          const cosineOf = (row: number) =>
            isCached ? dotQuantized(query, quantize(vectors[row] ?? query)) : undefined;
          expect(slots.map((slot) => list.cosineAt(slot, query))).toEqual(rows.map(cosineOf));
          list.dropStored();
          expect(slots.map((slot) => list.cosineAt(slot, query))).toEqual(rows.map(() => undefined));
          expect(list.storedBytes).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("a code list caches quantised vectors up to its bound, and keeps codes alone beyond", () => {
    const stored = quantize(Float32Array.of(1, 0));
    const list = makeCodeList(new Float32Array(2), 20_000);
    for (let row = 0; row < 2000; row++) list.add(row, Float32Array.of(1, 0), stored);
    expect(list.cosineAt(1999, Float32Array.of(1, 0))).toBeCloseTo(1, 2);
    expect(list.storedBytes).toBeLessThanOrEqual(20_000);
    for (let row = 2000; row < 4000; row++) list.add(row, Float32Array.of(1, 0), stored);
    expect([list.size, list.storedBytes, list.cosineAt(0, Float32Array.of(1, 0))]).toEqual([
      4000,
      0,
      undefined,
    ]);
  });
});
