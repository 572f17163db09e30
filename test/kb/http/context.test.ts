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
  it("answers a body without these fields with single chunks", async () => {
    const { json } = await search({});
    expect(json.results).toHaveLength(5);
    for (const { payload } of json.results) expect(payload).not.toHaveProperty("hits");
  });

  it("returns hits with the text around them within max_tokens, which name the document's text", async () => {
    const { json } = await search({ expand: "neighbours", max_tokens: "600" });
    const [first] = json.results;
    expect(first.payload.content).toContain("On day 7 the tide turns early.");
    expect(first.payload.content).toBe(CONTENT.slice(first.payload.start, first.payload.end));
    expect(first.payload.hits[0].id).toBe(first.id);
    expect(countTokens(json.text)).toBeLessThanOrEqual(600);
    const { json: alone } = await search({ max_tokens: 600 });
    expect(alone.results.length).toBeGreaterThan(0);
    expect(countTokens(alone.text)).toBeLessThanOrEqual(600);
  });

  it("returns with a smaller top_k the beginning of a longer answer", async () => {
    const [five, twelve] = [await search({ top_k: 5 }), await search({ top_k: 12 })];
    expect(five.json.results).toHaveLength(5);
    expect(five.json.results).toEqual(twelve.json.results.slice(0, 5));
  });

  it.each([
    ["expand", { expand: "section" }],
    ["expand", { expand: 0 }],
    ["expand", { expand: 21 }],
    ["max_tokens", { max_tokens: 49 }],
    ["max_tokens", { max_tokens: 100_001 }],
  ])("refuses %s in %j", async (field, fields) => {
    const { status, json } = await search(fields);
    expect(status).toBe(400);
    expect(json.error).toEqual({ code: "invalid_field", field });
  });
});
