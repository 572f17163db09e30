import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeRowSet } from "../../../../src/kb/index/row-set.ts";
import { makeByteCache } from "../../../../src/kb/index/words/byte-cache.ts";
import { makeTermFilter, mayContain } from "../../../../src/kb/index/words/run.ts";
import { hashOf } from "../../../../src/kb/index/words/term-hash.ts";

describe("a cache with a bound on its bytes", () => {
  it("evicts the least recently used entries, each with an overhead of 200 bytes", () => {
    const cache = makeByteCache<string, number>(1000);
    cache.set("a", 1, 300);
    cache.set("b", 2, 300);
    expect([cache.get("a"), cache.get("b")]).toEqual([1, 2]);
    expect(cache.get("a")).toBe(1);
    cache.set("c", 3, 1);
    expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([1, undefined, 3]);
  });

  it("a cache with a bound on its bytes counts a replaced entry once, and holds an entry above its bound alone", () => {
    const cache = makeByteCache<string, number>(1000);
    for (const value of [1, 2, 3]) cache.set("a", value, 300);
    cache.set("b", 4, 300);
    expect([cache.get("a"), cache.get("b")]).toEqual([3, 4]);
    cache.set("c", 5, 5000);
    expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([undefined, undefined, 5]);
    cache.set("d", 6, 1);
    expect([cache.get("c"), cache.get("d")]).toEqual([undefined, 6]);
  });
});

describe("a filter of terms", () => {
  it("contains every term that it was made of, and three of a hundred others at most", () => {
    const own = Float64Array.from({ length: 2000 }, (_, at) => hashOf(`own${at}`));
    const filter = makeTermFilter(own);
    expect(filter).toHaveLength(2500);
    expect([...own].every((hash) => mayContain(filter, hash))).toBe(true);
    const others = Array.from({ length: 5000 }, (_, at) => hashOf(`other${at}`));
    expect(others.filter((hash) => mayContain(filter, hash)).length).toBeLessThan(150);
  });

  it("contains nothing if it was made of nothing", () => {
    expect(mayContain(makeTermFilter(new Float64Array()), hashOf("a"))).toBe(false);
  });
});

describe("a set of rows", () => {
  it("a set of rows has the rows of its ranges, and lists those within a range up to one more than a limit", () => {
    const range = fc
      .tuple(fc.nat(299), fc.nat(40))
      .map(([first, more]) => ({ first, last: Math.min(299, first + more) }));
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 4 }),
        fc.nat(320),
        fc.nat(320),
        fc.nat(50),
        (ranges, first, last, limit) => {
          const set = makeRowSet(300, ranges);
          const rows = Array.from({ length: 300 }, (_, at) => at).filter((at) =>
            ranges.some((each) => at >= each.first && at <= each.last),
          );
          expect(Array.from({ length: 330 }, (_, at) => at).filter((at) => set.has(at))).toEqual(rows);
          const within = rows.filter((at) => at >= first && at <= last).slice(0, limit + 1);
          expect(set.within({ first, last }, limit)).toEqual(within);
          expect(set.bytes).toBe(40);
        },
      ),
    );
  });
});
