import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { ANSWER_TOKENS } from "../../src/mcp/budget.ts";
import type { KnownFiles } from "../../src/mcp/known-files.ts";
import { readDocument } from "../../src/mcp/read-tool.ts";
import type { KnowledgeService } from "../../src/mcp/service.ts";
import type { ResourceRecord } from "../../src/wire/resource.ts";
import { openFakeService } from "../fakes/knowledge-service.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { AGES, openMcpGround, type McpGround } from "./fixture.ts";

let service: Running;
let mcp: McpGround;
let tidesId: string;
let breadId: string;
let collectionId: string;

/** A text whose characters are two units each, so that every second offset would part one. */
const WAVES = "🌊".repeat(10);

const ABOUT = "What the coast is about.";

async function create(change: object): Promise<{ _id: string; collectionId: string }> {
  const made = await service.send("POST", "/api/rag/resource", { body: createBody(change) });
  expect(made.status).toBe(201);
  return made.json.data;
}

/** What the ledger knows of the folders, and how long it was asked to wait. */

beforeAll(async () => {
  service = await openRunning();
  const tides = await create({ owner_id: "sea", metadata: { lang: "en", folderDescription: ABOUT } });
  ({ _id: tidesId, collectionId } = tides);
  const locations = [{ start: 0, sheet: "Dough", rows: { first: 2, last: 2 } }];
  const bread = { title: "Bread", content: "Flour, water and salt.", locations, owner_id: "kitchen" };
  ({ _id: breadId } = await create({ ...bread, collection_details: "moderate" }));
  await create({ title: "Waves", content: WAVES, owner_id: "sea" });
  const files: KnownFiles = {
    sources: [{ folder: "/srv/sea", ownerId: "sea", collectionId }],
    fileOf: (id) => (id === tidesId ? { folder: "/srv/sea", path: "tides.md" } : undefined),
    formerOwners: [],
    documentsOf: (path) => {
      if (path === "both.md") return [tidesId, breadId];
      return path === "tides.md" || path === "/srv/sea/tides.md" ? [tidesId] : [];
    },
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
  it("the server has read-only tools with input and output schemas", async () => {
    const { client } = await mcp.connect(service.key, age);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "search_passages",
      "read_document",
      "list_sources",
      "list_changes",
      "plan_sync",
      "search",
      "fetch",
    ]);
    for (const { annotations, inputSchema, outputSchema, description } of tools) {
      expect(annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
      expect(inputSchema.type).toBe("object");
      expect(outputSchema?.["type"]).toBe("object");
      expect(description).not.toBe("");
    }
  });

  it("the tools find a passage, read its document and list the sources", async () => {
    const { call } = await mcp.connect(service.key, age);
    const { data, text } = await call("search_passages", { query: "the moon pulls the sea", top_k: 1 });
    expect(data.results).toHaveLength(1);
    expect(data.results[0]).toMatchObject({
      document_id: tidesId,
      path: "tides.md",
      folder: "/srv/sea",
      owner_id: "sea",
      version: 1,
    });
    expect(text).toContain("tides.md");
    expect(text).toContain("The moon pulls the sea.");

    const read = await call("read_document", { document: data.results[0].document_id });
    expect(read.data).toMatchObject({ title: "Tides", path: "tides.md", offset: 0, next_offset: null });
    expect(read.data.text).toContain("Twice a day");

    const { data: listed, text: sources } = await call("list_sources");
    const counts = listed.sources.map((one: Record<string, unknown>) => [
      one["owner_id"],
      one["collection"],
      one["folder"],
      one["documents"],
    ]);
    expect(sources).toMatch(/: 1 document, 1 chunk$/m);
    expect(sources).toMatch(/: 2 documents, /);
    expect(counts.toSorted()).toEqual([
      ["kitchen", "moderate", null, 1],
      ["sea", "fastest", "/srv/sea", 2],
    ]);
  });
});

describe("the tool list_changes", () => {
  it("list_changes pages through changes, and continues where it ended when there are others", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("list_changes", { cursor: "now" });
    expect(data).toMatchObject({ changes: [], more: false });
    const path = "sand.md";
    await create({ owner_id: "changed", title: "Sand", content: "Dunes.", metadata: { path } });
    const { data: later, text } = await call("list_changes", { cursor: data.next_cursor });
    expect(later).toMatchObject({ changes: [{ change: "created", path, version: 1 }], more: false });
    expect(text).toMatch(
      /^\S+Z created sand\.md \(version 1\)\n\[Later changes: call list_changes with cursor /,
    );
    const unknown = await call("list_changes", { cursor: "1-0" });
    expect(unknown.text).toContain("(cursor_expired)");
  });
});

