import { describe, expect, it } from "vitest";
import { steadyClock } from "../../../src/sync/agenda/clock.ts";

describe("the clock for waits", () => {
  it("follows the system's clock forward and is never set back", () => {
    let wallMs = 1_000_000;
    let elapsedMs = 0;
    const now = steadyClock(
      () => wallMs,
      () => elapsedMs,
    );
    const pass = (ms: number): void => {
      wallMs += ms;
      elapsedMs += ms;
    };
    expect(now()).toBe(1_000_000);
    pass(500);
    expect(now()).toBe(1_000_500);
    wallMs += 3_600_000; // a suspend, which the other clock does not count
    expect(now()).toBe(4_600_500);
    wallMs -= 7_200_000;
    pass(250);
    expect(now()).toBe(4_600_750);
  });
});
