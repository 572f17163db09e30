import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { refusalAnswer } from "../../../src/kb/http/operation/status.ts";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running, RunningOptions } from "../service/running.ts";

const TEXT = "0123456789abcdefghijklmnopqrstuvwxyz";
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",
  "base64",
);

let running: Running;
beforeAll(async () => {
  running = await openRunning({ limits: { uploadBytes: 100_000 } });
});
afterAll(() => running.close());

async function upload(bytes: string | Uint8Array, name?: string): Promise<string> {
  const { json } = await running.send("POST", "/image/processing/upload", { body: fileForm(bytes, name) });
  return json.file_url;
}

describe("an upload", () => {
  it("answers an upload with 200, success and an unguessable file_url under the resources address", async () => {
    const { status, json } = await running.send("POST", "/image/processing/upload", {
      body: fileForm(TEXT, "a b.txt"),
    });
    expect(status).toBe(200);
    expect(json).toEqual({ success: true, file_url: expect.any(String) });
    expect(json.file_url).toMatch(new RegExp(`^${running.url}/files/[A-Za-z0-9_-]{43}/a%20b\\.txt$`));
  });

  it("gives two uploads of the same bytes two addresses", async () => {
    expect(await upload(TEXT)).not.toBe(await upload(TEXT));
  });

  it("stores a file of exactly the limit, and refuses a larger one without storing it", async () => {
    const bytes = Buffer.alloc(100_000, "word\n");
    const url = await upload(bytes);
    expect((await running.send("GET", url)).text).toBe(bytes.toString());
    const files = await readdir(join(running.stateDir, "uploads"));
    const refused = await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.concat([bytes, Buffer.from("x")])),
    });
    expect(refused.status).toBe(413);
    expect(await readdir(join(running.stateDir, "uploads"))).toEqual(files);
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it("leaves nothing of an upload that is refused for its type", async () => {
    await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0])),
    });
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it.each([
    { name: "../../etc/passwd", served: "passwd" },
    { name: "C:\\Users\\ada\\notes.txt", served: "notes.txt" },
    { name: "..", served: "file" },
    { name: "Übersicht – 日本.txt", served: "Übersicht – 日本.txt" },
    { name: `${"long".repeat(60)}.txt`, served: `${"long".repeat(29)}.txt` },
  ])("serves an upload named $name as $served", async ({ name, served }) => {
    const url = await upload("text", name);
    expect(decodeURIComponent(new URL(url).pathname.split("/").at(-1) ?? "")).toBe(served);
    const answer = await running.send("GET", url);
    expect(answer).toMatchObject({ status: 200, text: "text" });
    expect(answer.headers["content-disposition"]).toContain("filename*=UTF-8''");
  });

  it("gives an upload without a name a name", async () => {
    const body = [
      "--b",
      'Content-Disposition: form-data; name="file"',
      "Content-Type: application/octet-stream",
      "",
      "words",
      "--b--",
      "",
    ].join("\r\n");
    const headers = { "content-type": "multipart/form-data; boundary=b" };
    const answer = await running.send("POST", "/image/processing/upload", { body, headers });
    expect(answer.status).toBe(200);
    expect(answer.json.file_url).toMatch(/\/file$/);
  });

  it("accepts an image, and refuses a resource of an image without text with 422", async () => {
    const url = await upload(PNG, "dot.png");
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url }),
    });
    expect(answer.status).toBe(422);
    expect(answer.json.error.code).toBe("image_without_text");
    const served = await running.send("GET", url);
    expect(served.headers).toMatchObject({
      "content-type": "image/png",
      "content-disposition": expect.stringMatching(/^inline/),
    });
  });

  it("accepts a damaged PDF, and refuses its resource with 422", async () => {
    const url = await upload("%PDF-1.7\nnothing of a PDF", "broken.pdf");
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url }),
    });
    expect(answer.status).toBe(422);
    expect(answer.json.error.code).toMatch(/pdf/);
    expect(answer.text).not.toContain(running.stateDir);
  });

  it.each([
    ["plain text with tabs", "words.txt", "text/csv", "apple\tApfel\nbread\t2\nmilk\t3", undefined],
    ["Markdown with commas", "table.md", "text/csv", "Item,Price\nBolt,1.5\nNut,2", undefined],
    [
      "plain text that starts like a page",
      "notes.txt",
      "text/html",
      "<html><p>is how a page begins",
      undefined,
    ],
    ["text without an extension", "words", "text/plain", "Item\tPrice\nBolt\t1.5\nNut\t2", undefined],
    ["text without a declared type", "words", "", "Item\tPrice\nBolt\t1.5\nNut\t2", undefined],
    ["CSV without column names", "words.csv", "", "apple,Apfel\nbread,Brot\nmilk,Milch", undefined],
    [
      "CSV by its name",
      "prices.csv",
      "",
      "Item,Price\nBolt,1.5\nNut,2",
      "Item: Bolt; Price: 1.5\nItem: Nut; Price: 2",
    ],
    [
      "CSV by its type",
      "prices",
      "text/csv",
      "Item,Price\nBolt,1.5\nNut,2",
      "Item: Bolt; Price: 1.5\nItem: Nut; Price: 2",
    ],
    [
      "TSV by its type",
      "prices",
      "text/tab-separated-values",
      "Item\tPrice\nBolt\t1.5\nNut\t2",
      "Item: Bolt; Price: 1.5\nItem: Nut; Price: 2",
    ],
  ])("reads an upload by its declared type: %s", async (_name, name, type, text, expected = text) => {
    const form = fileForm(text, name, "file", type);
    const { json: file } = await running.send("POST", "/image/processing/upload", { body: form });
    const body = createBody({ url: file.file_url, content: undefined });
    const { json } = await running.send("POST", "/api/rag/resource", { body });
    const { json: read } = await running.send("GET", `/api/rag/resource/${json.data._id}`);
    expect(read.data.content).toBe(expected);
  });

  it("refuses a resource of an altered file address", async () => {
    const url = await upload(TEXT, "mine.txt");
    const changed = [
      `${url}?x=1`,
      `${url}#x`,
      url.replace("mine.txt", "yours.txt"),
      `${url}/`,
      url.replace("/files/", "/files/x/"),
    ];
    for (const other of changed) {
      const answer = await running.send("POST", "/api/rag/resource", {
        body: createBody({ content: undefined, url: other }),
      });
      expect({ other, status: answer.status, field: answer.json.error?.field }).toEqual({
        other,
        status: 400,
        field: "url",
      });
    }
  });
});

