import { expect, it } from "vitest";
import { titleKeyOf } from "../../../src/kb/store/title-key.ts";

it.each([
  ["numbers by their value", ["Part 9", "part 10", "Part 0100", "part 1000 b"]],
  ["without regard to case", ["apple", "Bee", "cod"]],
  ["whatever the encoding of an accent", ["u\u0308ber 1", "\u00dcber 2", "u\u0308ber 3"]],
  ["numbers before letters", ["a 1", "a 99999999999999999999999999", "a b"]],
])("a title key sorts %s", (_what, titles) => {
  const keyed = titles.toReversed().toSorted((a, b) => (titleKeyOf(a) < titleKeyOf(b) ? -1 : 1));
  expect(keyed).toEqual(titles);
});

it("a title key is short and well formed", () => {
  for (const title of ["x".repeat(2000), "1 ".repeat(1000), `${"x".repeat(199)}\u{1F600}`]) {
    const key = titleKeyOf(title);
    expect(key.length).toBeLessThanOrEqual(200);
    expect(key.isWellFormed()).toBe(true);
  }
});
