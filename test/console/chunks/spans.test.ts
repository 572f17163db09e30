import * as fc from "fast-check";
import { expect, it } from "vitest";
import { piecesOf } from "../../../src/console/chunks/spans.ts";

it("cuts a text at each boundary of its chunks, and says which chunks share a piece", () => {
  const chunks = [
    { start: 0, end: 10 },
    { start: 6, end: 20 },
    { start: 25, end: 30 },
  ];
  expect(piecesOf(chunks, 32)).toEqual([
    { start: 0, end: 6, begins: [0], chunks: [0] },
    { start: 6, end: 10, begins: [1], chunks: [0, 1] },
    { start: 10, end: 20, begins: [], chunks: [1] },
    { start: 20, end: 25, begins: [], chunks: [] },
    { start: 25, end: 30, begins: [2], chunks: [2] },
    { start: 30, end: 32, begins: [], chunks: [] },
  ]);
});

it("covers the text once, in order, whatever the chunks", () => {
  const range = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 20 })).map(([start, length]) => ({
    start,
    end: start + length,
  }));
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), fc.nat(90), (ranges, until) => {
      const chunks = ranges.toSorted((a, b) => a.start - b.start || a.end - b.end);
      const pieces = piecesOf(chunks, 80, until);
      let at = 0;
      for (const { start, end } of pieces) {
        expect(start).toBe(at);
        at = end;
      }
      expect(at).toBe(Math.min(80, until));
    }),
  );
});