describe("a file", () => {
  let url: string;
  beforeAll(async () => {
    url = await upload(TEXT, "digits.txt");
  });

  it("serves a file without a key, never as a page of this site", async () => {
    const answer = await running.send("GET", url, { key: null });
    expect(answer).toMatchObject({ status: 200, text: TEXT });
    expect(answer.headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-length": "36",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "content-disposition": `attachment; filename="digits.txt"; filename*=UTF-8''digits.txt`,
      "accept-ranges": "bytes",
      etag: expect.stringMatching(/^"[0-9a-f]{64}"$/),
    });
  });

  it("serves a file with a script as plain text", async () => {
    const page = await upload("<html><script>alert(1)</script></html>", "page.html");
    const answer = await running.send("GET", page, { key: null });
    expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(answer.headers["content-disposition"]).toMatch(/^attachment/);
  });

  it.each([
    { name: "little-endian", bytes: Buffer.from("\ufeffsea", "utf16le") },
    { name: "big-endian", bytes: Buffer.from("\ufeffsea", "utf16le").swap16() },
  ])("serves a file in $name UTF-16 with its charset", async ({ bytes }) => {
    const answer = await running.send("GET", await upload(bytes, "wide.txt"));
    expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-16");
    expect(answer.headers["content-length"]).toBe("8");
  });

  it("answers HEAD for a file with the same headers and no body", async () => {
    const answer = await running.send("HEAD", url, { key: null });
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers["content-length"]).toBe("36");
  });

  it("answers 304 for a file with a known ETag", async () => {
    const { headers } = await running.send("GET", url);
    const etag = String(headers["etag"]);
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const answer = await running.send("GET", url, { headers: { "if-none-match": value } });
      expect(answer).toMatchObject({ status: 304, text: "" });
    }
    expect((await running.send("GET", url, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  it.each([
    { range: "bytes=0-0", status: 206, text: "0", contentRange: "bytes 0-0/36" },
    { range: "bytes=10-", status: 206, text: TEXT.slice(10), contentRange: "bytes 10-35/36" },
    { range: "bytes=-5", status: 206, text: TEXT.slice(-5), contentRange: "bytes 31-35/36" },
    { range: "bytes=-500", status: 206, text: TEXT, contentRange: "bytes 0-35/36" },
    { range: "bytes=30-99", status: 206, text: TEXT.slice(30), contentRange: "bytes 30-35/36" },
    { range: "bytes=36-", status: 416, text: undefined, contentRange: "bytes */36" },
    { range: "bytes=-0", status: 416, text: undefined, contentRange: "bytes */36" },
    { range: "bytes=5-2", status: 200, text: TEXT, contentRange: undefined },
    { range: "bytes=0-1,3-4", status: 200, text: TEXT, contentRange: undefined },
    { range: "lines=1-2", status: 200, text: TEXT, contentRange: undefined },
  ])("answers Range $range with $status", async ({ range, status, text, contentRange }) => {
    const answer = await running.send("GET", url, { headers: { range } });
    expect(answer.status).toBe(status);
    expect(answer.headers["content-range"]).toBe(contentRange);
    expect(status === 416 ? undefined : answer.text).toBe(text);
  });

  it("ignores the range of another version of a file", async () => {
    const answer = await running.send("GET", url, { headers: { range: "bytes=0-1", "if-range": '"old"' } });
    expect(answer).toMatchObject({ status: 200, text: TEXT });
  });

  it("does not find a file under another name or an altered token", async () => {
    const other = [
      url.replace("digits", "figures"),
      url.replace(/.(?=\/digits)/, (c) => (c === "A" ? "B" : "A")),
    ];
    for (const address of other) expect((await running.send("GET", address)).status).toBe(404);
  });
});

describe("across runs", () => {
  const opened: Running[] = [];
  const open = async (options: RunningOptions): Promise<Running> => {
    const next = await openRunning(options);
    opened.push(next);
    return next;
  };
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  it("serves files only to keys of their account if so configured", async () => {
    const closed = await open({ filesNeedKey: true });
    const { json } = await closed.send("POST", "/image/processing/upload", { body: fileForm(TEXT) });
    const foreign = await closed.issueKey("someone-else");
    expect((await closed.send("GET", json.file_url, { key: null })).status).toBe(401);
    expect((await closed.send("GET", json.file_url, { key: foreign })).status).toBe(404);
    expect(await closed.send("GET", json.file_url)).toMatchObject({ status: 200, text: TEXT });
  });

  it("removes incomplete uploads at start and keeps those that the store has recorded", async () => {
    // A crash between the row and the move: the row exists, the bytes are in incoming/.
    const next = await open({ start: false });
    const incoming = join(next.stateDir, "uploads", "incoming");
    await writeFile(join(incoming, "half"), "hal");
    const token = "T".repeat(43);
    await writeFile(join(incoming, token), "whole");
    await next.store.records.addFile({
      token,
      accountId: (await next.store.records.ensureAccount("local")).id,
      name: "whole.txt",
      mediaType: "text/plain",
      sizeBytes: 5,
      sha256: "0".repeat(64),
      createdAt: new Date().toISOString(),
    });
    const { url } = await next.service.start();
    expect(await readdir(incoming)).toEqual([]);
    expect(await next.send("GET", `${url}/files/${token}/whole.txt`)).toMatchObject({
      status: 200,
      text: "whole",
    });
    expect(await readdir(join(next.stateDir, "uploads"))).toEqual([token, "incoming"]);
  });

  it("uses a configured resources address in file_url and recognises it in create", async () => {
    const proxied = await open({ resourcesUrl: "https://files.example.org/kb" });
    const { json } = await proxied.send("POST", "/image/processing/upload", { body: fileForm(TEXT) });
    expect(json.file_url).toMatch(/^https:\/\/files\.example\.org\/kb\/files\//);
    const create = (url: string) =>
      proxied.send("POST", "/api/rag/resource", { body: createBody({ content: undefined, url }) });
    expect((await create(json.file_url)).status).toBe(201);
    expect((await create("https://files.example.org/kb/other")).status).toBe(400);
    // Not an address of this service, so it is a link, whose name cannot be resolved here.
    expect((await create("https://files.example.org/elsewhere")).json.error.code).toBe("link_failed");
  });

  it("recognises a file_url with an earlier port and answers it with the current one", async () => {
    const before = await openRunning();
    const put = async (text: string): Promise<string> => {
      const { json } = await before.send("POST", "/image/processing/upload", { body: fileForm(text) });
      return json.file_url;
    };
    const [first, second] = [await put("first"), await put("second")];
    const made = await before.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url: first, owner_id: "port" }),
    });
    await before.service.close();

    const after = await open({ stateDir: before.stateDir });
    expect(after.url).not.toBe(before.url);
    const path = `/api/rag/resource/${made.json.data._id}`;
    const read = await after.send("GET", path);
    expect(read.json.data.url).toBe(first.replace(before.url, after.url));
    expect(await after.send("GET", read.json.data.url)).toMatchObject({ status: 200, text: "first" });
    const list = await after.send(
      "GET",
      `/api/rag/resource/by-collection?collectionId=${made.json.data.collectionId}&ownerId=port`,
    );
    expect(list.json.data.resources[0].url).toBe(read.json.data.url);
    for (const url of [second, first.replace(before.url, "http://[::1]:1"), read.json.data.url]) {
      const { status, json } = await after.send("PUT", path, { body: { url } });
      expect({ url, status, now: json.data?.url }).toMatchObject({
        status: 200,
        now: expect.stringContaining(after.url),
      });
    }
    await before.close();
  });
});

describe("an upload whose bytes are gone", () => {
  it.each([
    ["text", TEXT, "a.txt"],
    ["a PDF", "%PDF-1.4 broken", "a.pdf"],
    ["an image", PNG, "a.png"],
  ])("asks to upload a missing file again: %s", async (_name, bytes, name) => {
    const url = await upload(bytes, name);
    await rm(join(running.stateDir, "uploads", new URL(url).pathname.split("/")[2] ?? ""));
    const body = createBody({ content: undefined, url });
    const refused = await running.send("POST", "/api/rag/resource", { body });
    expect(refused).toMatchObject({
      status: 400,
      json: { error: { field: "url", hint: "Upload it again." } },
    });
  });
});

describe("a document that temporarily cannot be read", () => {
  it("a document that temporarily cannot be read is answered with 503 and Retry-After", () => {
    const failure = new KbsyncError("the PDF cannot be read at present", {
      code: "extraction_failed",
      retryable: true,
    });
    expect(refusalAnswer(failure)).toMatchObject({ status: 503, retryAfterSeconds: 10 });
  });
});
