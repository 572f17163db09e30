import { describe, expect, it } from "vitest";
import { chunksText, listText } from "../../../../src/kb/http/body/list-text.ts";
import { wholeRecord } from "../../../../src/kb/resources/record.ts";
import type { Resource } from "../../../../src/kb/store/resources.ts";

function resource(content: string): Resource {
  return {
    id: "0123456789abcdef01234567",
    accountId: "a".repeat(24),
    tier: "fastest",
    ownerId: "o",
    origin: "content",
    title: "T",
    description: "",
    url: null,
    content,
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    createdAt: "2026-01-01T00:00:00.000Z",
    collectionId: "c".repeat(24),
    version: 1,
    chunkCount: 0,
    refreshedAt: null,
    updatedAt: "2026-01-01T00:00:00.000Z",
    isDeleted: false,
    metadata: {},
    revision: 1,
    status: "chunked",
    statusMessage: null,
    statusError: null,
    strategyUsed: "recursive",
    warning: null,
  };
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

describe("listText", () => {
  it.each([
    { name: "no resources", contents: [] },
    { name: "short resources", contents: ["a", "", 'quote " and \\ and \n'] },
    { name: "a long resource between short ones", contents: ["a", 'line "one"\n'.repeat(50_000), "b"] },
    { name: "surrogate pairs at every cut", contents: [`x${"🌊".repeat(200_000)}`, "🌊".repeat(200_000)] },
  ])("writes $name as JSON in bounded pieces", async ({ contents }) => {
    const resources = contents.map(resource);
    const pieces: string[] = [];
    for await (const piece of listText({
      resources: each(resources),
      paginated: false,
      nextCursor: () => null,
    })) {
      pieces.push(piece);
    }
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(256 * 1024);
    expect(pieces.join("")).not.toContain("\\ud8");
    expect(JSON.parse(pieces.join(""))).toEqual({
      success: true,
      message: "Resources fetched successfully",
      data: { resources: resources.map(wholeRecord), created: 0 },
    });
  });
});

describe("chunksText", () => {
  it.each([
    { name: "none", texts: [] },
    { name: "one", texts: ['quote " and \\ and 🌊'] },
    { name: "many", texts: Array.from({ length: 5000 }, (_, at) => `line "${at}"\n`.repeat(20)) },
    { name: "a very long chunk", texts: ["🌊".repeat(400_000), "short"] },
  ])("writes $name as JSON in bounded pieces", ({ texts }) => {
    const chunks = texts.map((content, at) => ({
      id: `chunk ${at}`,
      start: at,
      end: at + content.length,
      headings: ["Above"],
      path: "T > Above",
      content,
    }));
    const list = { resourceId: "r", version: 3, title: "T", chunks };
    const pieces = [...chunksText("Chunks", list)];
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(256 * 1024);
    expect(pieces.length).toBeLessThanOrEqual(2 + texts.join("").length / 10_000);
    expect(pieces.join("")).toBe(JSON.stringify({ success: true, message: "Chunks", data: list }));
  });
});
