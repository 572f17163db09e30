import { describe, expect, it } from "vitest";
import { queryWords } from "../../../src/kb/lexical/word-match.ts";
import { mixTexts } from "../../../src/kb/search/text-evidence.ts";

const chunk = (ref: number, resourceId: string, start: number, text: string) => ({
  ref,
  resourceId,
  start,
  end: start + text.length,
  text,
});
const QUERY = queryWords("impeller bilge");
const FAR = `impeller ${"somewhere ".repeat(12)} bilge`;

describe("mixTexts", () => {
  it("ranks the chunk whose words stand together first among equal ones", () => {
    const hits = [
      { ref: 1, mix: 0.5, cosine: undefined },
      { ref: 2, mix: 0.5, cosine: undefined },
    ];
    const chunks = [chunk(1, "a", 0, FAR), chunk(2, "b", 0, "the impeller of the bilge pump")];
    expect(mixTexts(hits, chunks, QUERY).map(({ ref }) => ref)).toEqual([2, 1]);
  });

  it("raises a chunk by the lead in cosine of the chunk before or behind it", () => {
    const hits = [
      { ref: 1, mix: 0.5, cosine: 0.3 },
      { ref: 2, mix: 0.5, cosine: 0.3 },
      { ref: 3, mix: 0.1, cosine: 0.8 },
    ];
    const chunks = [chunk(1, "a", 0, "One."), chunk(2, "b", 0, "Two."), chunk(3, "b", 6, "Three.")];
    const ranked = mixTexts(hits, chunks, QUERY);
    expect(ranked.map(({ ref }) => ref)).toEqual([2, 1, 3]);
    expect(ranked[0]?.mix).toBeCloseTo(0.5 + 0.2 * 0.5, 10);
    // A neighbour that is farther takes nothing away.
    expect(ranked[2]?.mix).toBe(0.1);
  });

  it("counts no chunk of the same document as a neighbour that stands farther away", () => {
    const hits = [
      { ref: 1, mix: 0.5, cosine: 0.3 },
      { ref: 2, mix: 0.1, cosine: 0.8 },
    ];
    const chunks = [chunk(1, "a", 0, "One."), chunk(2, "a", 900, "Two.")];
    expect(mixTexts(hits, chunks, QUERY)).toEqual(hits);
  });

  it("leaves hits without a text as they are, ties by ref", () => {
    const hits = [
      { ref: 2, mix: 0.5, cosine: 0.3 },
      { ref: 1, mix: 0.5, cosine: undefined },
    ];
    expect(mixTexts(hits, [], QUERY).map(({ ref, mix }) => [ref, mix])).toEqual([
      [1, 0.5],
      [2, 0.5],
    ]);
  });
});
