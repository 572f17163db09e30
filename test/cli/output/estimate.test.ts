import { expect, it } from "vitest";
import { estimateLine, estimateOf } from "../../../src/cli/output/estimate.ts";
import type { PlannedAction } from "../../../src/sync/operator/preview.ts";

const PLANNED: readonly PlannedAction[] = [
  { source: "/words", path: "a.md", action: "create", sends: { bytes: 4000, chars: 4000 } },
  { source: "/vectors", path: "b.md", action: "update", sends: { bytes: 9000, chars: 12_001 } },
  { source: "/vectors", path: "c.pdf", action: "create", sends: { bytes: 50_000 } },
  { source: "/vectors", path: "d.md", action: "retitle" },
  { source: "/vectors", path: "e.md", action: "delete" },
];
const embeds = (source: string): boolean => source === "/vectors";

it("sums up what leaves, and prices what is embedded", () => {
  expect(estimateOf(PLANNED, 250, embeds)).toMatchObject({
    documents: 3,
    bytes: 63_000,
    tokens: 4001,
    unknown: 1,
    cost: expect.closeTo(0.75025, 6),
  });
  expect(estimateOf(PLANNED, undefined, embeds)).not.toHaveProperty("cost");
});

it("says on what the estimate rests", () => {
  expect(estimateLine(estimateOf(PLANNED, 100, embeds))).toBe(
    "3 documents, 63,000 bytes, about 4,001 tokens (at four characters each), not counting 1 file that the service reads; embedding them costs about 0.3001\n",
  );
  expect(estimateLine(estimateOf([], 1, embeds))).toBe("");
});
