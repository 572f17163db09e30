import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addSample, type Progress, type ProgressSample, stalledMs } from "../../src/system/progress.ts";

const WORKING: ProgressSample = { moves: 0, atWork: true, waitsForOthers: false };
const sample = (change: Partial<ProgressSample>): ProgressSample => ({ ...WORKING, ...change });

/** How long it stands after checks a second apart. */
function standsMs(...samples: readonly ProgressSample[]): number {
  let progress: Progress | undefined;
  for (const [second, each] of samples.entries()) progress = addSample(progress, each, second * 1000);
  return progress === undefined ? 0 : stalledMs(progress, (samples.length - 1) * 1000);
}

describe("progress", () => {
  it.each([
    ["a first sample", [WORKING], 0],
    ["files that are done one after another", [0, 1, 2, 3].map((moves) => sample({ moves })), 0],
    ["a loop that turns while its queue never moves", [WORKING, WORKING, WORKING, WORKING], 3000],
    ["a queue that moved two checks ago", [0, 1, 1, 1].map((moves) => sample({ moves })), 2000],
    ["a daemon at rest", [WORKING, sample({ atWork: false }), sample({ atWork: false })], 0],
    ["work that has just come after an hour's rest", [sample({ atWork: false }), WORKING], 1000],
    [
      "a service elsewhere that is down",
      Array.from({ length: 9 }, () => sample({ waitsForOthers: true })),
      0,
    ],
    [
      "a service elsewhere that is back, and still nothing moves",
      [sample({ waitsForOthers: true }), WORKING, WORKING],
      2000,
    ],
    ["a count that started over", [sample({ moves: 90 }), sample({ moves: 0 })], 0],
  ])("measures a stall: %s", (_name, samples, expected) => {
    expect(standsMs(...samples)).toBe(expected);
  });

  it("progress never counts longer than since the last sample that had a reason to rest", () => {
    const anyPulse = fc.record({
      moves: fc.integer({ min: 0, max: 3 }),
      atWork: fc.boolean(),
      waitsForOthers: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyPulse, { minLength: 1, maxLength: 30 }), (samples) => {
        const last = samples.findLastIndex(
          ({ moves, atWork, waitsForOthers }, at) =>
            at === 0 || !atWork || waitsForOthers || moves !== samples[at - 1]?.moves,
        );
        expect(standsMs(...samples)).toBe((samples.length - 1 - last) * 1000);
      }),
    );
  });
});
