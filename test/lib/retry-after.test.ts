import * as fc from "fast-check";
import { expect, it } from "vitest";
import { retryAfterMs } from "../../src/lib/retry-after.ts";

const NOW_MS = Date.parse("Wed, 21 Oct 2026 07:28:25 GMT");
const DATE = "Wed, 21 Oct 2026 07:28:00 GMT";

it.each<[string | string[] | undefined, string | undefined, number | undefined]>([
  ["120", undefined, 120_000],
  [" 1.5 ", undefined, 1500],
  [["7", "9"], undefined, 7000],
  ["Wed, 21 Oct 2026 07:28:30 GMT", undefined, 5000],
  ["Wed, 21 Oct 2026 07:28:30 GMT", DATE, 30_000],
  ["Wed, 21 Oct 2026 07:27:30 GMT", DATE, 0],
  ["Wed, 21 Oct 2026 07:28:30 GMT", "yesterday", 5000],
  ["soon", undefined, undefined],
  ["", DATE, undefined],
  [undefined, DATE, undefined],
])("reads Retry-After %j with the date %j as %s ms", (header, date, expected) => {
  expect(retryAfterMs(header, NOW_MS, date)).toBe(expected);
});

it("never returns a negative wait or NaN, for any header", () => {
  const dates = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date("2100-01-01") });
  const header = fc.oneof(
    fc.string(),
    fc.nat().map(String),
    dates.map((date) => date.toUTCString()),
  );
  fc.assert(
    fc.property(header, fc.option(dates), fc.nat(), (text, date, nowMs) => {
      const asked = retryAfterMs(text, nowMs, date?.toUTCString());
      expect(asked === undefined || (Number.isFinite(asked) && asked >= 0)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});
