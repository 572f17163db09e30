import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { picture } from "../ingest/extract/picture-fixture.ts";
import { createBody, fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, eventsOf, openAsking, remember } from "./asking.ts";

/** A picture takes half a second, on a machine with other work many times that. */
const SLOW_MS = 120_000;

let running: Running;
let imageUrl: string;
let resourceId: string;
beforeAll(async () => {
  running = await openAsking(undefined);
  resourceId = await remember(running, "The harbour is old. The new crane lifts forty tons.");
  const drawn = await picture(["Minutes of the harbour board", "", "The invoice total is 4711 euros."]);
  const upload = await running.send("POST", "/files/upload", {
    body: fileForm(await drawn.png().toBuffer(), "minutes.png"),
  });
  imageUrl = upload.json.file_url;
}, SLOW_MS);
afterAll(() => running.close());

describe("without a model", () => {
  it("the answer quotes the passages that fit, with where they stand, and says what it is", async () => {
    const { status, json } = await ask(running, { user: "What does the crane lift?" });
    expect(status).toBe(200);
    const { data, usage } = json.response;
    expect(data).toMatchObject({ model: "builtin/ocr", finish_reason: "completed", fallback: false });
    expect(data.content).toMatch(/^No language model answered this\./);
    expect(data.content).toContain("“The new crane lifts forty tons.” [1] (Harbour)");
    expect(data.annotations).toMatchObject([
      { type: "citation", number: 1, resource_id: resourceId, span: { start: 20, end: 51 } },
    ]);
    expect(Object.values(usage)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  it("says so where nothing fits", async () => {
    const { json } = await ask(running, { user: "zebras" });
    expect(json.response.data.content).toContain("holds nothing that fits");
  });

  it(
    "an image is told by format, size, text and the place of each line; lines that fit the question are shown",
    async () => {
      const user_urls = [{ type: "image", url: imageUrl }];
      const { json } = await ask(running, { user: "What is the invoice total?", user_urls });
      const { content, images, tools_data } = json.response.data;
      expect(content).toMatch(/Image: minutes\.png \(PNG, \d+ × \d+ pixels, \d+ KB\)\. Its text:/);
      expect(content).toContain("Minutes of the harbour board\n\nThe invoice total is 4711 euros.");
      expect(content).toContain(
        "Lines of the images that fit the question:\n\nThe invoice total is 4711 euros.",
      );
      expect(images).toEqual([imageUrl]);
      const [read] = tools_data.ocr;
      expect(read).toMatchObject({ format: "PNG", url: imageUrl, pages: 1 });
      expect(read.read[0].lines[0]).toMatchObject({ text: "Minutes of the harbour board" });
      const [left, top, right, bottom] = read.read[0].lines[0].box;
      expect(right - left).toBeGreaterThan(bottom - top);
    },
    SLOW_MS,
  );

  it("comes in pieces as it is made, and as JSON where that was asked for", async () => {
    const streamed = eventsOf((await ask(running, { user: "crane lifts", stream: true })).text);
    expect(streamed.map(({ event }) => event)).toEqual(["delta", "delta", "completed"]);
    const { json } = await ask(running, { user: "What does the crane lift?", response_type: "json" });
    expect(JSON.parse(json.response.data.content)).toMatchObject({
      note: expect.stringContaining("No language model"),
      passages: [{ title: "Harbour", text: "The new crane lifts forty tons." }],
    });
  });

  it(
    "a picture without text, and a reader that is switched off, are told as such",
    async () => {
      const empty = await sharp({ create: { width: 60, height: 60, channels: 3, background: "#3a7" } })
        .webp()
        .toBuffer();
      const off = await openAsking(undefined, { defaultKnowledge: [] }, { ocr: { pagesMax: 0 } });
      try {
        for (const [asked, words] of [
          [running, "(WEBP, 60 × 60 pixels, "],
          [off, "Recognising text is switched off here"],
        ] as const) {
          const upload = await asked.send("POST", "/files/upload", { body: fileForm(empty, "green.webp") });
          const { json } = await ask(asked, { user_urls: [{ type: "image", url: upload.json.file_url }] });
          expect(json.response.data.content).toContain(words);
        }
      } finally {
        await off.close();
      }
    },
    SLOW_MS,
  );
});

describe("what an agent reads", () => {
  it("is its owner's alone", async () => {
    await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: "The submarine dives deep.", owner_id: "navy" }),
    });
    expect((await ask(running, { user: "submarine dives" })).json.response.data.annotations).toEqual([]);
    const admin = await running.issueKey("local", ["admin"]);
    const knowledge = [{ tier: "fastest", owner: "navy" }];
    await running.send("POST", "/v1/agents", { key: admin, body: { id: "navy", name: "Navy", knowledge } });
    const { json } = await ask(running, { agent_id: "navy", user: "submarine dives" });
    expect(json.response.data.annotations).toMatchObject([{ span: { text: "The submarine dives deep." } }]);
  });
});
