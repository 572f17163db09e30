import * as fc from "fast-check";
import { expect, it } from "vitest";
import { makeTopHits, type Ranked } from "../../../../src/kb/index/words/top-hits.ts";

/** Hits of few scores, so that many tie, in any order. */
const hits = fc
  .uniqueArray(fc.record({ sequence: fc.nat(200), tenths: fc.nat(12) }), {
    selector: ({ sequence }) => sequence,
    maxLength: 60,
  })
  .map((list) =>
    list.map(({ sequence, tenths }): Ranked => ({
      sequence,
      score: tenths / 10,
      part: 0,
      ordinal: sequence,
    })),
  );

it("the hits are the first of all, by score and then by sequence, in whatever order they came", () => {
  fc.assert(
    fc.property(hits, fc.integer({ min: 1, max: 20 }), (list, limit) => {
      const top = makeTopHits(limit);
      for (const [at, hit] of list.entries()) {
        const before = list.slice(0, at).toSorted((a, b) => b.score - a.score || a.sequence - b.sequence);
        const worst = before[limit - 1];
        const isBetter =
          worst === undefined ||
          hit.score > worst.score ||
          (hit.score === worst.score && hit.sequence < worst.sequence);
        expect(top.accepts(hit.score, hit.sequence)).toBe(isBetter);
        if (isBetter) top.add(hit);
      }
      const sorted = list.toSorted((a, b) => b.score - a.score || a.sequence - b.sequence).slice(0, limit);
      expect(top.sorted()).toEqual(sorted);
    }),
  );
});

it("the least of the best scores is the last of those that were added, or 0 while there are fewer than wanted", () => {
  fc.assert(
    fc.property(hits, hits, fc.integer({ min: 1, max: 20 }), (list, others, limit) => {
      const top = makeTopHits(limit);
      for (const hit of list) if (top.accepts(hit.score, hit.sequence)) top.add(hit);
      const scores = top.scores();
      const all = list.map(({ score }) => score);
      for (const { score } of others) {
        if (score > scores.least()) scores.add(score);
        all.push(score);
        expect(scores.least()).toBe(all.toSorted((a, b) => b - a)[limit - 1] ?? 0);
      }
      // The hits themselves stay as they were.
      expect(top.sorted()).toHaveLength(Math.min(limit, list.length));
    }),
  );
});
