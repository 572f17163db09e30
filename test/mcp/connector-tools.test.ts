import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { KbsyncError } from "../../src/lib/failure.ts";
import { findDocuments } from "../../src/mcp/connector-tools.ts";
import { NO_FILES } from "../../src/mcp/known-files.ts";
import type { KnowledgeService } from "../../src/mcp/service.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type Connected, type McpGround } from "./fixture.ts";

let service: Running;
let mcp: McpGround;
let client: Connected;
const ids: Record<string, string> = {};

/** Text of the document that createBody describes. */
const { content: TIDES } = z.object({ content: z.string() }).parse(createBody({}));

/** Longer than two parts, with a character of two units on every boundary that a part could have. */
const ALMANAC = "🌒 almanac ".repeat(12_000);

beforeAll(async () => {
  service = await openRunning();
  const create = async (name: string, change: object): Promise<void> => {
    const made = await service.send("POST", "/api/rag/resource", { body: createBody(change) });
    expect(made.status).toBe(201);
    ids[name] = made.json.data._id;
  };
  await create("tides", { owner_id: "sea" });
  await create("bread", { owner_id: "kitchen", title: "Bread", content: "Flour, water and salt." });
  await create("almanac", { owner_id: "sea", title: "Almanac", content: ALMANAC });
  mcp = await openMcpGround({
    service: service.url,
    files: {
      ...NO_FILES,
      fileOf: (id) => (id === ids["tides"] ? { folder: "/srv/sea", path: "moon & tides.md" } : undefined),
      formerOwners: [],
      documentsOf: (path) => (path === "moon & tides.md" ? [ids["tides"] ?? ""] : []),
    },
  });
  client = await mcp.connect(service.key);
  // Loading the service takes seconds where other suites load theirs at the same time.
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

it("search and fetch take exactly the arguments that ChatGPT checks", async () => {
  const { tools } = await client.client.listTools();
  const inputs = Object.fromEntries(
    tools.map(({ name, inputSchema }) => [
      name,
      [Object.keys(inputSchema.properties ?? {}), inputSchema.required],
    ]),
  );
  expect(inputs).toMatchObject({ search: [["query"], ["query"]], fetch: [["id"], ["id"]] });
});

describe("the tool search", () => {
  it("search returns each document once, with an address, as data and as JSON text", async () => {
    const { data, text } = await client.call("search", { query: "the moon pulls the water" });
    expect(JSON.parse(text)).toEqual(data);
    const tides = { id: ids["tides"], title: "Tides", url: "file:///srv/sea/moon%20&%20tides.md" };
    const bread = { id: ids["bread"], title: "Bread", url: `kbsync://documents/${ids["bread"]}` };
    expect(data).toEqual({
      results: expect.arrayContaining([tides, bread]),
    });
    const { data: many } = await client.call("search", { query: "almanac" });
    expect(many.results.map(({ id }: { id: string }) => id)).toEqual([ids["almanac"]]);
  });

  it("search returns an empty list where nothing matches", async () => {
    expect((await client.call("search", { query: "zeppelin" })).data).toMatchObject({ results: [] });
  });

  it("search returns at most ten documents", async () => {
    const key = await service.issueKey("crowd");
    for (let at = 0; at < 12; at++) {
      const body = createBody({ title: `Note ${at} ${"x".repeat(900)}`, content: `zebra ${at}` });
      await service.send("POST", "/api/rag/resource", { key, body });
    }
    const { call } = await mcp.connect(key);
    const { results } = (await call("search", { query: "zebra" })).data;
    expect(results).toHaveLength(10);
    expect(results[0].title).toMatch(/^Note \d+ x+…$/);
    expect(results[0].title).toHaveLength(200);
  });

  it("search omits a document that was deleted after it was found", async () => {
    const payload = { resourceId: "", collectionId: "c", content: "", ownerId: "o", title: "Moon" };
    const results = ["kept", "erased", "deleted"].map((id) => ({
      id,
      version: 1,
      score: 0.5,
      payload: { ...payload, resourceId: id, content: `the ${id} moon` },
    }));
    const owner = { ownerId: "o", collectionId: "c", details: "fastest", resources: 3, chunks: 3 };
    const changing = {
      owners: () => Promise.resolve({ owners: [owner], nextCursor: null }),
      search: () => Promise.resolve({ success: true, text: "", results }),
      record: (id: string) =>
        id === "erased"
          ? Promise.reject(new KbsyncError("not found", { code: "resource_not_found" }))
          : Promise.resolve({ _id: id, url: "https://example.com/moon", isDeleted: id === "deleted" }),
    } as unknown as KnowledgeService;
    const reached = { service: changing, ownsLedger: false };
    const { data } = await findDocuments(reached, NO_FILES, { query: "moon" }, AbortSignal.timeout(5000));
    expect(data.results).toEqual([{ id: "kept", title: "Moon", url: "https://example.com/moon" }]);
  });
});

describe("the tool fetch", () => {
  it("fetch returns what search found, with its text and its facts", async () => {
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
    });
  });

  it("fetch returns a long text in parts, each of which names the next", async () => {
    let whole = "";
    let parts = 0;
    for (let id: string | undefined = ids["almanac"]; id !== undefined; parts++) {
      const { data }: { data: { text: string; metadata: Record<string, string> } } = await client.call(
        "fetch",
        { id },
      );
      const next: string | undefined = data.metadata["next_id"];
      const cut = `\n\n[Cut here. fetch ${next} returns the next part.]`;
      expect(data.text.endsWith(cut)).toBe(next !== undefined);
      expect(data.text.isWellFormed()).toBe(true);
      expect(data.text.length).toBeLessThan(50_200);
      whole += next === undefined ? data.text : data.text.slice(0, -cut.length);
      id = next;
    }
    expect(whole).toBe(ALMANAC);
    expect(parts).toBe(3);
  });

  it.each([
    ["f".repeat(24), /resource_not_found/],
    ["nothing here", /document_unknown/],
    [`${"f".repeat(24)}#100`, /resource_not_found/],
  ])("fetch reports the unknown id %s", async (id, words) => {
    const { isError, text } = await client.call("fetch", { id });
    expect(isError).toBe(true);
    expect(text).toMatch(words);
  });

  it("fetch shows nothing of another account", async () => {
    const { call } = await mcp.connect(await service.issueKey("stranger", ["read"]));
    const words = async (id: string): Promise<string> =>
      (await call("fetch", { id })).text.replaceAll(id, "ID");
    expect(await words(ids["tides"] ?? "")).toBe(await words("f".repeat(24)));
    expect(await words("moon & tides.md")).toBe(await words("no & file.md"));
    expect((await call("search", { query: "moon" })).data).toMatchObject({ results: [] });
  });
});