describe("the tool search_passages", () => {
  it("search_passages reports that a source was searched by words alone because there is no embedding model", async () => {
    const { call } = await mcp.connect(service.key);
    const kitchen = await call("search_passages", { query: "flour", source: "kitchen" });
    expect(kitchen.data.fallback).toBe("words");
    expect(kitchen.text).toMatch(/^Searched by words alone.*\n\n\[/);
    expect((await call("search_passages", { query: "flour" })).data.fallback).toBe("words");
    expect((await call("search_passages", { query: "moon", source: "sea" })).data).not.toHaveProperty(
      "fallback",
    );
  });

  it("search_passages returns the description of a passage's folder, and shows it once", async () => {
    const { call } = await mcp.connect(service.key);
    const { data, text } = await call("search_passages", { query: "moon water", top_k: 10 });
    const described = data.results.filter((one: { document_id: string }) => one.document_id === tidesId);
    expect(described).toEqual([expect.objectContaining({ folder_description: ABOUT })]);
    expect(text.split(`Folder: ${ABOUT}\n`)).toHaveLength(2);
    expect(data.results).toContainEqual(expect.not.objectContaining({ folder_description: ABOUT }));
  });

  it("search_passages names the version and the place of a passage", async () => {
    const { call } = await mcp.connect(service.key);
    const { data, text } = await call("search_passages", { query: "flour", source: "kitchen" });
    expect(data.results).toMatchObject([
      {
        version: 1,
        heading_path: "Bread",
        start: 0,
        end: 22,
        lines: { first: 1, last: 1 },
        locations: [{ sheet: "Dough", rows: { first: 2, last: 2 } }],
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
    expect(text).toContain(`Bread (document ${breadId}), sheet "Dough", row 2\n`);
    const tides = await call("search_passages", { query: "moon", source: "sea", top_k: 1 });
    expect(tides.text).toMatch(/^\[.*\] tides\.md \(document [0-9a-f]+\), lines \d+–\d+\nFolder: /);
  });

  const found = async (input: object): Promise<string[]> => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search_passages", { query: "moon water", ...input });
    return data.results.map((result: { document_id: string }) => result.document_id);
  };

  it.each([
    ["everywhere", {}, ["tides", "bread"]],
    ["in a folder", { source: "/srv/sea" }, ["tides"]],
    ["in a folder with a slash behind it", { source: "/srv/sea/" }, ["tides"]],
    ["of an owner", { source: "kitchen" }, ["bread"]],
    ["in a collection by its tier", { collection: "moderate" }, ["bread"]],
    ["in a document by its path", { document: "tides.md" }, ["tides"]],
    ["with a filter", { filter: { lang: "en" } }, ["tides"]],
    ["above a score that nothing has", { score: 1 }, []],
  ])("searches %s", async (_name, input, titles) => {
    const ids = titles.map((title) => (title === "tides" ? tidesId : breadId));
    expect((await found(input)).toSorted()).toEqual(ids.toSorted());
  });

  it("search_passages returns the best passages of all sources, up to top_k", async () => {
    const { call } = await mcp.connect(service.key);
    const { data } = await call("search_passages", { query: "moon water", top_k: 1 });
    const { data: all } = await call("search_passages", { query: "moon water", top_k: 10 });
    expect(data.results).toEqual([all.results[0]]);
  });

  it.each([
    ["an unknown source", { source: "attic" }, /source_unknown[\s\S]*\/srv\/sea/],
    ["a document and a source", { document: "tides.md", source: "sea" }, /too_much_named/],
    ["a filter that is none", { filter: { year: { gte: 1, above: 2 } } }, /invalid_field/],
    ["a top_k beyond the bound", { top_k: 101 }, /top_k/],
  ])("describes %s in words", async (_name, input, words) => {
    const { call } = await mcp.connect(service.key);
    const { isError, text } = await call("search_passages", { query: "moon", ...input });
    expect(isError).toBe(true);
    expect(text).toMatch(words);
  });
});

it("a source beyond the first page is found by its name", async () => {
  const key = await service.issueKey("crowd");
  const lines = Array.from({ length: 1001 }, (_, at) =>
    JSON.stringify(createBody({ owner_id: `owner ${String(at).padStart(4, "0")}`, content: `moon ${at}` })),
  );
  const made = await service.send("POST", "/api/rag/resources/bulk", {
    key,
    headers: { "content-type": "application/x-ndjson" },
    body: `${lines.join("\n")}\n`,
  });
  expect(made.status).toBe(200);
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
  const { data } = await call("search_passages", { query: "moon", source: "owner 1000" });
  expect(data.results).toMatchObject([{ owner_id: "owner 1000", text: "moon 1000" }]);
  expect((await call("search_passages", { query: "moon", source: "owner 1001" })).text).toMatch(
    /source_unknown/,
  );
});

describe("the tool read_document", () => {
  it("read_document returns a text in parts, without splitting characters", async () => {
    const { call } = await mcp.connect(service.key);
    const { data: found } = await call("search_passages", { query: "Waves", source: "sea" });
    const document = found.results[0].document_id;
    for (const limit of [1, 2, 7, 19, 20]) {
      let text = "";
      for (let offset: number | null = 0; offset !== null;) {
        const { data } = await call("read_document", { document, offset, limit });
        expect(data.text.isWellFormed()).toBe(true);
        expect(data.text.length).toBeLessThanOrEqual(Math.max(limit, 2));
        text += data.text;
        offset = data.next_offset;
      }
      expect(text).toBe(WAVES);
    }
  });

  it("read_document starts at a whole character, and returns nothing beyond the end", async () => {
    const { call } = await mcp.connect(service.key);
    const { data: found } = await call("search_passages", { query: "Waves", source: "sea" });
    const document = found.results[0].document_id;
    expect((await call("read_document", { document, offset: 3, limit: 2 })).data).toMatchObject({
      offset: 2,
      text: "🌊",
    });
    const beyond = await call("read_document", { document, offset: 5000 });
    expect(beyond.data).toMatchObject({ text: "", next_offset: null, total_chars: WAVES.length });
  });

  it.each([
    ["a path that nothing has", "nope.md", /document_unknown/],
    ["a path of two sources", "both.md", /document_ambiguous/],
    ["an id that the service does not know", "f".repeat(24), /resource_not_found/],
    ["an id that would lead elsewhere", "../../v1/keys", /document_unknown/],
  ])("describes %s in words", async (_name, document, words) => {
    const { call } = await mcp.connect(service.key);
    const { isError, text } = await call("read_document", { document });
    expect(isError).toBe(true);
    expect(text).toMatch(words);
  });

  it("read_document returns the reason instead of the text of a failed document", async () => {
    const record = {
      _id: "a".repeat(24),
      title: "Scan",
      description: "",
      content: "",
      metadata: { status: "error", message: "the PDF is damaged" },
    } as unknown as ResourceRecord;
    const shown = { resource: () => Promise.resolve(record) } as unknown as KnowledgeService;
    const files: KnownFiles = {
      sources: [],
      fileOf: () => undefined,
      formerOwners: [],
      documentsOf: () => [],
      close: () => undefined,
    };
    const asked = { document: record._id, offset: 0, limit: 100 };
    const { data, text } = await readDocument(
      { service: shown, ownsLedger: true },
      files,
      asked,
      AbortSignal.timeout(5000),
    );
    expect(data).toMatchObject({ status: "error", text: "" });
    expect(text).toContain("the PDF is damaged");
  });

  it("read_document refuses a deleted document", async () => {
    const { _id } = await create({ title: "Short-lived", content: "Soon gone.", owner_id: "sea" });
    await service.send("DELETE", `/api/rag/resource/${_id}`);
    const { call } = await mcp.connect(service.key);
    expect((await call("read_document", { document: _id })).text).toMatch(/document_deleted/);
  });
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
      sources: [{ folder: "/srv/sea", ownerId: "sea", collectionId: data.collectionId }],
      fileOf: () => ({ folder: "/srv/sea", path: "tides.md" }),
      formerOwners: [],
      documentsOf: (path) => (path === "tides.md" ? [data._id] : []),
      close: () => undefined,
    };
    const bare = await openMcpGround({ service: fake.url, files, ownKey: fake.key });
    try {
      const own = await bare.connect(fake.key);
      expect((await own.call("list_sources")).data.sources).toMatchObject([
        { folder: "/srv/sea", documents: null },
      ]);
      const read = await own.call("read_document", { document: "tides.md" });
      expect(read.data).toMatchObject({ title: "Tides", next_offset: null });
      const { resources } = await own.client.listResources();
      expect(resources).toMatchObject([{ uri: `kbsync://documents/${data._id}`, name: "tides.md" }]);
      expect((await own.call("search", { query: "moon" })).data.results).toEqual([
        { id: data._id, title: expect.any(String), url: "file:///srv/sea/tides.md" },
      ]);
      expect((await own.call("fetch", { id: data._id })).data.text).toContain("The moon pulls the sea.");
      expect((await own.call("list_sources", { cursor: "made up" })).text).toMatch(/cursor_invalid/);
      // A key that the folders were not synced with: only a document's id shows what it may search.
      const other = await openMcpGround({ service: fake.url, files });
      const { call } = await other.connect(fake.key);
      expect((await call("search_passages", { query: "moon" })).text).toMatch(
        /sources_untold[\s\S]*Name a document by its document_id/,
      );
      await other.close();
    } finally {
      await bare.close();
      await fake.close();
    }
  });
});
