import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
const png = sharp({ create: { width: 20, height: 20, channels: 3, background: "#0c0" } }).png();
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  const small = await png.clone().toBuffer();
  // Bytes behind a picture's end are not looked at: a picture of any size on the disk.
  const sized = (bytes: number) => Buffer.concat([small, Buffer.alloc(bytes - small.length)]);
  const page = (body: string | Buffer) => (_request: unknown, response: import("node:http").ServerResponse) =>
    void response.end(body);
  web = await openWeb({
    "/small.png": page(small),
    "/half.png": page(sized(IMAGES_BYTES_MAX / 2)),
    "/other-half.png": page(sized(IMAGES_BYTES_MAX / 2)),
    "/half-more.png": page(sized(IMAGES_BYTES_MAX / 2 + 1)),
    "/page": page("<html>No picture</html>"),
    "/empty": page(""),
    "/bomb.png": page(hugePng()),
    "/broken.png": page(small.subarray(0, 60)),
    "/unsized.png": (_request, response) => {
      // Without a length: what counts is what comes.
      response.writeHead(200, { "transfer-encoding": "chunked" });
      response.end(sized(IMAGES_BYTES_MAX + 1));
    },
  });
  running = await openAsking(endpoint);
  const upload = await running.send("POST", "/image/processing/upload", { body: fileForm("words") });
  textUrl = upload.json.file_url;
  before = await filesOf(running);
}, 60_000);
afterAll(async () => {
  await running.close();
  await endpoint.close();
  await web.close();
});

/** 10,000 × 10,000 pixels of one colour, in some 12 KB. */
function hugePng(): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    const tail = Buffer.alloc(4);
    tail.writeUInt32BE(crc(body));
    return Buffer.concat([head, body, tail]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(10_000, 0);
  header.writeUInt32BE(10_000, 4);
  header.set([1, 0, 0, 0, 0], 8);
  const rows = deflateSync(Buffer.alloc(10_000 * 1251), { level: 9 });
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

describe("a question is refused", SLOW, () => {
  it.each<[string, object, number, string, string | undefined]>([
    ["without agent_id", { agent_id: undefined }, 400, "invalid_field", "agent_id"],
    ["with an agent_id that is no text", { agent_id: 5 }, 400, "invalid_field", "agent_id"],
    ["with one of 65 characters", { agent_id: "a".repeat(65) }, 400, "invalid_field", "agent_id"],
    ["of an agent that is not there", { agent_id: "nobody" }, 404, "agent_not_found", undefined],
    ["without user and images", { user: undefined }, 400, "invalid_field", "user"],
    ["with a blank user", { user: " \n" }, 400, "invalid_field", "user"],
    ["with a user that is no text", { user: ["Hello"] }, 400, "invalid_field", "user"],
    ["with one of 200,001 characters", { user: "a".repeat(200_001) }, 400, "invalid_field", "user"],
    ["with an empty thread_id", { thread_id: "" }, 400, "invalid_field", "thread_id"],
    ["with one of 257 characters", { thread_id: "t".repeat(257) }, 400, "invalid_field", "thread_id"],
    ["with an unknown response_type", { response_type: "xml" }, 400, "invalid_field", "response_type"],
    ["with variables that are a list", { variables: ["a"] }, 400, "invalid_field", "variables"],
    ["with a variable that is an object", { variables: { a: {} } }, 400, "invalid_field", "variables.a"],
    [
      "with one of 20,001 characters",
      { variables: { a: "a".repeat(20_001) } },
      400,
      "invalid_field",
      "variables.a",
    ],
    [
      "with 201 variables",
      { variables: Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`v${at}`, 1])) },
      400,
      "invalid_field",
      "variables",
    ],
    ["with user_urls that are no list", { user_urls: "x" }, 400, "invalid_field", "user_urls"],
    [
      "with an item of another type",
      { user_urls: [{ type: "audio", url: "http://a.b/" }] },
      400,
      "invalid_field",
      "user_urls[0].type",
    ],
    [
      "with an item without url",
      { user_urls: [{ type: "image" }] },
      400,
      "invalid_field",
      "user_urls[0].url",
    ],
    [
      "with 21 images",
      { user_urls: Array.from({ length: 21 }, () => ({ type: "image", url: "http://a.b/" })) },
      400,
      "invalid_field",
      "user_urls",
    ],
    ["with stream that is a word", { stream: "yes" }, 400, "invalid_field", "stream"],
    ["with a webhook of no address", { webhook: { url: "nowhere" } }, 400, "invalid_field", "webhook.url"],
    ["with a webhook inside", { webhook: { url: "http://10.0.0.1/" } }, 400, "invalid_field", "webhook.url"],
    [
      "with a secret that is none",
      { webhook: { url: "https://a.example/", secret: "s" } },
      400,
      "invalid_field",
      "webhook.secret",
    ],
    [
      "with a header that is ours",
      { webhook: { url: "https://a.example/", headers: { "Webhook-Id": "1" } } },
      400,
      "invalid_field",
      "webhook.headers",
    ],
    [
      "with a header of two lines",
      { webhook: { url: "https://a.example/", headers: { a: "b\r\nc: d" } } },
      400,
      "invalid_field",
      "webhook.headers",
    ],
    [
      "with a webhook and stream",
      { webhook: { url: "https://a.example/" }, stream: true },
      400,
      "invalid_field",
      "stream",
    ],
    [
      "with a response_format of another type",
      { settings: { response_format: { type: "fax" } } },
      400,
      "invalid_field",
      "settings.response_format.type",
    ],
    [
      "with a response_format of no address",
      { settings: { response_format: { type: "webhook" } } },
      400,
      "invalid_field",
      "settings.response_format.cred",
    ],
  ])("%s", async (_name, change, status, code, field) => {
    const asked = endpoint.requests.length;
    const answer = await ask(running, { user: "Hello", ...change });
    expect(answer).toMatchObject({ status, json: { success: false, error: { code } } });
    expect(answer.json.error.field).toBe(field);
    expect(endpoint.requests.length).toBe(asked);
  });

  it.each<[string, () => object[], number, string, number]>([
    ["no address", () => [image("httpx")], 400, "invalid_field", 0],
    [
      "an address of another scheme",
      () => [{ type: "image", url: "ftp://a.b/c.png" }],
      400,
      "invalid_field",
      0,
    ],
    ["an address inside", () => [{ type: "image", url: "http://10.1.2.3/a.png" }], 422, "link_refused", 0],
    ["nothing there", () => [image("/small.png"), image("/gone.png")], 422, "link_failed", 1],
    [
      "a file_url that was never issued",
      () => [image(`${running.url}/files/${"a".repeat(43)}/a.png`)],
      400,
      "invalid_field",
      0,
    ],
    ["a file_url of a text", () => [image(textUrl)], 415, "unsupported_media_type", 0],
    ["a page", () => [image("/page")], 415, "unsupported_media_type", 0],
    ["nothing in it", () => [image("/empty")], 422, "link_failed", 0],
    ["half a picture", () => [image("/broken.png")], 422, "damaged_image", 0],
    ["10,000 × 10,000 pixels", () => [image("/small.png"), image("/bomb.png")], 413, "image_too_large", 1],
    [
      "32 MB and a byte together",
      () => [image("/half.png"), image("/half-more.png")],
      413,
      "images_too_large",
      1,
    ],
    ["32 MB and a byte alone, however it is sent", () => [image("/unsized.png")], 413, "images_too_large", 0],
  ])("with an image that is %s", async (_name, urls, status, code, at) => {
    const answer = await ask(running, { user: "Hello", thread_id: "images", user_urls: urls() });
    expect(answer).toMatchObject({ status, json: { error: { code, field: `user_urls[${at}].url` } } });
    expect(await filesOf(running)).toEqual(before);
  });

  it("with another account's file_url", async () => {
    const key = await running.issueKey("someone-else");
    const body = fileForm(await png.clone().toBuffer(), "a.png");
    const { json } = await running.send("POST", "/files/upload", { key, body });
    const answer = await ask(running, { user_urls: [image(json.file_url)] });
    expect(answer).toMatchObject({ status: 400, json: { error: { field: "user_urls[0].url" } } });
  });

  it("but not with 32 MB of images exactly", async () => {
    const user_urls = [image("/half.png"), image("/other-half.png")];
    expect((await ask(running, { user: "Hello", user_urls })).status).toBe(200);
  });
});

