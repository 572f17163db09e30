import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PREVIEW_CHARS_MAX } from "../../../src/wire/constants.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

const CONTENT = "# Otters\n\nOtters hold hands asleep.\n\n# Food\n\nThey eat urchins and crabs at dawn.";
const SETTINGS = { chunkSize: 45, chunkOverlap: 15 };

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

const preview = (body: object, key?: string): Promise<Answered> =>
  running.send("POST", "/api/rag/chunks/preview", { body, ...(key !== undefined && { key }) });
const ranges = (chunks: readonly { start: number; end: number }[]) =>
  chunks.map(({ start, end }) => [start, end]);

describe("a preview of chunks", () => {
  it("splits a text as a create does, and stores nothing", async () => {
    const owner = { owner_id: "preview", settings: SETTINGS, collection_details: "fastest" };
    const made = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: CONTENT, ...owner }),
    });
    const stored = await running.send("GET", `/api/rag/resource/${made.json.data._id}/chunks`);
    const before = await running.send("GET", "/api/rag/collections");
    const { status, json } = await preview({ content: CONTENT, settings: SETTINGS });
    expect([status, json.data.content, json.data.isCut]).toEqual([200, CONTENT, false]);
    expect(ranges(json.data.chunks)).toEqual(ranges(stored.json.data.chunks));
    expect(json.data.chunks.length).toBeGreaterThan(1);
    expect(json.data.chunks.at(-1).headings).toEqual(stored.json.data.chunks.at(-1).headings);
    expect((await running.send("GET", "/api/rag/collections")).json).toEqual(before.json);
  });

  it("splits the text of a document again, and of an uploaded file", async () => {
    const made = await running.send("POST", "/api/rag/resource", { body: createBody({ content: CONTENT }) });
    const document = await preview({ doc_id: made.json.data._id, settings: SETTINGS });
    const { json } = await running.send("POST", "/image/processing/upload", { body: fileForm(CONTENT) });
    const file = await preview({ url: json.file_url, settings: SETTINGS });
    for (const answered of [document, file]) {
      expect(answered.json.data.content).toBe(CONTENT);
      expect(answered.json.data.chunks.length).toBeGreaterThan(1);
    }
  });

  it("names the strategy used if another is not available", async () => {
    const { json } = await preview({ content: CONTENT, settings: { ...SETTINGS, strategy: "agentic" } });
    expect(json.data.strategyUsed).toBe("recursive");
  });

  it("splits the beginning of a long text, between characters", async () => {
    const content = `${"w ".repeat(PREVIEW_CHARS_MAX / 2 - 1)} \u{1F426}${" tail".repeat(9)}`;
    const { json } = await preview({ content });
    expect(json.data.isCut).toBe(true);
    expect(json.data.content).toBe(content.slice(0, PREVIEW_CHARS_MAX - 1));
    expect(json.data.content.isWellFormed()).toBe(true);
  });

  it.each([
    ["nothing to split", {}, "content"],
    ["two texts", { content: "a", url: "https://kb.example/a" }, "content"],
    [
      "an overlap as large as a chunk",
      { content: "a", settings: { chunkSize: 5, chunkOverlap: 5 } },
      "settings.chunkOverlap",
    ],
    ["an address that this service did not issue", { url: "/files/x/y" }, "url"],
  ])("a preview of chunks refuses %s", async (_name, body, field) => {
    const { status, json } = await preview(body);
    expect([status, json.error.field]).toEqual([400, field]);
  });

  it("refuses settings that make too many chunks", async () => {
    const { status, json } = await preview({
      content: "word ".repeat(10_000),
      settings: { chunkSize: 4000, chunkOverlap: 3999 },
    });
    expect([status, json.error.code]).toEqual([422, "too_many_chunks"]);
  });

  it("a preview of chunks needs a key that may add documents", async () => {
    const reader = await running.issueKey("local", ["read"]);
    expect((await preview({ content: "a" }, reader)).status).toBe(403);
  });
});
