import { describe, expect, it } from "vitest";
import { delayMs, DELAY_MS_MAX, parkMs } from "../../../src/sync/plan/retry.ts";

const DAY_MS = 24 * 3_600_000;

describe("backoff", () => {
  /** Number of attempts in a day without an answer, one at a time. */
  const triesInADay = (random: number): number => {
    let tries = 0;
    for (let atMs = 0; atMs < DAY_MS; tries += 1) atMs += delayMs(tries + 1, undefined, random);
    return tries;
  };

  it.each([
    ["the shortest", 0, 2888],
    ["the longest", 0.999, 1449],
  ])(
    "a service that is down for a day costs a few thousand requests, when they are %s",
    (_, random, most) => {
      expect(triesInADay(random)).toBeLessThanOrEqual(most);
    },
  );

  it("a service that is back is noticed within a minute", () => {
    for (let failures = 1; failures < 5000; failures += 1) {
      expect(delayMs(failures, undefined, 0.999)).toBeLessThanOrEqual(DELAY_MS_MAX);
    }
  });
});

it("a parked file waits a minute, then twice as long each time, up to an hour", () => {
  const minutes = [1, 2, 3, 4, 5, 6, 7, 8, 50].map((tries) => parkMs(tries) / 60_000);
  expect(minutes).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
});