describe("an upload for chat is refused", SLOW, () => {
  const form = (bytes: string | Buffer, fields: Record<string, string> = {}) => {
    const made = fileForm(bytes, "a.png");
    for (const [name, value] of Object.entries(fields)) made.append(name, value);
    return made;
  };
  it.each<[string, () => ReturnType<typeof form>, number, string]>([
    ["that is a text", () => form("words"), 415, "unsupported_media_type"],
    ["of no bytes", () => form(""), 400, "empty_file"],
    [
      "of too many pixels, told by 54 bytes",
      () => form(bitmapHeader(10_000, 10_000)),
      413,
      "image_too_large",
    ],
    ["of a broken header", () => form(hugePng().subarray(0, 20)), 422, "damaged_image"],
  ])("%s", async (_name, body, status, code) => {
    const kept = await filesOf(running);
    const answer = await running.send("POST", "/files/upload", { body: body() });
    expect(answer).toMatchObject({ status, json: { error: { code } } });
    expect(await filesOf(running)).toEqual(kept);
  });

  it.each<[string, Record<string, string>, number, string]>([
    ["with an agent and no thread", { agent_id: "default" }, 400, "thread_id"],
    ["with a thread and no agent", { thread_id: "t" }, 400, "agent_id"],
    ["with an empty thread", { agent_id: "default", thread_id: "" }, 400, "thread_id"],
    ["with an agent that is not there", { agent_id: "nobody", thread_id: "t" }, 404, ""],
  ])("%s", async (_name, fields, status, field) => {
    const kept = await filesOf(running);
    const answer = await running.send("POST", "/files/upload", {
      body: form(await png.clone().toBuffer(), fields),
    });
    expect({ status: answer.status, field: answer.json.error.field ?? "" }).toEqual({ status, field });
    expect(await filesOf(running)).toEqual(kept);
  });
});
