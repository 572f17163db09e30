import { describe, expect, it } from "vitest";
import { LATENCY_MS, percentileOf, rangeOf, seriesOf } from "../../../src/kb/usage/series.ts";

const HOUR_MS = 3_600_000;
/** Tuesday 2026-11-24, 12:30. */
const NOW_MS = Date.UTC(2026, 10, 24, 12, 30);
const HOUR = Math.floor(NOW_MS / HOUR_MS);
const hourOf = (ago: number, facts: object = {}) => ({
  hour: HOUR - ago,
  documents: 0,
  queued: 0,
  searches: [],
  ...facts,
});

const NO_COST = { own: null, all: null };

describe("a series of what an account used", () => {
  it("a series of what an account used has a point for every hour, the last of which has not ended", () => {
    const points = seriesOf(
      { step: "hour", count: 3 },
      [hourOf(1, { searches: [0, 0, 4], queued: 7 })],
      NO_COST,
      NOW_MS,
    );
    expect(points.map(({ at, searches, queued }) => [at, searches, queued])).toEqual([
      ["2026-11-24T10:00:00.000Z", 0, 0],
      ["2026-11-24T11:00:00.000Z", 4, 7],
      ["2026-11-24T12:00:00.000Z", 0, 0],
    ]);
  });

  it("keeps the number of documents through hours in which nothing happened, and does not know it before", () => {
    const hours = [hourOf(2, { documents: 5 }), hourOf(0, { documents: 8 })];
    const documents = (count: number) =>
      seriesOf({ step: "hour", count }, hours, NO_COST, NOW_MS).map((point) => point.documents);
    expect(documents(4)).toEqual([null, 5, 5, 8]);
    expect(documents(2)).toEqual([5, 8]); // the hour before the series says it
  });

  it("sums days of UTC, with what models cost if that is to be shown", () => {
    const hours = [
      hourOf(13, { searches: [1], queued: 3 }),
      hourOf(12, { searches: [2] }),
      hourOf(0, { searches: [4], queued: 1 }),
    ];
    const spending = {
      own: [{ day: "2026-11-24", nanos: 1_250_000_000 }],
      all: [{ day: "2026-11-24", nanos: 3_000_000_000 }],
    };
    const points = seriesOf({ step: "day", count: 2 }, hours, spending, NOW_MS);
    expect(
      points.map(({ at, searches, queued, cost, costOfAll }) => [at, searches, queued, cost, costOfAll]),
    ).toEqual([
      ["2026-11-23T00:00:00.000Z", 1, 3, 0, 0],
      ["2026-11-24T00:00:00.000Z", 6, 1, 1.25, 3],
    ]);
    expect(seriesOf({ step: "day", count: 1 }, hours, NO_COST, NOW_MS)[0]?.cost).toBeNull();
    expect(seriesOf({ step: "hour", count: 1 }, hours, spending, NOW_MS)[0]?.cost).toBeNull();
  });

  it("estimates the latency from ranges", () => {
    const counts = LATENCY_MS.concat(0).map(() => 0);
    expect(percentileOf(counts, 0.5)).toBe(0);
    counts[rangeOf(15)] = 100; // from 10 to 20
    expect(percentileOf(counts, 0.5)).toBe(15);
    expect(percentileOf(counts, 0.95)).toBe(19.5);
    counts[rangeOf(60_000)] = 100;
    expect(percentileOf(counts, 0.95)).toBe(10_000); // of the last range only the start is known
  });

  it("a series of what an account used counts a duration in the range whose upper end it does not exceed", () => {
    expect([0, 1, 1.1, 2, 10_000, 10_001].map(rangeOf)).toEqual([0, 0, 1, 1, 12, 13]);
  });

  it("estimates a percentile that falls on the end of a range, and skips empty ranges", () => {
    const counts = LATENCY_MS.concat(0).map(() => 0);
    counts[0] = 2;
    counts[3] = 2;
    expect(percentileOf(counts, 0.25)).toBe(0.5);
    expect(percentileOf(counts, 0.5)).toBe(1);
    expect(percentileOf(counts, 0.75)).toBe(7.5);
    expect(percentileOf(counts, 1)).toBe(10);
  });

  it("sums the searches of the hours of a day by range, and takes the most that were queued", () => {
    const hours = [hourOf(2, { searches: [1, 2], queued: 3 }), hourOf(1, { searches: [0, 1], queued: 2 })];
    const [point] = seriesOf({ step: "day", count: 1 }, hours, NO_COST, NOW_MS);
    expect(point).toMatchObject({ searches: 4, queued: 3, latency: { p50Ms: 1 + 1 / 3 } });
  });
});
