import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, openAsking } from "./asking.ts";

let endpoint: ModelEndpoint;
let running: Running;
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  running = await openAsking(endpoint);
});
afterAll(async () => {
  await running.close();
  await endpoint.close();
});

/** A picture that compresses badly, except with few levels of its colours. */
const noise = (side: number, level = (value: number) => value) => {
  const data = Buffer.alloc(side * side * 3);
  let state = 1;
  for (let at = 0; at < data.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    data[at] = level(state >>> 24);
  }
  return sharp(data, { raw: { width: side, height: side, channels: 3 } });
};
const upload = async (bytes: Buffer, name: string): Promise<{ type: "image"; url: string }> => {
  const { json } = await running.send("POST", "/files/upload", { body: fileForm(bytes, name) });
  return { type: "image", url: json.file_url };
};

describe("images as models get them", () => {
  it("renders a picture as JPEG if the PNG is large", async () => {
    const user_urls = [await upload(await noise(1300).png({ compressionLevel: 1 }).toBuffer(), "noise.png")];
    expect((await ask(running, { user: "What?", user_urls })).status).toBe(200);
    const content = JSON.stringify(endpoint.requests.at(-1)?.messages.at(-1)?.content);
    expect(content).toContain("data:image/jpeg;base64,");
    expect(content.length).toBeLessThan(5_000_000);
  });

  it("renders a picture as PNG if that is small", async () => {
    const user_urls = [await upload(await noise(40).png().toBuffer(), "small.png")];
    expect((await ask(running, { user: "What?", user_urls })).status).toBe(200);
    const content = JSON.stringify(endpoint.requests.at(-1)?.messages.at(-1)?.content);
    expect(content).toContain("data:image/png;base64,");
  });

  it("counts images as they are sent to the model, not as they were received", async () => {
    // Three bits a pixel as received, and many more as sent.
    const blackOrWhite = (value: number): number => (value < 128 ? 0 : 255);
    const bytes = await noise(2048, blackOrWhite).webp({ lossless: true, effort: 0 }).toBuffer();
    const count = 12;
    expect(bytes.length * count).toBeLessThan(32 * 1024 * 1024);
    const user_urls = await Promise.all(Array.from({ length: count }, () => upload(bytes, "noise.webp")));
    const answer = await ask(running, { user: "What?", user_urls });
    expect(answer).toMatchObject({ status: 413, json: { error: { code: "images_too_large" } } });
    expect(answer.json.error.field).toMatch(/^user_urls\[\d+\]\.url$/);
  });
});
