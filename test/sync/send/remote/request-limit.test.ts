import { expect, it } from "vitest";
import { openRequestLimit } from "../../../../src/sync/send/remote/request-limit.ts";

const MINUTE_MS = 60_000;

it("requests per minute hold in every 60 seconds, and reserve a tenth for each kind", () => {
  const clock = { ms: 0 };
  const limit = openRequestLimit(20, () => clock.ms);
  const sent: number[] = [];
  const times = { recent: 0, content: 0, control: 0 };
  for (; clock.ms < 10 * MINUTE_MS; clock.ms += 100) {
    for (const kind of ["recent", "content", "control"] as const) {
      if (limit(kind) > 0) continue;
      sent.push(clock.ms);
      times[kind] += 1;
    }
  }
  const most = Math.max(
    ...sent.map((at) => sent.filter((other) => other >= at && other < at + MINUTE_MS).length),
  );
  expect(most).toBe(20);
  expect(sent).toHaveLength(200);
  expect(Math.min(...Object.values(times))).toBeGreaterThanOrEqual(20);
});

it.each([
  ["recent", "content"],
  ["recent", "control"],
  ["content", "recent"],
  ["content", "control"],
  ["control", "recent"],
  ["control", "content"],
] as const)("requests per minute that %s requests have used up leave one for %s", (first, second) => {
  const limit = openRequestLimit(10, () => 0);
  while (limit(first) === 0);
  expect(limit(second)).toBe(0);
  expect(limit(second)).toBe(MINUTE_MS);
});
