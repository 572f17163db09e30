import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

const CONTENT =
  "# Tides\n\nThe moon pulls the sea twice a day.\n\n# Harbour\n\nThe harbour master closes the gate.";

let running: Running;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
  const body = createBody({
    title: "Almanac",
    content: CONTENT,
    owner_id: "explain",
    collection_details: "fastest",
    settings: { chunkSize: 60, chunkOverlap: 0 },
    metadata: { path: "handbook/lighthouse.md" },
  });
  ({ collectionId } = (await running.send("POST", "/api/rag/resource", { body })).json.data);
});
afterAll(() => running.close());

const search = (fields: object): Promise<Answered> =>
  running.send("POST", "/rag/query", {
    body: {
      query: "Why does the Moon pull lighthouses?",
      collection_id: collectionId,
      owner_id: "explain",
      ...fields,
    },
  });

describe("a search that explains its results", () => {
  it("names the words of the question that a result has, as the question writes them, and those that it lacks", async () => {
    const { json } = await search({ explain: true });
    expect(json.results[0].explain).toMatchObject({
      matchedWords: ["Moon", "pull", "lighthouses"],
      missingWords: [],
      wordShare: 1,
      bm25Share: 1,
      cosine: null,
      rerank: null,
    });
    // The other chunk has the word of the path alone.
    expect(json.results[1].explain).toMatchObject({
      matchedWords: ["lighthouses"],
      missingWords: ["Moon", "pull"],
    });
    const { wordShare, bm25Share } = json.results[1].explain;
    expect(wordShare).toBeGreaterThan(0);
    expect(wordShare).toBeLessThan(1);
    expect(bm25Share).toBeGreaterThan(0);
    expect(bm25Share).toBeLessThan(1);
  });

  it("explains the best hit of an expanded result", async () => {
    const { json } = await search({ explain: true, expand: 1, top_k: 1 });
    expect(json.results).toHaveLength(1);
    expect(json.results[0].payload.hits).toHaveLength(1);
    expect(json.results[0].explain.matchedWords).toEqual(["Moon", "pull", "lighthouses"]);
  });

  it("says nothing unasked", async () => {
    for (const fields of [{}, { explain: false }])
      for (const result of (await search(fields)).json.results) expect(result).not.toHaveProperty("explain");
  });

  it("a search that explains its results does not change results and scores", async () => {
    const [plain, explained] = [await search({}), await search({ explain: true })];
    for (const result of explained.json.results) delete result.explain;
    expect(explained.json.results).toEqual(plain.json.results);
  });

  it("refuses a value that is not a boolean", async () => {
    const { status, json } = await search({ explain: "yes" });
    expect([status, json.error.field]).toEqual([400, "explain"]);
  });
});
