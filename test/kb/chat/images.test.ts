import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { IMAGES_BYTES_MAX } from "../../../src/wire/chat.ts";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openWeb, type Web } from "../fetch/web.ts";
import { bitmapHeader } from "../ingest/extract/picture-fixture.ts";
import { fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { ask, filesOf, openAsking } from "./asking.ts";

/** Each image that is refused costs its reader's process, which takes half a second to start; elsewhere much more. */
const SLOW = { timeout: 120_000 };

let endpoint: ModelEndpoint;
let running: Running;
let web: Web;
let textUrl: string;
let before: Awaited<ReturnType<typeof filesOf>>;
const green = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "#0c0" } });
const png = green(20, 20).png();
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  const small = await png.clone().toBuffer();
  const tiff = await green(50, 20).tiff().toBuffer();
  // Bytes after the end of a picture are ignored, so a picture can have any size on the disk.
  const sized = (bytes: number) => Buffer.concat([small, Buffer.alloc(bytes - small.length)]);
  const page = (body: string | Buffer) => (_request: unknown, response: import("node:http").ServerResponse) =>
    void response.end(body);
  web = await openWeb({
    "/small.png": page(small),
    "/green.tif": page(tiff),
    "/half.png": page(sized(IMAGES_BYTES_MAX / 2)),
    "/other-half.png": page(sized(IMAGES_BYTES_MAX / 2)),
    "/half-more.png": page(sized(IMAGES_BYTES_MAX / 2 + 1)),
    "/page": page("<html>No picture</html>"),
    "/empty": page(""),
    "/bomb.png": page(hugePng()),
    "/broken.png": page(small.subarray(0, 60)),
    "/unsized.png": (_request, response) => {
      // Without content-length, only the received bytes count.
      response.writeHead(200, { "transfer-encoding": "chunked" });
      response.end(sized(IMAGES_BYTES_MAX + 1));
    },
  });
  running = await openAsking(endpoint, {
    agents: [{ id: "lost", systemPrompt: "", model: "nowhere", fallbackModel: "blind" }],
  });
  const upload = await running.send("POST", "/image/processing/upload", { body: fileForm("words") });
  textUrl = upload.json.file_url;
}, 60_000);
beforeEach(async () => {
  before = await filesOf(running);
});
afterAll(async () => {
  await running.close();
  await endpoint.close();
  await web.close();
});

/** A square of one colour, of 10,000 × 10,000 pixels in some 12 KB. */
function hugePng(sidePx = 10_000): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    const tail = Buffer.alloc(4);
    tail.writeUInt32BE(crc(body));
    return Buffer.concat([head, body, tail]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(sidePx, 0);
  header.writeUInt32BE(sidePx, 4);
  header.set([1, 0, 0, 0, 0], 8);
  const rows = deflateSync(Buffer.alloc(sidePx * (1 + Math.ceil(sidePx / 8))), { level: 9 });
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", rows),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function crc(bytes: Buffer): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
}

const image = (path: string) => ({ type: "image", url: path.startsWith("http") ? path : web.url(path).href });

