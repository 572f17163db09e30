import { describe, expect, it } from "vitest";
import type { KnowledgeBase } from "../../../src/kb/resources/knowledge-base.ts";
import { listResources, textBytes } from "../../../src/kb/resources/list.ts";
import type { ListPage, Resource } from "../../../src/kb/store/resources.ts";
import type { ListQuery } from "../../../src/wire/resource.ts";

const idOf = (at: number): string => at.toString(16).padStart(24, "0");

/** A knowledge base of some resources, of which a read returns three at most, and what was read. */
function makeKb(count: number, partMax = 3) {
  const all = Array.from({ length: count }, (_, at) => ({
    id: idOf(at + 1),
    content: "é",
    description: "x",
  }));
  const reads: { limit: number; afterId: string | undefined; deleted: boolean | undefined }[] = [];
  const kb = {
    limits: { contentBytes: 1000 },
    collections: { tierOf: async (_account: string, id: string) => (id === "c" ? "fastest" : undefined) },
    records: {
      listResources: async ({ limit, afterId, deleted }: (typeof reads)[number]): Promise<ListPage> => {
        reads.push({ limit, afterId, deleted });
        const rest = all.filter(({ id }) => id > (afterId ?? ""));
        const resources = rest.slice(0, Math.min(limit, partMax)) as unknown as Resource[]; // a list reads these fields
        return { resources, more: resources.length < rest.length };
      },
    },
  };
  return { kb: kb as unknown as KnowledgeBase, reads };
}

async function list(
  kb: KnowledgeBase,
  query: Partial<ListQuery>,
  room?: Parameters<typeof listResources>[3],
) {
  const listing = await listResources(kb, "a", { collectionId: "c", ownerId: "ann", ...query }, room);
  const ids: string[] = [];
  for await (const { id } of listing.resources) ids.push(id);
  return { ids, cursor: listing.nextCursor(), paginated: listing.paginated };
}

describe("a list of resources", () => {
  it("a list of resources has all of them without a limit, in parts of a thousand at most", async () => {
    const { kb, reads } = makeKb(7);
    expect(await list(kb, {})).toEqual({
      ids: [1, 2, 3, 4, 5, 6, 7].map(idOf),
      cursor: null,
      paginated: false,
    });
    expect(reads.map(({ limit }) => limit)).toEqual([1000, 1000, 1000]);
    expect(reads.map(({ afterId }) => afterId)).toEqual([undefined, idOf(3), idOf(6)]);
  });

  it.each([4, 3, 7, 8])(
    "a list of resources has pages of a limit of %i that continue one another",
    async (limit) => {
      const { kb } = makeKb(7);
      const pages: string[][] = [];
      let next: string | null = "";
      while (next !== null) {
        const page: Awaited<ReturnType<typeof list>> = await list(kb, {
          limit,
          ...(next && { cursor: next }),
        });
        expect(page.paginated).toBe(true);
        pages.push(page.ids);
        next = page.cursor;
      }
      expect(pages.flat()).toEqual([1, 2, 3, 4, 5, 6, 7].map(idOf));
      expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
    },
  );

  it("a list of resources has a hundred on a page with a cursor alone, and the deleted ones on request", async () => {
    const { kb, reads } = makeKb(250, 1000);
    const cursor = Buffer.from(idOf(10)).toString("base64url");
    const page = await list(kb, { cursor, deleted: "true" });
    expect([page.ids.length, page.ids[0]]).toEqual([100, idOf(11)]);
    expect(page.cursor).toBe(Buffer.from(idOf(110)).toString("base64url"));
    expect(reads).toEqual([{ limit: 100, afterId: idOf(10), deleted: true }]);
    await list(kb, { limit: 1, deleted: "false" });
    expect(reads.at(-1)?.deleted).toBe(false);
  });

  it("takes memory for the first part at once, and waits for that of later ones", async () => {
    const { kb } = makeKb(7);
    const calls: (string | number)[] = [];
    const room = {
      take: (bytes: number) => void calls.push("take", bytes),
      wait: async (bytes: number) => void calls.push("wait", bytes),
      force: (bytes: number) => void calls.push("force", bytes),
    };
    await list(kb, {}, room);
    // Each text has two bytes, and each description one.
    const most = 3 * 8 * 1024 * 1024 + 1000;
    expect(calls).toEqual(["take", 9, "wait", most, "force", 9, "wait", most, "force", 3]);
  });

  it("a list of no resources has no cursor", async () => {
    expect(await list(makeKb(0).kb, { limit: 5 })).toEqual({ ids: [], cursor: null, paginated: true });
  });

  it.each([
    ["another collection", { collectionId: "d" }, "collection_not_found"],
    ["a cursor that is none", { cursor: "zzz" }, "invalid_field"],
    [
      "a cursor with more behind it",
      { cursor: Buffer.from(`${idOf(1)}0`).toString("base64url") },
      "invalid_field",
    ],
  ])("a list of resources is refused for %s before it begins", async (_name, query, refusal) => {
    await expect(list(makeKb(1).kb, query)).rejects.toMatchObject({ refusal });
  });
});

it("counts the bytes of a text and its description in UTF-8", () => {
  expect(textBytes({ content: "é🌊", description: "ab" })).toBe(8);
});
