import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { fetchDocument } from "../../src/mcp/fetch-tool.ts";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import type { KnowledgeService } from "../../src/mcp/service.ts";
import type { ResourceRecord } from "../../src/wire/resource.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type Connected, type McpGround } from "./fixture.ts";

/** Text of the document that createBody describes. */
const { content: TIDES } = z.object({ content: z.string() }).parse(createBody({}));
/** A text whose characters are two units each, so that every second offset would part one. */
const WAVES = "🌊".repeat(10);
/** Longer than two parts, with a character of two units on every boundary that a part could have. */
const ALMANAC = "🌒 almanac ".repeat(12_000);

let service: Running;
let mcp: McpGround;
let client: Connected;
const ids: Record<string, string> = {};

beforeAll(async () => {
  service = await openRunning();
  const create = async (name: string, change: object): Promise<void> => {
    const made = await service.send("POST", "/api/rag/resource", { body: createBody(change) });
    expect(made.status).toBe(201);
    ids[name] = made.json.data._id;
  };
  await create("tides", { owner_id: "sea" });
  await create("waves", { title: "Waves", content: WAVES });
  await create("almanac", { title: "Almanac", content: ALMANAC });
  mcp = await openMcpGround({
    service: service.url,
    files: {
      ...NO_FILES,
      fileOf: (id) => (id === ids["tides"] ? { folder: "/srv/sea", path: "moon & tides.md" } : undefined),
      documentsOf: (path) => {
        if (path === "both.md") return [ids["tides"] ?? "", ids["waves"] ?? ""];
        return path === "moon & tides.md" ? [ids["tides"] ?? ""] : [];
      },
    },
  });
  client = await mcp.connect(service.key);
  // Loading the service takes seconds where other suites load theirs at the same time.
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

it("fetch returns a document with its text and its facts, as data and as JSON text", async () => {
  const { data, text } = await client.call("fetch", { id: ids["tides"] });
  expect(JSON.parse(text)).toEqual(data);
  expect(data).toEqual({
    id: ids["tides"],
    title: "Tides",
    text: TIDES,
    url: "file:///srv/sea/moon%20&%20tides.md",
    metadata: {
      path: "moon & tides.md",
      folder: "/srv/sea",
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
      characters: String(TIDES.length),
    },
    next_offset: null,
  });
});

/** Fetches all parts of a document. */
async function parts(id: string | undefined, limit: number | undefined): Promise<string[]> {
  const texts: string[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const { data }: { data: { text: string; next_offset: number | null } } = await client.call("fetch", {
      id,
      offset,
      limit,
    });
    const next: number | null = data.next_offset;
    const cut = next === null ? "" : `\n\n[Cut here. The next part is at offset ${next}.]`;
    expect(data.text.endsWith(cut)).toBe(true);
    expect(data.text.isWellFormed()).toBe(true);
    texts.push(data.text.slice(0, data.text.length - cut.length));
    offset = next;
  }
  return texts;
}

it("fetch returns a long text in parts, each of which names the next", async () => {
  const texts = await parts(ids["almanac"], undefined);
  expect([texts.length, texts.join("")]).toEqual([3, ALMANAC]);
});

it.each([1, 2, 7, 19, 20])(
  "fetch returns parts of at most %i units, and splits no character",
  async (limit) => {
    const texts = await parts(ids["waves"], limit);
    expect(texts.join("")).toBe(WAVES);
    for (const text of texts) expect(text.length).toBeLessThanOrEqual(Math.max(limit, 2));
  },
);

it("fetch starts at a whole character, and returns nothing beyond the end", async () => {
  const within = await client.call("fetch", { id: ids["waves"], offset: 3, limit: 2 });
  expect(within.data.text).toMatch(/^🌊\n/u);
  expect(within.data.next_offset).toBe(4);
  const beyond = await client.call("fetch", { id: ids["waves"], offset: 5000 });
  expect(beyond.data).toMatchObject({ text: "", next_offset: null });
});

it.each([
  ["f".repeat(24), /resource_not_found/],
  ["nope.md", /document_unknown/],
  ["both.md", /document_ambiguous/],
])("fetch reports %s", async (id, words) => {
  const { isError, text } = await client.call("fetch", { id });
  expect(isError).toBe(true);
  expect(text).toMatch(words);
});

it("fetch returns the reason instead of the text of a failed document", async () => {
  const record = {
    _id: "a".repeat(24),
    title: "Scan",
    description: "",
    content: "",
    metadata: { status: "error", message: "the PDF is damaged" },
  } as unknown as ResourceRecord;
  const shown = { resource: () => Promise.resolve(record) } as unknown as KnowledgeService;
  const reached = { service: shown, ownsLedger: true };
  const asked = { id: record._id, offset: 0, limit: 100 };
  const { data } = await fetchDocument(reached, NO_FILES, asked, AbortSignal.timeout(5000));
  expect(data).toMatchObject({ text: "", metadata: { problem: "the PDF is damaged" } });
});

it("fetch refuses a deleted document", async () => {
  const body = createBody({ title: "Short-lived", content: "Soon gone." });
  const { _id } = (await service.send("POST", "/api/rag/resource", { body })).json.data;
  await service.send("DELETE", `/api/rag/resource/${_id}`);
  expect((await client.call("fetch", { id: _id })).text).toMatch(/document_deleted/);
});

it("fetch shows nothing of another account", async () => {
  const { call } = await mcp.connect(await service.issueKey("stranger", ["read"]));
  const words = async (id: string): Promise<string> =>
    (await call("fetch", { id })).text.replaceAll(id, "ID");
  expect(await words(ids["tides"] ?? "")).toBe(await words("f".repeat(24)));
  expect(await words("moon & tides.md")).toBe(await words("no & file.md"));
});