describe("images", SLOW, () => {
  it("images by public address and by either upload reach the model once each, decoded, in an accepted form", async () => {
    const webp = await green(30, 30).webp().toBuffer();
    const one = await running.send("POST", "/files/upload", { body: fileForm(webp, "a.webp") });
    const key = await running.issueKey("local", ["write"]);
    const two = await running.send("POST", "/image/processing/upload", {
      body: fileForm(await green(3000, 20).png().toBuffer(), "wide.png"),
      key,
    });
    const urls = [web.url("/green.tif").href, one.json.file_url, two.json.file_url, one.json.file_url];
    const body = { user: "Colours?", user_urls: urls.map((url) => ({ type: "image", url })) };
    const { status, json } = await ask(running, body);
    expect({ status, images: json.response.data.images }).toEqual({ status: 200, images: urls.slice(0, 3) });
    const parts = endpoint.requests.at(-1)?.messages.at(-1)?.content as unknown as {
      type: string;
      image_url: { url: string };
    }[];
    const sizes = await Promise.all(
      parts.slice(1).map(async ({ image_url: { url } }) => {
        const meta = await sharp(Buffer.from(url.split(",")[1] ?? "", "base64")).metadata();
        return [meta.format, meta.width, meta.height];
      }),
    );
    expect(sizes).toEqual([
      ["png", 50, 20],
      ["jpeg", 30, 30],
      ["png", 2048, 14],
    ]);
    expect((await filesOf(running)).incoming).toBe(0);
  });

  it("images without text are a question", async () => {
    const body = { user_urls: [{ type: "image", url: web.url("/small.png").href }] };
    expect((await ask(running, body)).status).toBe(200);
    expect(JSON.stringify(endpoint.requests.at(-1)?.messages.at(-1)?.content)).toContain(
      "Describe the images.",
    );
  });

  it("images of a thread are included up to 32 MB with the question's own, and the answer lists those left out", async () => {
    const put = async (path: string) => {
      const bytes = Buffer.from(await (await fetch(web.url(path))).arrayBuffer());
      // Another picture of the same size, because a repeated picture counts once.
      bytes[bytes.length - 1] = 1;
      const form = fileForm(bytes, "linked.png");
      form.append("agent_id", "default");
      form.append("thread_id", "full");
      return (await running.send("POST", "/files/upload", { body: form })).json.file_url;
    };
    const fits = await put("/half.png");
    const whole = await ask(running, { user: "Which?", thread_id: "full", user_urls: [image("/half.png")] });
    expect(whole.json.response.data).toMatchObject({
      images: [fits, web.url("/half.png").href],
      annotations: [],
    });
    const large = await put("/half-more.png");
    const { json } = await ask(running, {
      user: "Which?",
      thread_id: "full",
      user_urls: [image("/other-half.png")],
    });
    expect(json.response.data.images).not.toContain(large);
    expect(json.response.data.annotations).toContainEqual({
      type: "image_left_out",
      url: large,
      reason: expect.stringContaining("take up the limit"),
    });
  });

  it("reports the messages of both models if neither can read the images", async () => {
    const body = {
      agent_id: "lost",
      user: "Look",
      user_urls: [{ type: "image", url: web.url("/small.png").href }],
    };
    const { status, json } = await ask(running, body);
    expect(status).toBe(502);
    expect(json.message).toMatch(/nowhere.*does not exist.*; then .*blind.*does not support image input/);
    expect((await filesOf(running)).incoming).toBe(0);
  });
});

describe("a question with images is refused", SLOW, () => {
  it.each<[string, () => object[], number, string, number]>([
    ["not an address", () => [image("httpx")], 400, "invalid_field", 0],
    [
      "an address with another scheme",
      () => [{ type: "image", url: "ftp://a.b/c.png" }],
      400,
      "invalid_field",
      0,
    ],
    ["at a private address", () => [{ type: "image", url: "http://10.1.2.3/a.png" }], 422, "link_refused", 0],
    ["missing on its server", () => [image("/small.png"), image("/gone.png")], 422, "link_failed", 1],
    [
      "a file_url that was never issued",
      () => [image(`${running.url}/files/${"a".repeat(43)}/a.png`)],
      400,
      "invalid_field",
      0,
    ],
    ["a file_url of a text", () => [image(textUrl)], 415, "unsupported_media_type", 0],
    ["a web page", () => [image("/page")], 415, "unsupported_media_type", 0],
    ["empty", () => [image("/empty")], 422, "link_failed", 0],
    ["truncated", () => [image("/broken.png")], 422, "damaged_image", 0],
    ["10,000 × 10,000 pixels", () => [image("/small.png"), image("/bomb.png")], 413, "image_too_large", 1],
    [
      "over 32 MB by a byte with the others",
      () => [image("/half.png"), image("/half-more.png")],
      413,
      "images_too_large",
      1,
    ],
    [
      "over 32 MB by a byte without content-length",
      () => [image("/unsized.png")],
      413,
      "images_too_large",
      0,
    ],
  ])("refuses a question with an image that is %s", async (_name, urls, status, code, at) => {
    const answer = await ask(running, { user: "Hello", thread_id: "images", user_urls: urls() });
    expect(answer).toMatchObject({ status, json: { error: { code, field: `user_urls[${at}].url` } } });
    expect(await filesOf(running)).toEqual(before);
  });

  it("refuses a question with another account's file_url", async () => {
    const key = await running.issueKey("someone-else");
    const body = fileForm(await png.clone().toBuffer(), "a.png");
    const { json } = await running.send("POST", "/files/upload", { key, body });
    const answer = await ask(running, { user_urls: [image(json.file_url)] });
    expect(answer).toMatchObject({ status: 400, json: { error: { field: "user_urls[0].url" } } });
  });

  it("accepts a question with exactly 32 MB of images", async () => {
    const user_urls = [image("/half.png"), image("/other-half.png")];
    expect((await ask(running, { user: "Hello", user_urls })).status).toBe(200);
  });
});

