import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { beat, type Heart, type Pulse, stoodMs } from "../../src/system/progress.ts";

const WORKING: Pulse = { moves: 0, atWork: true, waitsForOthers: false };
const pulse = (change: Partial<Pulse>): Pulse => ({ ...WORKING, ...change });

/** How long it stands after looks a second apart. */
function standsMs(...pulses: readonly Pulse[]): number {
  let heart: Heart | undefined;
  for (const [second, each] of pulses.entries()) heart = beat(heart, each, second * 1000);
  return heart === undefined ? 0 : stoodMs(heart, (pulses.length - 1) * 1000);
}

describe("progress", () => {
  it.each([
    ["a first look", [WORKING], 0],
    ["files that are done one after another", [0, 1, 2, 3].map((moves) => pulse({ moves })), 0],
    ["a loop that turns while its queue never moves", [WORKING, WORKING, WORKING, WORKING], 3000],
    ["a queue that moved two looks ago", [0, 1, 1, 1].map((moves) => pulse({ moves })), 2000],
    ["a daemon at rest", [WORKING, pulse({ atWork: false }), pulse({ atWork: false })], 0],
    ["work that has just come after an hour's rest", [pulse({ atWork: false }), WORKING], 1000],
    ["a service elsewhere that is down", Array.from({ length: 9 }, () => pulse({ waitsForOthers: true })), 0],
    [
      "a service elsewhere that is back, and still nothing moves",
      [pulse({ waitsForOthers: true }), WORKING, WORKING],
      2000,
    ],
    ["a count that began anew", [pulse({ moves: 90 }), pulse({ moves: 0 })], 0],
  ])("%s", (_name, pulses, expected) => {
    expect(standsMs(...pulses)).toBe(expected);
  });

  it("never counts longer than since the last look that had a reason to be still", () => {
    const anyPulse = fc.record({
      moves: fc.integer({ min: 0, max: 3 }),
      atWork: fc.boolean(),
      waitsForOthers: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyPulse, { minLength: 1, maxLength: 30 }), (pulses) => {
        const last = pulses.findLastIndex(
          ({ moves, atWork, waitsForOthers }, at) =>
            at === 0 || !atWork || waitsForOthers || moves !== pulses[at - 1]?.moves,
        );
        expect(standsMs(...pulses)).toBe((pulses.length - 1 - last) * 1000);
      }),
    );
  });
});
