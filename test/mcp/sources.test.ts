import { describe, expect, it } from "vitest";
import type { Reached } from "../../src/mcp/caller.ts";
import { NO_FILES, type KnownFiles } from "../../src/mcp/known-files.ts";
import type { PageRequest } from "../../src/mcp/service.ts";
import { findSources, SOURCES_SEARCHED_MAX } from "../../src/mcp/sources.ts";

const FASTEST = "a".repeat(24);
const MODERATE = "b".repeat(24);
const FILES: KnownFiles = {
  ...NO_FILES,
  sources: [{ folder: "/srv/sea", ownerId: "owner 5", collectionId: FASTEST }],
};

/** A service that lists two owners per page and counts the requests. */
function tellingOf(fastest: number, moderate: number): { reached: Reached; asked: () => number } {
  const owners = [
    ...Array.from({ length: fastest }, (_, at) => [`owner ${at}`, FASTEST, "fastest"] as const),
    ...Array.from({ length: moderate }, (_, at) => [`owner ${at}`, MODERATE, "moderate"] as const),
  ].map(([ownerId, collectionId, details]) => ({ ownerId, collectionId, details, resources: 1, chunks: 1 }));
  let asked = 0;
  const unused = (): never => {
    throw new Error("only owners are asked for");
  };
  const service = {
    search: unused,
    resource: unused,
    list: unused,
    owners: (_signal: AbortSignal, { cursor = "0" }: Partial<PageRequest> = {}) => {
      asked += 1;
      const to = Number(cursor) + 2;
      return Promise.resolve({
        owners: owners.slice(Number(cursor), to),
        nextCursor: to < owners.length ? String(to) : null,
      });
    },
  };
  return { reached: { service, ownsLedger: false }, asked: () => asked };
}

const find = async (reached: Reached, name?: string): Promise<string[]> => {
  const found = await findSources(reached, FILES, name, new AbortController().signal);
  return found.map((one) => `${one.owner_id} ${one.collection}`);
};

describe("the sources that a search means", () => {
  it.each([
    ["of a name, in every collection", "owner 3", ["owner 3 fastest", "owner 3 moderate"], 10],
    ["of a folder, and searches no further", "/srv/sea/", ["owner 5 fastest"], 3],
  ])("the sources that a search means are found %s", async (_name, source, found, requests) => {
    const { reached, asked } = tellingOf(16, 4);
    expect(await find(reached, source)).toEqual(found);
    expect(asked()).toBe(requests);
  });

  it("a search without restriction covers all sources", async () => {
    expect(await find(tellingOf(3, 2).reached)).toHaveLength(5);
    expect(await find(tellingOf(0, 0).reached)).toEqual([]);
  });

  it("a search stops listing sources once it has found too many", async () => {
    const { reached, asked } = tellingOf(1000, 0);
    await expect(find(reached)).rejects.toMatchObject({ code: "too_many_sources" });
    expect(asked()).toBe(SOURCES_SEARCHED_MAX / 2 + 1);
  });

  it("an unknown source is reported with some existing ones", async () => {
    const none = find(tellingOf(12, 0).reached, "attic");
    await expect(none).rejects.toMatchObject({
      code: "source_unknown",
      message: "there is no source attic",
      hint: expect.stringMatching(/^There are: owner 0, .*\/srv\/sea.*, …\./),
    });
  });

  it("a source beyond the searched pages is not reported as missing", async () => {
    const { reached, asked } = tellingOf(1000, 0);
    await expect(find(reached, "attic")).rejects.toMatchObject({
      code: "source_unknown",
      message: expect.stringContaining("among the first 40 "),
    });
    expect(asked()).toBe(20);
  });
});
