import { expect, it } from "vitest";
import { targetsOf } from "../../../src/cli/commands/search.ts";
import type { ResourceLookup } from "../../../src/sync/operator/resource-lookup.ts";

it("asks once where two sources share owner and collection, and not where nothing was sent", () => {
  const lookup: ResourceLookup = {
    sources: [
      { path: "/a", ownerId: "team", collectionId: "c1", tier: "fastest" },
      { path: "/b", ownerId: "team", collectionId: "c1", tier: "fastest" },
      { path: "/c", ownerId: "team", collectionId: "c2", tier: "fastest" },
      { path: "/d", ownerId: "me", collectionId: "c1", tier: "fastest" },
      { path: "/e", ownerId: "me", collectionId: undefined, tier: "fastest" },
    ],
    fileOf: () => undefined,
    knows: () => false,
    docOf: () => undefined,
    files: () => [],
    close: () => undefined,
  };
  expect(targetsOf(lookup, undefined, "/")).toEqual([
    { collectionId: "c1", ownerId: "team" },
    { collectionId: "c2", ownerId: "team" },
    { collectionId: "c1", ownerId: "me" },
  ]);
});
