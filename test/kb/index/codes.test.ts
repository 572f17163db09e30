import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LANE_BYTES, scanCodes } from "../../../src/kb/index/code-scan.ts";
import { makeCodeList } from "../../../src/kb/index/codes.ts";
import { dotQuantized, quantize } from "../../../src/kb/index/quantized.ts";

/** Bits in which two codes differ, counted one by one. */
function differing(a: Uint8Array, b: Uint8Array): number {
  let count = 0;
  for (const [at, byte] of a.entries()) {
    for (let rest = byte ^ (b[at] ?? 0); rest !== 0; rest >>= 1) count += rest & 1;
  }
  return count;
}

describe("the scan over codes", () => {
  it.each([
    ["one lane", 1, 3000],
    ["384 dimensions, more than a block", 3, 6000],
    ["codes longer than a byte can count", 40, 700],
    ["the longest code there may be", 511, 5],
    ["no codes", 3, 0],
  ])("counts what counting bit by bit counts: %s", (_name, lanes, count) => {
    const size = lanes * LANE_BYTES;
    let state = 1;
    const random = (): number => (state = Math.imul(state, 1_664_525) + 1_013_904_223) >>> 24;
    const codes = Uint8Array.from({ length: size * count }, random);
    // The last code is the opposite of what is asked for: every bit differs.
    const asked = Uint8Array.from({ length: size }, random);
    if (count > 0) {
      codes.set(
        asked.map((byte) => ~byte),
        (count - 1) * size,
      );
    }
    const distances = new Uint16Array(count);
    scanCodes(codes, count, asked, distances);
    const expected = Array.from({ length: count }, (_, at) =>
      differing(codes.subarray(at * size, (at + 1) * size), asked),
    );
    expect([...distances]).toEqual(expected);
  });
});

describe("a list of codes", () => {
  const dimensions = 40;
  const vector = fc
    .array(fc.integer({ min: -3, max: 3 }), { minLength: dimensions, maxLength: dimensions })
    .map((values) => Float32Array.from(values));
  const distance = (a: Float32Array, b: Float32Array): number =>
    a.filter((value, at) => value > 0 !== (b[at] ?? 0) > 0).length;

  it("finds the rows that looking at every vector finds, after any rows left", () => {
    fc.assert(
      fc.property(
        fc.array(vector, { maxLength: 60 }),
        vector,
        fc.array(fc.tuple(fc.nat(60), fc.nat(3)), { maxLength: 3 }),
        fc.nat(60),
        fc.integer({ min: 1, max: 20 }),
        fc.boolean(),
        fc.boolean(),
        (vectors, asked, cuts, first, count, isOdd, isKept) => {
          const list = makeCodeList(new Float32Array(dimensions), isKept ? 1e6 : 0);
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
            .map((each, row) => ({ row, distance: distance(each, asked) }))
            .filter(({ row }) => !ranges.some((range) => row >= range.first && row <= range.last));
          expect(list.size).toBe(left.length);
          const wanted = left.filter(({ row }) => row >= first && (!isOdd || row % 2 === 1));
          const limit = wanted.map((each) => each.distance).toSorted((a, b) => a - b)[count - 1] ?? Infinity;
          const places = list.nearest(asked, first, 1000, count, isAllowed);
          const rows = wanted.filter((each) => each.distance <= limit).map(({ row }) => row);
          expect(places.map((place) => list.rowAt(place))).toEqual(rows);
          // What is kept of a vector stays with its row, through every cut.
          const cosineOf = (row: number) =>
            isKept ? dotQuantized(asked, quantize(vectors[row] ?? asked)) : undefined;
          expect(places.map((place) => list.cosineAt(place, asked))).toEqual(rows.map(cosineOf));
          list.dropStored();
          expect(places.map((place) => list.cosineAt(place, asked))).toEqual(rows.map(() => undefined));
          expect(list.storedBytes).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("keeps what is stored of the vectors up to so many bytes, and codes alone beyond", () => {
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
