import { expect, it } from "vitest";
import { estimateLine, estimateOf } from "../../../src/cli/output/estimate.ts";
import type { PlannedAction } from "../../../src/sync/operator/preview.ts";

const PLANNED: readonly PlannedAction[] = [
  { source: "/words", path: "a.md", action: "create", sends: { bytes: 4000, chars: 4000 } },
  { source: "/vectors", path: "b.md", action: "update", sends: { bytes: 9000, chars: 12_001 } },
  { source: "/vectors", path: "c.pdf", action: "create", sends: { bytes: 50_000 } },
  { source: "/vectors", path: "f.png", action: "create", sends: { bytes: 1000, isPicture: true } },
  { source: "/vectors", path: "g.pdf", action: "create", sends: { bytes: 1000, chars: 400 } },
  { source: "/vectors", path: "d.md", action: "retitle" },
  { source: "/vectors", path: "e.md", action: "delete" },
];
const embeds = (source: string): boolean => source === "/vectors";

it("sums up what leaves, and prices what is embedded", () => {
  expect(estimateOf(PLANNED, 250, embeds)).toMatchObject({
    documents: 5,
    bytes: 65_000,
    tokens: 4101,
    unknown: 2,
    pictures: 1,
    cost: expect.closeTo(0.77525, 6),
  });
  expect(estimateOf(PLANNED, undefined, embeds)).not.toHaveProperty("cost");
});

it("says on what the estimate rests", () => {
  expect(estimateLine(estimateOf(PLANNED, 100, embeds))).toBe(
    "5 documents, 65,000 bytes, about 4,101 tokens (at four characters each), not counting 2 files whose text is not known (1 picture or scan); embedding them costs about 0.3101\n",
  );
  expect(estimateLine(estimateOf([], 1, embeds))).toBe("");
});
