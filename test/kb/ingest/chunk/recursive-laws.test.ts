import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunkRecursive } from "../../../../src/kb/ingest/chunk/recursive.ts";
import { expectLawful, settings } from "./laws.ts";
import { anyText, markdownish, sizes } from "./texts.ts";
import { anyCharacter } from "../../../any-character.ts";
import { randomRuns } from "../../../random-runs.ts";

const RUNS = randomRuns(200);

describe("chunkRecursive keeps the laws of a chunker", () => {
  it.each([
    ["on Markdown", markdownish],
    ["on any UTF-16 text", anyText],
    [
      "on one huge word",
      fc.string({ unit: anyCharacter, maxLength: 60, size: "max" }).map((text) => text.repeat(20)),
    ],
  ])("the laws of recursive chunks hold %s", (_name, texts) => {
    fc.assert(
      fc.property(texts, sizes, (text, { size, overlap }) => {
        const asked = settings(size, overlap);
        const spans = chunkRecursive(text, asked);
        expectLawful(text, asked, spans);
        expect(chunkRecursive(text, asked)).toEqual(spans);
      }),
      { numRuns: RUNS },
    );
  });

  it("chunks share no character if the overlap is 0", () => {
    fc.assert(
      fc.property(markdownish, sizes, (text, { size }) => {
        const spans = chunkRecursive(text, settings(size, 0));
        for (const [index, { start }] of spans.slice(1).entries()) {
          expect(start).toBeGreaterThanOrEqual(spans[index]?.end ?? 0);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("chunks share at least half of the overlap if words are short", () => {
    const words = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 6 }), {
      minLength: 100,
      maxLength: 400,
      size: "max",
    });
    fc.assert(
      fc.property(words, fc.integer({ min: 20, max: 140 }), (list, overlap) => {
        const spans = chunkRecursive(list.join(" "), settings(150, overlap));
        for (const [index, { start }] of spans.slice(1).entries()) {
          const before = spans[index];
          if (before === undefined) continue;
          // A chunk as short as the overlap cannot share more than itself.
          const possible = Math.min(overlap, before.end - before.start);
          expect(before.end - start).toBeGreaterThanOrEqual(possible / 2 - 6);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it("chunks share exactly the overlap inside a word longer than a chunk", () => {
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 5 }), ({ size, overlap }, times) => {
        const text = "x".repeat(size * times + 1);
        const spans = chunkRecursive(text, settings(size, overlap));
        for (const [index, { start }] of spans.slice(1).entries()) {
          const before = spans[index];
          if (before === undefined) continue;
          expect(before.end - start).toBe(Math.min(overlap, before.end - before.start - 1));
        }
      }),
      // Two pieces of 499 characters fill a chunk but for two, and the second is shorter than the overlap.
      { numRuns: randomRuns(100), examples: [[{ size: 1000, overlap: 501 }, 1]] },
    );
  });

  it("never cuts a line end, a combining mark or a joined emoji that fits into a chunk", () => {
    const clusters = fc.array(fc.constantFrom("e\u0301", "👍🏽", "👩‍👩‍👧", "\r\n", "x"), {
      minLength: 1,
      maxLength: 200,
      size: "max",
    });
    fc.assert(
      fc.property(
        clusters,
        fc.integer({ min: 20, max: 60 }),
        fc.integer({ min: 0, max: 8 }),
        (list, size, overlap) => {
          const text = list.join("");
          const joints = new Set([0]);
          let at = 0;
          for (const cluster of list) joints.add((at += cluster.length));
          for (const { start, end } of chunkRecursive(text, settings(size, overlap))) {
            expect([joints.has(start), joints.has(end)], `[${start}, ${end})`).toEqual([true, true]);
          }
        },
      ),
      { numRuns: RUNS },
    );
  });
});
