import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { ANSWER_TOKENS } from "../../src/mcp/budget.ts";
import { NO_FILES, type KnownFiles } from "../../src/mcp/known-files.ts";
import { SearchInput, searchPassages } from "../../src/mcp/search-tool.ts";
import type { KnowledgeService } from "../../src/mcp/service.ts";
import { openFakeService } from "../fakes/knowledge-service.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { AGES, openMcpGround, type McpGround } from "./fixture.ts";

let service: Running;
let mcp: McpGround;
let tidesId: string;
let breadId: string;

const ABOUT = "What the coast is about.";
const DAYS = Array.from(
  { length: 12 },
  (_, at) => `## Day ${at}\n\nOn day ${at} the wind turns early. ${"It is calm. ".repeat(90)}`,
);
const ALMANAC = `# Winds\n\n${DAYS.join("\n\n")}`;

async function create(change: object): Promise<{ _id: string; collectionId: string }> {
  const made = await service.send("POST", "/api/rag/resource", { body: createBody(change) });
  expect(made.status).toBe(201);
  return made.json.data;
}

beforeAll(async () => {
  service = await openRunning();
  const tides = await create({ owner_id: "sea", metadata: { lang: "en", folderDescription: ABOUT } });
  tidesId = tides._id;
  const locations = [{ start: 0, sheet: "Dough", rows: { first: 2, last: 2 } }];
  const bread = { title: "Bread", content: "Flour, water and salt.", locations, owner_id: "kitchen" };
  ({ _id: breadId } = await create({ ...bread, collection_details: "moderate" }));
  await create({ title: "Almanac", content: ALMANAC, owner_id: "north" });
  // One chunk of 4,000 characters that are a token each.
  const signs = `tide ${"潮".repeat(3990)}`;
  await create({ title: "Signs", content: signs, owner_id: "signs", settings: { chunkSize: 4000 } });
  const files: KnownFiles = {
    sources: [{ folder: "/srv/sea", ownerId: "sea", collectionId: tides.collectionId }],
    fileOf: (id) => (id === tidesId ? { folder: "/srv/sea", path: "moon & tides.md" } : undefined),
    documentsOf: (path) => (path === "moon & tides.md" ? [tidesId] : []),
    close: () => undefined,
  };
  mcp = await openMcpGround({ service: service.url, files });
  // Loading the service takes seconds where other suites load theirs at the same time.
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

describe.each(AGES)("tools for a client of the age %s", (age) => {
  it("the server has four read-only tools, of which search and fetch need one argument", async () => {
    const { client } = await mcp.connect(service.key, age);
    const { tools } = await client.listTools();
    expect(tools.map(({ name, inputSchema }) => [name, inputSchema.required ?? []])).toEqual([
      ["search", ["query"]],
      ["fetch", ["id"]],
      ["list_sources", []],
      ["status", []],
    ]);
    for (const { annotations, outputSchema, description } of tools) {
      expect(annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
      expect(outputSchema?.["type"]).toBe("object");
      expect(description).not.toBe("");
    }
  });

  it("the tools find a passage, fetch its document and list the sources", async () => {
    const { call } = await mcp.connect(service.key, age);
    const { data, text } = await call("search", { query: "the moon pulls the sea", top_k: 1 });
    expect(JSON.parse(text)).toEqual(data);
    expect(data.results).toMatchObject([
      {
        id: tidesId,
        title: "Tides",
        path: "moon & tides.md",
        folder: "/srv/sea",
        owner_id: "sea",
        version: 1,
      },
    ]);
    const { data: fetched } = await call("fetch", { id: data.results[0].id });
    expect(fetched).toMatchObject({ title: "Tides", next_offset: null });
    expect(fetched.text).toContain("Twice a day");
    const { data: listed, text: sources } = await call("list_sources");
    expect(sources).toMatch(/: 1 document, 1 chunk$/m);
    expect(listed.sources).toContainEqual(
      expect.objectContaining({ owner_id: "sea", collection: "fastest", folder: "/srv/sea", documents: 1 }),
    );
  });
});

describe("the tool search", () => {
  it("search returns an address for citations: of the file, or of the document", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "moon water" });
    const urls = Object.fromEntries(
      data.results.map(({ id, url }: { id: string; url: string }) => [id, url] as const),
    );
    expect(urls[tidesId]).toBe("file:///srv/sea/moon%20&%20tides.md");
    expect(urls[breadId]).toBe(`kbsync://documents/${breadId}`);
  });

  it("search reports that a source was searched by words alone because there is no embedding model", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "flour", source: "kitchen" });
    expect(data.note).toMatch(/^Searched by words alone/);
    expect((await call("search", { query: "moon", source: "sea" })).data).not.toHaveProperty("note");
  });

  it("search says how many documents wait, of all sources that it searched", async () => {
    const pending = [
      { read: 2, embed: 0 },
      { read: 1, embed: 4 },
    ];
    const owners = pending.map((_, at) => {
      return { ownerId: `o${at}`, collectionId: "c", details: "fastest", resources: 1, chunks: 1 };
    });
    const waiting = {
      owners: () => Promise.resolve({ owners, nextCursor: null }),
      search: ({ owner_id: owner }: { owner_id: string }) =>
        Promise.resolve({ success: true, text: "", results: [], pending: pending[Number(owner.slice(1))] }),
    } as unknown as KnowledgeService;
    const { data } = await searchPassages(
      { service: waiting, ownsLedger: false },
      NO_FILES,
      SearchInput.parse({ query: "moon" }),
      AbortSignal.timeout(5000),
    );
    expect(data).toEqual({
      results: [],
      more: false,
      note: "Not everything is searchable yet: 3 being read, 4 not found by meaning yet.",
    });
  });

  it("search names the version and the place of a passage, and describes its folder", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "flour", source: "kitchen" });
    expect(data.results).toMatchObject([
      {
        version: 1,
        headings: "Bread",
        start: 0,
        end: 22,
        lines: { first: 1, last: 1 },
        locations: [{ sheet: "Dough", rows: { first: 2, last: 2 } }],
      },
    ]);
    const tides = await call("search", { query: "moon", source: "sea", top_k: 1 });
    expect(tides.data.results[0].folder_description).toBe(ABOUT);
  });

  it.each([
    ["everywhere", {}, ["tides", "bread"]],
    ["in a folder", { source: "/srv/sea" }, ["tides"]],
    ["in a folder with a slash behind it", { source: "/srv/sea/" }, ["tides"]],
    ["of an owner", { source: "kitchen" }, ["bread"]],
    ["in a document by its path", { document: "moon & tides.md" }, ["tides"]],
    ["with a filter", { filter: { lang: "en" } }, ["tides"]],
  ])("searches %s", async (_name, input, titles) => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "moon water", ...input });
    const ids = titles.map((title) => (title === "tides" ? tidesId : breadId));
    expect(data.results.map(({ id }: { id: string }) => id).toSorted()).toEqual(ids.toSorted());
  });

  it("search returns the best passages of all sources, up to top_k, and says if there may be more", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "moon water", top_k: 1 });
    const { data: all } = await call("search", { query: "moon water", top_k: 10 });
    expect(data.results).toEqual([all.results[0]]);
    expect([data.more, all.more]).toEqual([true, false]);
  });

  it("search omits a document that was deleted after it was found, and refuses to search in it", async () => {
    const { call } = await mcp.connect(service.key);
    const found = async () => {
      const { data } = await call("search", { query: "moon water" });
      return data.results.map(({ id }: { id: string }) => id).toSorted();
    };
    const { _id } = await create({ owner_id: "short-lived" });
    expect(await found()).toEqual([tidesId, breadId, _id].toSorted());
    await service.send("DELETE", `/api/rag/resource/${_id}`);
    expect(await found()).toEqual([tidesId, breadId].toSorted());
    const { isError, text } = await call("search", { query: "moon", document: _id });
    expect([isError, text]).toEqual([true, expect.stringContaining("resource_not_found")]);
  });

  it("search adds the chunks around a passage, within the tokens asked for", async () => {
    const { call } = await mcp.connect(service.key);
    const fields = { query: "the wind of day 7", source: "north", max_tokens: 2000 };
    const alone = (await call("search", fields)).data;
    const { data } = await call("search", { ...fields, expand: 1 });
    expect(countTokens(JSON.stringify(data))).toBeLessThanOrEqual(2000);
    for (const { text, start, end } of data.results) expect(text).toBe(ALMANAC.slice(start, end));
    expect(data.results[0].text.length).toBeGreaterThan(alone.results[0].text.length);
  });

  it("search cuts a passage that alone is longer than the tokens asked for", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search", { query: "tide", source: "signs", max_tokens: 1000 });
    expect(countTokens(JSON.stringify(data))).toBeLessThanOrEqual(1000);
    expect(data.results[0].text).toMatch(/^tide 潮+…$/);
    expect(data.more).toBe(true);
  });

  it.each([
    ["an unknown source", { source: "attic" }, /source_unknown[\s\S]*\/srv\/sea/],
    ["a document and a source", { document: "moon & tides.md", source: "sea" }, /too_much_named/],
    ["a filter that is none", { filter: { year: { gte: 1, above: 2 } } }, /invalid_field/],
    ["a top_k beyond the bound", { top_k: 101 }, /top_k/],
  ])("describes %s in words", async (_name, input, words) => {
    const { call } = await mcp.connect(service.key);
    const { isError, text } = await call("search", { query: "moon", ...input });
    expect(isError).toBe(true);
    expect(text).toMatch(words);
  });
});

