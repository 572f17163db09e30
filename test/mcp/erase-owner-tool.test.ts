import { describe, expect, it } from "vitest";
import type { Reached } from "../../src/mcp/caller.ts";
import { eraseOwner } from "../../src/mcp/erase-owner-tool.ts";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import { openServiceConnections } from "../../src/mcp/service.ts";

const PAGES = 25;
const { signal } = new AbortController();

/** A service that lists one owner a page, and notes whom it erases. `after`: the page that it lists after the last one. */
function openService(after: string | null = null): { readonly reached: Reached; readonly erased: string[] } {
  const erased: string[] = [];
  const none = openServiceConnections().as({ apiUrl: "http://x", dbUrl: "http://x", pauthkey: "x" });
  const reached: Reached = {
    ownsLedger: false,
    service: {
      ...none,
      owners: async (_signal, { cursor = "0" } = {}) => {
        const at = Number(cursor);
        const owner = { collectionId: "c", details: "fastest", resources: 2, chunks: 3 } as const;
        const nextCursor = at + 1 < PAGES ? String(at + 1) : after;
        return { owners: [{ ...owner, ownerId: `owner ${at}` }], nextCursor };
      },
      facets: async () => ({ facets: [], nextCursor: null }),
      eraseOwner: async (owner) => {
        erased.push(owner);
        const counts = { documents: 2, chunks: 3, files: 0, requests: 0, messages: 0, turns: 0, images: 0 };
        return { ...counts, remains: [] };
      },
    },
  };
  return { reached, erased };
}

describe("the erasure of an owner behind many others", () => {
  it("needs the number of the owner's documents, as that of any owner", async () => {
    const { reached, erased } = openService();
    const owner = `owner ${PAGES - 1}`;
    const erase = (confirm: number) => eraseOwner(reached, NO_FILES, { owner, confirm }, signal);
    await expect(erase(0)).rejects.toMatchObject({ code: "erase_unconfirmed" });
    expect(erased).toEqual([]);
    await erase(2);
    expect(erased).toEqual([owner]);
  });

  it("erases nothing if the service's list of owners begins anew without end", async () => {
    const { reached, erased } = openService("3");
    const call = eraseOwner(reached, NO_FILES, { owner: "owner 1", confirm: 2 }, signal);
    await expect(call).rejects.toMatchObject({ code: "service_refused" });
    expect(erased).toEqual([]);
  });
});
