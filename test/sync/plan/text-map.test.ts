import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openTextMap } from "../../../src/sync/plan/text-map.ts";
import { anyCharacter } from "../../any-character.ts";

it("holds what a Map would hold after the same changes", () => {
  const key = fc.oneof(
    fc.constantFrom("", "a", "document-1.md", "document-2.md", "é"),
    fc.string({ unit: anyCharacter }),
  );
  const change = fc.record({ key, value: fc.option(fc.nat(), { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      const ours = openTextMap<number>();
      const theirs = new Map<string, number>();
      for (const { key: each, value } of changes) {
        if (value === undefined) {
          ours.delete(each);
          theirs.delete(each);
        } else {
          ours.set(each, value);
          theirs.set(each, value);
        }
        expect([ours.has(each), ours.get(each)]).toEqual([theirs.has(each), theirs.get(each)]);
      }
      expect(new Map(ours.entries())).toEqual(theirs);
    }),
  );
});

it.each([
  { name: "paths", keyOf: (index: number) => `part-${index % 50}/chapter/document-${index}.md` },
  { name: "numbered files with a long extension", keyOf: (index: number) => `${index}.markdown` },
  { name: "identities", keyOf: (index: number) => `${index}:1000:1700000000000` },
])("spreads $name over its pieces", ({ keyOf }) => {
  const map = openTextMap<number>();
  for (let index = 0; index < 10_000; index++) map.set(keyOf(index), index);
  // Neighbours in a piece follow one another in insertion order when iterated. A descent marks a new piece.
  const order = [...map.entries()].map(([, value]) => value);
  const pieces = order.filter((value, at) => at > 0 && value < (order[at - 1] ?? 0)).length + 1;
  expect(pieces).toBeGreaterThan(100);
});