it("a source beyond the first page is found by its name", async () => {
  const key = await service.issueKey("crowd");
  const make = async (at: number): Promise<void> => {
    const body = createBody({ owner_id: `owner ${String(at).padStart(4, "0")}`, content: `moon ${at}` });
    expect((await service.send("POST", "/api/rag/resource", { key, body })).status).toBe(201);
  };
  for (let from = 0; from <= 1000; from += 13)
    await Promise.all(Array.from({ length: 13 }, (_, at) => make(from + at)));
  const { call } = await mcp.connect(key);
  const listed: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const { data: page, text } = await call("list_sources", cursor === "" ? {} : { cursor });
    expect(countTokens(JSON.stringify(page))).toBeLessThanOrEqual(ANSWER_TOKENS);
    listed.push(...page.sources.map((one: { owner_id: string }) => one.owner_id));
    cursor = page.next_cursor;
    expect(text.endsWith(`[More sources: call list_sources with cursor ${cursor}.]`)).toBe(cursor !== null);
  }
  expect([listed.length, new Set(listed).size]).toEqual([1001, 1001]);
  const { data } = await call("search", { query: "moon", source: "owner 1000" });
  expect(data.results).toMatchObject([{ owner_id: "owner 1000", text: "moon 1000" }]);
  expect((await call("search", { query: "moon", source: "owner 1001" })).text).toMatch(/source_unknown/);
});

