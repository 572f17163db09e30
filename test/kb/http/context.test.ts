import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countTokens } from "../../../src/lib/tokens.ts";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

const DAYS = Array.from(
  { length: 30 },
  (_, at) => `## Day ${at}\n\nOn day ${at} the tide turns early. ${"It is calm. ".repeat(40)}`,
);
const CONTENT = `# Tides\n\n${DAYS.join("\n\n")}`;

let running: Running;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
  for (const [title, content] of [
    ["Almanac", CONTENT],
    ["Copy", CONTENT],
  ]) {
    const body = createBody({ title, content, owner_id: "context", collection_details: "fastest" });
    ({ collectionId } = (await running.send("POST", "/api/rag/resource", { body })).json.data);
  }
});
afterAll(() => running.close());

const search = (fields: object): Promise<Answered> =>
  running.send("POST", "/rag/query", {
    body: { query: "the tide of day 7", collection_id: collectionId, owner_id: "context", ...fields },
  });

describe("a search for context", () => {
  it("answers a body without these fields as before", async () => {
    const { json } = await search({});
    expect(json).not.toHaveProperty("budget");
    expect(json.results).toHaveLength(5);
    for (const { payload } of json.results) {
      expect(payload).not.toHaveProperty("hits");
      expect(payload).not.toHaveProperty("duplicates");
    }
  });

  it("returns sections within the budget, which name the document's text", async () => {
    const { json } = await search({ expand: "section", max_tokens: "600", collapse: true });
    const [first] = json.results;
    expect(first.payload.content).toContain("On day 7 the tide turns early.");
    expect(first.payload.content).toBe(CONTENT.slice(first.payload.start, first.payload.end));
    expect(first.payload.duplicates).toBeGreaterThan(0);
    expect(first.payload.duplicateDocuments).toHaveLength(1);
    expect(json.budget).toMatchObject({
      tokenizer: "kbsync-1",
      tokens: countTokens(json.text),
      maxTokens: 600,
    });
    expect(json.budget.tokens).toBeLessThanOrEqual(600);
  });

  it("pages through all hits", async () => {
    const seen = new Set<string>();
    let offset: number | null = 0;
    for (let pages = 0; offset !== null && pages < 100; pages++) {
      const { json }: Answered = await search({ offset, max_tokens: 500, expand: 1, top_k: 10 });
      for (const { payload } of json.results) for (const { id } of payload.hits) seen.add(id);
      offset = json.budget.nextOffset;
    }
    const { json } = await search({ top_k: 100 });
    expect(seen).toEqual(new Set(json.results.map(({ id }: { id: string }) => id)));
  });

  it("returns with a smaller top_k the beginning of a longer answer, with duplicates collapsed", async () => {
    const fields = { collapse: true, max_per_document: 9 };
    const [five, twelve] = [await search({ ...fields, top_k: 5 }), await search({ ...fields, top_k: 12 })];
    expect(five.json.results).toHaveLength(5);
    expect(twelve.json.results.length).toBeGreaterThan(5);
    expect(five.json.results).toEqual(twelve.json.results.slice(0, 5));
  });

  it.each([
    ["expand", { expand: "chapter" }],
    ["expand", { expand: 0 }],
    ["expand", { expand: 21 }],
    ["max_tokens", { max_tokens: 49 }],
    ["max_tokens", { max_tokens: 100_001 }],
    ["max_per_document", { max_per_document: 0 }],
    ["collapse", { collapse: "yes" }],
    ["offset", { offset: 100 }],
  ])("refuses %s in %j", async (field, fields) => {
    const { status, json } = await search(fields);
    expect(status).toBe(400);
    expect(json.error).toEqual({ code: "invalid_field", field });
  });
});