describe("accepts an upload for chat at its bound, and refuses one above it", SLOW, () => {
  const upload = (bytes: Buffer) => running.send("POST", "/files/upload", { body: fileForm(bytes, "a.png") });

  it("accepts an upload of the most bytes, and refuses one more byte", async () => {
    const small = await png.clone().toBuffer();
    const sized = (bytes: number) => Buffer.concat([small, Buffer.alloc(bytes - small.length)]);
    expect((await upload(sized(IMAGES_BYTES_MAX))).status).toBe(200);
    const stored = await filesOf(running);
    const above = await upload(sized(IMAGES_BYTES_MAX + 1));
    expect(above).toMatchObject({ status: 413, json: { error: { code: "file_too_large", field: "file" } } });
    expect(await filesOf(running)).toEqual(stored);
  });

  it("accepts an upload of 64 million pixels, and refuses one more", async () => {
    expect((await upload(hugePng(8000))).status).toBe(200);
    const stored = await filesOf(running);
    const above = await upload(bitmapHeader(12_277, 5213));
    expect(above).toMatchObject({ status: 413, json: { error: { code: "image_too_large", field: "file" } } });
    expect(await filesOf(running)).toEqual(stored);
  });
});

describe("an upload for chat is refused", SLOW, () => {
  const form = (bytes: string | Buffer, fields: Record<string, string> = {}) => {
    const made = fileForm(bytes, "a.png");
    for (const [name, value] of Object.entries(fields)) made.append(name, value);
    return made;
  };
  it.each<[string, () => ReturnType<typeof form>, number, string]>([
    ["a text", () => form("words"), 415, "unsupported_media_type"],
    ["without bytes", () => form(""), 400, "empty_file"],
    [
      "with too many pixels, known from 54 bytes",
      () => form(bitmapHeader(10_000, 10_000)),
      413,
      "image_too_large",
    ],
    ["with a broken header", () => form(hugePng().subarray(0, 20)), 422, "damaged_image"],
  ])("refuses an upload for chat: %s", async (_name, body, status, code) => {
    const stored = await filesOf(running);
    const answer = await running.send("POST", "/files/upload", { body: body() });
    expect(answer).toMatchObject({ status, json: { error: { code } } });
    expect(await filesOf(running)).toEqual(stored);
  });

  it.each<[string, Record<string, string>, number, string]>([
    ["with an agent and no thread", { agent_id: "default" }, 400, "thread_id"],
    ["with a thread and no agent", { thread_id: "t" }, 400, "agent_id"],
    ["with an empty thread", { agent_id: "default", thread_id: "" }, 400, "thread_id"],
    ["with an agent that does not exist", { agent_id: "nobody", thread_id: "t" }, 404, "agent_id"],
  ])("refuses an upload for chat: %s", async (_name, fields, status, field) => {
    const stored = await filesOf(running);
    const answer = await running.send("POST", "/files/upload", {
      body: form(await png.clone().toBuffer(), fields),
    });
    expect({ status: answer.status, field: answer.json.error.field ?? "" }).toEqual({ status, field });
    expect(await filesOf(running)).toEqual(stored);
  });
});