describe("a hosted service without our additions", () => {
  it("a service without our additions is used through the ledger, for the ledger's key only", async () => {
    const fake = await openFakeService({ searches: true });
    const made = await fetch(`${fake.url}/api/rag/resource`, {
      method: "POST",
      headers: { pauthkey: fake.key, "content-type": "application/json" },
      body: JSON.stringify(createBody({ owner_id: "sea" })),
    });
    const { data } = (await made.json()) as { data: { _id: string; collectionId: string } };
    const files: KnownFiles = {
      ...NO_FILES,
      sources: [{ folder: "/srv/sea", ownerId: "sea", collectionId: data.collectionId }],
      fileOf: () => ({ folder: "/srv/sea", path: "tides.md" }),
      documentsOf: (path) => (path === "tides.md" ? [data._id] : []),
    };
    const bare = await openMcpGround({ service: fake.url, files, ownKey: fake.key });
    try {
      const own = await bare.connect(fake.key);
      expect((await own.call("list_sources")).data.sources).toMatchObject([
        { folder: "/srv/sea", documents: null },
      ]);
      expect((await own.call("search", { query: "moon" })).data.results).toMatchObject([
        { id: data._id, url: "file:///srv/sea/tides.md" },
      ]);
      const read = await own.call("fetch", { id: "tides.md" });
      expect(read.data).toMatchObject({ id: data._id, title: "Tides", next_offset: null });
      expect(read.data.text).toContain("The moon pulls the sea.");
      expect((await own.call("list_sources", { cursor: "made up" })).text).toMatch(/cursor_invalid/);
      expect((await own.call("status")).data).toEqual({ daemon: "private", folders: [] });
      // A key that the folders were not synced with: only a document's id shows what it may search.
      const other = await openMcpGround({ service: fake.url, files });
      const { call } = await other.connect(fake.key);
      expect((await call("search", { query: "moon" })).text).toMatch(
        /sources_untold[\s\S]*Name a document by its id/,
      );
      await other.close();
    } finally {
      await bare.close();
      await fake.close();
    }
  });
});
