import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunkSections } from "../../../../src/kb/ingest/chunk/sections.ts";
import { chunkSemantic } from "../../../../src/kb/ingest/chunk/semantic.ts";
import { unitRanges } from "../../../../src/kb/ingest/chunk/units.ts";
import { expectLawful, settings } from "./laws.ts";
import { anyText, markdownish, sizes } from "./texts.ts";
import { randomRuns } from "../../../random-runs.ts";

const RUNS = randomRuns(60);
const DIMENSIONS = 3;
const texts = [
  ["on Markdown", markdownish],
  ["on any UTF-16 text", anyText],
] as const;
const unitsMax = fc.constantFrom(1, 3, 10, 4096);

describe("units", () => {
  it.each(texts)("units cover the text in order and stay within their bound: %s", (_name, text) => {
    fc.assert(
      fc.property(text, sizes, unitsMax, (of, { size, overlap }, most) => {
        const units = unitRanges(of, settings(size, overlap), most);
        if (units === undefined) return;
        expect(units.length).toBeLessThanOrEqual(most);
        let covered = 0;
        for (const { start, end } of units) {
          expect(start).toBeLessThan(end);
          expect(of.slice(covered, start).trim()).toBe("");
          covered = end;
        }
        expect(of.slice(covered).trim()).toBe("");
      }),
      { numRuns: RUNS },
    );
  });
});

describe("chunkSemantic keeps the laws of a chunker, whatever the vectors are", () => {
  it.each(texts)("chunkSemantic keeps the laws of a chunker %s", (_name, text) => {
    fc.assert(
      fc.property(
        text,
        sizes,
        unitsMax,
        fc.infiniteStream(fc.float({ min: -1, max: 1 })),
        (of, { size, overlap }, most, values) => {
          const asked = settings(size, overlap);
          const units = unitRanges(of, asked, most)?.length ?? 0;
          const vectors = Float32Array.from({ length: units * DIMENSIONS }, () => values.next().value ?? 0);
          const meaning = { vectors, dimensions: DIMENSIONS };
          const spans = chunkSemantic(of, asked, most, meaning);
          expectLawful(of, asked, spans);
          expect(chunkSemantic(of, asked, most, meaning)).toEqual(spans);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe("chunkSections keeps the laws of a chunker, whatever the boundaries are", () => {
  it.each(texts)("chunkSections keeps the laws of a chunker %s", (_name, text) => {
    fc.assert(
      fc.property(
        text,
        sizes,
        fc.array(fc.integer({ min: -2, max: 40 })),
        (of, { size, overlap }, begins) => {
          const asked = settings(size, overlap);
          const spans = chunkSections(of, asked, 4096, begins);
          expectLawful(of, asked, spans);
          expect(chunkSections(of, asked, 4096, begins)).toEqual(spans);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("begins a chunk with each section", () => {
    fc.assert(
      fc.property(
        markdownish,
        fc.integer({ min: 20, max: 400 }),
        fc.array(fc.nat(20)),
        (of, size, begins) => {
          const asked = settings(size, 0);
          const units = unitRanges(of, asked, 4096) ?? [];
          const starts = new Set(chunkSections(of, asked, 4096, begins).map(({ start }) => start));
          for (const unit of begins) {
            const start = units[unit]?.start;
            expect(start === undefined || starts.has(start), `unit ${unit}`).toBe(true);
          }
        },
      ),
      { numRuns: RUNS },
    );
  });
});
