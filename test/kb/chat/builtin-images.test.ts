import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { picture } from "../ingest/extract/picture-fixture.ts";
import { fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, openAsking } from "./asking.ts";

/** A picture takes half a second, and much longer on a busy machine. */
const SLOW_MS = 120_000;

let running: Running;
let imageUrl: string;
beforeAll(async () => {
  running = await openAsking(undefined);
  const drawn = await picture(["Minutes of the harbour board", "", "The invoice total is 4711 euros."]);
  const upload = await running.send("POST", "/files/upload", {
    body: fileForm(await drawn.png().toBuffer(), "minutes.png"),
  });
  imageUrl = upload.json.file_url;
}, SLOW_MS);
afterAll(() => running.close());

describe("without a model", () => {
  it(
    "an answer without a model describes images with format, size and text, and quotes matching lines",
    async () => {
      const user_urls = [{ type: "image", url: imageUrl }];
      const { json } = await ask(running, { user: "What is the invoice total?", user_urls });
      const { content, images } = json.response.data;
      expect(content).toMatch(
        /^No language model answered this\. Text in the images was recognised \(OCR\)\.\n/,
      );
      expect(content).toMatch(/Image: minutes\.png \(PNG, \d+ × \d+ pixels, \d+ KB\)\. Its text:/);
      expect(content).toContain("Minutes of the harbour board\n\nThe invoice total is 4711 euros.");
      expect(content).toContain(
        "Lines of the images that fit the question:\n\nThe invoice total is 4711 euros.",
      );
      expect(images).toEqual([imageUrl]);
    },
    SLOW_MS,
  );

  it(
    "an answer without a model says if a picture has no text or text recognition is switched off",
    async () => {
      const empty = await sharp({ create: { width: 60, height: 60, channels: 3, background: "#3a7" } })
        .webp()
        .toBuffer();
      const off = await openAsking(undefined, { defaultKnowledge: () => [] }, { ocr: { pagesMax: 0 } });
      try {
        for (const [asked, words] of [
          [running, "(WEBP, 60 × 60 pixels, "],
          [off, "Text recognition is switched off"],
        ] as const) {
          const upload = await asked.send("POST", "/files/upload", { body: fileForm(empty, "green.webp") });
          const { json } = await ask(asked, { user_urls: [{ type: "image", url: upload.json.file_url }] });
          expect(json.response.data.content).toContain(words);
          expect(json.response.data.content.includes("(OCR)")).toBe(asked === running);
        }
      } finally {
        await off.close();
      }
    },
    SLOW_MS,
  );
});
