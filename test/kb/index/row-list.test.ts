import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeRowList } from "../../../src/kb/index/row-list.ts";

/** Ascending numbers in several batches, dense or sparse. */
const portions = fc
  .record({
    gaps: fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 300 }),
    dense: fc.boolean(),
    cuts: fc.array(fc.nat(300), { maxLength: 4 }),
  })
  .map(({ gaps, dense, cuts }) => {
    let at = -1;
    const all = gaps.map((gap) => (at += dense ? 1 + (gap % 3) : gap));
    const ends = [...cuts, all.length].toSorted((a, b) => a - b);
    return ends.map((end, index) => all.slice(ends[index - 1] ?? 0, end));
  });

describe("makeRowList", () => {
  it("a row list returns the same rows of any range as a plain array", () => {
    fc.assert(
      fc.property(portions, fc.nat(60_000), fc.nat(60_000), (parts, first, span) => {
        const list = makeRowList();
        for (const part of parts) list.append(part);
        const all = parts.flat();
        expect(list.length).toBe(all.length);
        const last = first + span;
        expect([...list.within(first, last)]).toEqual(all.filter((row) => row >= first && row <= last));
        expect([...list.within(0, 2 ** 32 - 1)]).toEqual(all);
      }),
    );
  });

  it("a row list adds a weight at each row of a range", () => {
    fc.assert(
      fc.property(portions, fc.nat(5000), fc.integer({ min: 1, max: 5000 }), (parts, first, size) => {
        const list = makeRowList();
        for (const part of parts) list.append(part);
        const sums = new Float32Array(size + 5).fill(1);
        list.addTo(sums, first, size, 2);
        const wanted = new Float32Array(size + 5).fill(1);
        for (const row of parts.flat()) if (row >= first && row < first + size) wanted[row - first] = 3;
        expect(sums).toEqual(wanted);
      }),
    );
  });

  it("a row list takes a bit per chunk if dense, and little memory if sparse", () => {
    const everywhere = makeRowList();
    const rare = makeRowList();
    for (let from = 0; from < 1_000_000; from += 10_000) {
      everywhere.append(Array.from({ length: 10_000 }, (_, at) => from + at));
      rare.append([from + 9999]);
    }
    expect(everywhere.bytes).toBeLessThan(200_000);
    expect(rare.bytes).toBeLessThan(1000);
  });
});
