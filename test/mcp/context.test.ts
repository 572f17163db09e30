import { afterAll, beforeAll, expect, it } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type Connected, type McpGround } from "./fixture.ts";

const DAYS = Array.from(
  { length: 12 },
  (_, at) => `## Day ${at}\n\nOn day ${at} the tide turns early. ${"It is calm. ".repeat(90)}`,
);
const CONTENT = `# Tides\n\n${DAYS.join("\n\n")}`;
const QUERY = "the tide of day 7";

let service: Running;
let mcp: McpGround;
let call: Connected["call"];
beforeAll(async () => {
  service = await openRunning();
  for (const fields of [
    { owner_id: "north", title: "Almanac", content: CONTENT },
    { owner_id: "north", title: "Copy", content: CONTENT },
    { owner_id: "south", title: "Southern almanac", content: CONTENT.replaceAll("early", "late") },
    // One chunk of 4,000 characters that are a token each.
    {
      owner_id: "signs",
      title: "Signs",
      content: `tide ${"潮".repeat(3990)}`,
      settings: { chunkSize: 4000 },
    },
  ])
    await service.send("POST", "/api/rag/resource", { body: createBody(fields) });
  const files = {
    sources: [],
    formerOwners: [],
    fileOf: () => undefined,
    documentsOf: () => [],
    close: () => undefined,
  };
  mcp = await openMcpGround({ service: service.url, files });
  ({ call } = await mcp.connect(service.key));
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

it("search_passages returns sections of several sources within the tokens asked for", async () => {
  const { data } = await call("search_passages", { query: QUERY, expand: "section", max_tokens: 2000 });
  expect(countTokens(JSON.stringify(data))).toBeLessThanOrEqual(2000);
  expect(data.tokenizer).toBe("kbsync-1");
  for (const { text, start, end, owner_id, hits } of data.results) {
    const content = owner_id === "south" ? CONTENT.replaceAll("early", "late") : CONTENT;
    expect(text).toBe(content.slice(start, end));
    expect(hits.length).toBeGreaterThan(0);
  }
  expect(data.results[0].text).toContain("On day 7 the tide turns");
});

it("search_passages returns one of the passages with the same text, and names the other documents", async () => {
  const { data, text } = await call("search_passages", { query: QUERY, source: "north", top_k: 1 });
  expect(data.results[0]).toMatchObject({
    duplicates: 1,
    duplicate_documents: [{ title: expect.any(String) }],
  });
  expect(text).toContain("1 more with nearly this text");
  const all = await call("search_passages", { query: QUERY, source: "north", top_k: 2, collapse: false });
  expect(all.data.results[0].text).toBe(all.data.results[1].text);
});

it.each([[undefined], ["section"]])(
  "search_passages collapses near-duplicates of different sources, with expand %s",
  async (expand) => {
    const key = await service.issueKey(`copies ${expand}`);
    const { call: ask } = await mcp.connect(key);
    const text = "The harbour master rings the bell twice when the fog comes in from the west.";
    for (const owner of ["first", "second", "third"]) {
      const body = createBody({ owner_id: owner, title: `Bell, ${owner}`, content: text });
      await service.send("POST", "/api/rag/resource", { key, body });
    }
    const other = createBody({ owner_id: "second", title: "Fog", content: "The bell is silent in fog." });
    await service.send("POST", "/api/rag/resource", { key, body: other });
    const fields = { query: "the bell in fog", top_k: 10, expand };
    const { data } = await ask("search_passages", fields);
    expect(data.results.map((result: { text: string }) => result.text).toSorted()).toEqual([
      "The bell is silent in fog.",
      text,
    ]);
    const bell = data.results.find((result: { text: string }) => result.text === text);
    expect(bell.duplicates).toBe(2);
    expect(bell.duplicate_documents).toHaveLength(2);
    expect(data.next_offset).toBe(null);
    const all = await ask("search_passages", { ...fields, collapse: false });
    expect(all.data.results).toHaveLength(4);
    const seen: string[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const page: { data: { results: { text: string }[]; next_offset: number | null } } = await ask(
        "search_passages",
        { ...fields, top_k: 1, offset },
      );
      seen.push(...page.data.results.map((result) => result.text));
      offset = page.data.next_offset;
    }
    expect(seen.toSorted()).toEqual(["The bell is silent in fog.", text]);
    const { results } = (await ask("search", { query: "the bell in fog" })).data;
    expect(results).toHaveLength(2);
  },
);

it("search_passages returns so many passages of a document", async () => {
  const fields = { query: QUERY, source: "south", top_k: 10 };
  expect((await call("search_passages", { ...fields, max_per_document: 2 })).data.results).toHaveLength(2);
});

it.each([["section"], [1], [undefined]])(
  "search_passages pages through all hits, with expand %s",
  async (expand) => {
    const fields = { query: QUERY, max_per_document: 5 };
    const seen = new Set<string>();
    let pages = 0;
    for (let offset: number | null = 0; offset !== null && pages < 50; pages++) {
      const page = { ...fields, top_k: 4, max_tokens: 1500, offset, expand };
      const { data } = await call("search_passages", page);
      expect(countTokens(JSON.stringify(data))).toBeLessThanOrEqual(1500);
      for (const { chunk_id, hits = [] } of data.results)
        for (const id of [chunk_id, ...hits.map((hit: { chunk_id: string }) => hit.chunk_id)]) seen.add(id);
      offset = data.next_offset;
    }
    const all = await call("search_passages", { ...fields, top_k: 100, max_tokens: 25_000 });
    expect(all.data.next_offset).toBeNull();
    // Text around a hit may hold one that is left out as a near-duplicate.
    for (const { chunk_id } of all.data.results) expect(seen).toContain(chunk_id);
  },
);

it("search_passages cuts a passage that alone is longer than the tokens asked for", async () => {
  const { data } = await call("search_passages", { query: "tide", source: "signs", max_tokens: 1000 });
  expect(countTokens(JSON.stringify(data))).toBeLessThanOrEqual(1000);
  expect(data.results[0].text).toMatch(/^tide 潮+$/);
});
