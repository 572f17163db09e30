import { expect, it } from "vitest";
import { scopeOf } from "../../../src/cli/results/search-scope.ts";
import type { ResourceLookup } from "../../../src/sync/operate/resource-lookup.ts";

const lookup: ResourceLookup = {
  formerSources: [],
  sources: [
    { path: "/a", ownerId: "team", collectionId: "c1", tier: "fastest" },
    { path: "/b", ownerId: "team", collectionId: "c1", tier: "fastest" },
    { path: "/c", ownerId: "team", collectionId: "c2", tier: "moderate" },
    { path: "/d", ownerId: "me", collectionId: "c1", tier: "fastest" },
    { path: "/e", ownerId: "me", collectionId: undefined, tier: "fastest" },
  ],
  fileOf: (docId) => ({ source: `/${docId}`, path: "x.md" }),
  knows: () => false,
  docOf: () => undefined,
  close: () => undefined,
};

it("asks once where two sources share owner and collection, and not where nothing was sent", () => {
  expect(scopeOf(lookup, {}, "/")).toEqual({
    targets: [
      { collectionId: "c1", ownerId: "team" },
      { collectionId: "c2", ownerId: "team" },
      { collectionId: "c1", ownerId: "me" },
    ],
    isOfSource: undefined,
  });
});

it("narrows a search to a tier", () => {
  expect(scopeOf(lookup, { tier: "moderate" }, "/")).toEqual({
    targets: [{ collectionId: "c2", ownerId: "team" }],
    isOfSource: undefined,
  });
});

it("narrows a search to a source, whose results it picks where another source shares its scope", () => {
  const { targets, isOfSource } = scopeOf(lookup, { source: "a" }, "/");
  expect(targets).toEqual([{ collectionId: "c1", ownerId: "team" }]);
  expect(["a", "b"].map((docId) => isOfSource?.(docId))).toEqual([true, false]);
});

it.each([
  [{ source: "nowhere" }, "/nowhere is not a synced folder"],
  [{ tier: "high_accuracy" as const }, "no folder has the tier high_accuracy"],
])("refuses %j, which no source is, and names those there are", (options, message) => {
  expect(() => scopeOf(lookup, options, "/")).toThrow(
    expect.objectContaining({ message, hint: expect.stringContaining("/c (moderate)") }),
  );
});
