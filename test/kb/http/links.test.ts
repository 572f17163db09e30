import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWeb } from "../fetch/web.ts";
import type { Web } from "../fetch/web.ts";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

const ARTICLE = `<!doctype html><html><head><title>The page's own title</title></head><body><nav><a href="/">Home</a></nav>
<main><article><h1>Tides</h1><p>The moon pulls the sea, and twice a day the water rises at every coast of the world.</p>
<p>See <a href="/more">more about it</a>.</p></article></main></body></html>`;

let running: Running;
let web: Web;
/** The current answer of `/news`. */
let news = "Old news of the harbour";
beforeAll(async () => {
  const page =
    (type: string, body: string | Buffer) =>
    (_request: unknown, response: import("node:http").ServerResponse) =>
      void response.writeHead(200, { "content-type": type }).end(body);
  web = await openWeb({
    "/article": page("text/html; charset=utf-8", ARTICLE),
    "/undeclared": page("", ARTICLE),
    "/as-text": page("text/plain; charset=utf-8", ARTICLE),
    "/latin1": page("text/html; charset=iso-8859-1", Buffer.from("<p>Stra\xdfe am Hafen</p>", "latin1")),
    "/latin1-meta": page(
      "text/html",
      Buffer.from('<meta charset="latin1"><p>Stra\xdfe am Hafen</p>', "latin1"),
    ),
    "/latin1-unsaid": page("text/html", Buffer.from("<p>Stra\xdfe am Hafen</p>", "latin1")),
    "/latin1-text": page('text/plain; charset="ISO-8859-1"', Buffer.from("Stra\xdfe am Hafen", "latin1")),
    "/text": page("text/plain", "Plain words of the harbour"),
    "/pdf": page("application/octet-stream", buildPdf([textPage(["Words on paper"])])),
    "/large": page(
      "text/html",
      `<main>${"<p>A paragraph of many words about the sea.</p>".repeat(4000)}</main>`,
    ),
    "/deep": page("text/html", "<font>".repeat(12_000)),
    "/scripts": page("text/html", "<!doctype html><div id=app></div><script>render()</script>"),
    "/empty": page("text/plain", ""),
    "/pdf-as-page": page("text/html", buildPdf([textPage(["Words on paper"])])),
    "/pdf-as-text": page("text/plain; charset=iso-8859-1", buildPdf([textPage(["Words on paper"])])),
    "/utf16": page("text/html; charset=utf-16le", Buffer.from("<p>Straße am Hafen</p>", "utf16le")),
    "/binary-as-page": page(
      "text/html",
      Buffer.concat([Buffer.from("504b030414000000080012", "hex"), Buffer.from("<p>noise of a file</p>")]),
    ),
    "/binary": page("application/zip", Buffer.from("504b0304140000000800", "hex")),
    "/news": (_request, response) => void response.writeHead(200, { "content-type": "text/plain" }).end(news),
    "/inwards": (_request, response) => void response.writeHead(302, { location: "http://10.0.0.1/" }).end(),
    "/settled": page("text/plain", "Settled words"),
    "/settled-copy": page("text/plain", "Settled words"),
  });
  running = await openRunning({ fetchAllow: ["127.0.0.1"] });
});
afterAll(async () => {
  await running.close();
  await web.close();
});

const create = (path: string, change: object = {}): Promise<Answered> =>
  running.send("POST", "/api/rag/resource", {
    body: createBody({ content: undefined, url: web.url(path).href, ...change }),
  });
const update = (id: string, body: object): Promise<Answered> =>
  running.send("PUT", `/api/rag/resource/${id}`, { body });
async function contentOf(answer: Answered): Promise<string> {
  expect(answer.text).toContain('"success":true');
  const { json } = await running.send("GET", `/api/rag/resource/${answer.json.data._id}`);
  return json.data.content;
}

describe("a link resource", () => {
  it("creates a resource from the readable part of a page as Markdown, with the client's title and the url", async () => {
    const answer = await create("/article");
    expect(answer.status).toBe(201);
    expect(answer.json.data).toMatchObject({ title: "Tides", url: web.url("/article").href });
    const content = await contentOf(answer);
    expect(content).toContain("The moon pulls the sea");
    expect(content).toContain(`[more about it](${web.url("/more").href})`);
    expect(content).not.toContain("Home");
    expect(content).not.toContain("<p>");
    const { json } = await running.send("POST", "/rag/query", {
      body: { query: "moon sea", doc_id: answer.json.data._id },
    });
    expect(json.text).toContain("The moon pulls the sea");
  });

  it.each([
    ["a page without a declared type", "/undeclared", /^(?!.*<p>).*The moon pulls/s],
    ["a page sent as plain text", "/as-text", /<p>The moon pulls/],
    ["a page in another encoding", "/latin1", /^Straße am Hafen$/],
    ["a page that declares its encoding in its head", "/latin1-meta", /^Straße am Hafen$/],
    ["a page without a declared encoding", "/latin1-unsaid", /^Straße am Hafen$/],
    ["text in another encoding", "/latin1-text", /^Straße am Hafen$/],
    ["text", "/text", /^Plain words of the harbour$/],
    ["a PDF with any declared type", "/pdf", /Words on paper/],
    ["a PDF declared as a page", "/pdf-as-page", /^Words on paper$/],
    ["a PDF declared as text", "/pdf-as-text", /^Words on paper$/],
    ["a page in UTF-16", "/utf16", /^Straße am Hafen$/],
    ["a long page", "/large", /(A paragraph of many words about the sea\.\s*){4000}/],
  ])("creates a resource from %s", async (_name, path, words) => {
    expect((await contentOf(await create(path))).trim()).toMatch(words);
  });

  it.each([
    ["a missing page", "/none", "link_failed", "the server answered 404 Not Found"],
    ["an empty answer", "/empty", "link_failed", "its answer is empty"],
    ["a page that only scripts fill", "/scripts", "link_failed", "the page has no text"],
    ["binary data", "/binary", "link_failed", "this type of file is not accepted"],
    ["binary data declared as a page", "/binary-as-page", "link_failed", "this type of file is not accepted"],
    ["a page with excessive nesting", "/deep", "link_failed", "nested too deeply"],
  ])("refuses a link to %s with 422 and the cause, and leaves nothing", async (_name, path, code, words) => {
    const answer = await create(path);
    expect({ status: answer.status, error: answer.json.error }).toMatchObject({
      status: 422,
      error: { code, field: "url" },
    });
    expect(answer.json.message).toContain(words);
    expect(await readdir(join(running.stateDir, "uploads"))).toEqual(["incoming"]);
    expect(await readdir(join(running.stateDir, "uploads", "incoming"))).toEqual([]);
  });

  it.each([
    ["a private address", "http://10.0.0.1/"],
    ["this machine by another address", "http://127.0.0.2/"],
    ["this machine in decimal", "http://2130706434/"],
    ["credentials", "http://user:secret@127.0.0.1/"],
  ])("refuses a link to %s with 422", async (_name, url) => {
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody({ content: undefined, url }),
    });
    expect(answer.status).toBe(422);
    expect(answer.json.error).toMatchObject({ code: "link_refused", field: "url" });
    expect(answer.json.message).not.toContain("secret");
  });
});

describe("a link resource ingested after the answer", () => {
  const settled = async (path: string) => {
    const { json } = await running.send("POST", "/api/rag/resource", {
      headers: { prefer: "respond-async" },
      body: createBody({ content: undefined, url: new URL(path, web.url("/")).href }),
    });
    const read = async () => (await running.send("GET", `/api/rag/resource/${json.data._id}`)).json.data;
    await expect.poll(async () => (await read()).metadata.status, { timeout: 10_000 }).not.toBe("queued");
    return read();
  };

  it("ingests the text of a link after the answer", async () => {
    expect(await settled("/text")).toMatchObject({
      content: "Plain words of the harbour",
      metadata: { status: "chunked" },
    });
  });

  it.each(["http://10.0.0.1/", "http://[fe80::1]/x", "http://169.254.169.254/"])(
    "refuses a create and an update to %s at once, because it is no public address",
    async (url) => {
      const headers = { prefer: "respond-async" };
      const body = createBody({ content: undefined, url });
      const made = await running.send("POST", "/api/rag/resource", { headers, body });
      expect(made).toMatchObject({ status: 422, json: { error: { code: "link_refused", field: "url" } } });
      const { json } = await create("/text");
      const path = `/api/rag/resource/${json.data._id}`;
      const changed = await running.send("PUT", path, { headers, body: { url } });
      expect(changed).toMatchObject({ status: 422, json: { error: { code: "link_refused" } } });
    },
  );

  it("refuses a link with a password at once, and stores the password nowhere", async () => {
    const url = "http://ada:secret@example.com/";
    const headers = { prefer: "respond-async" };
    const body = createBody({ content: undefined, url });
    const made = await running.send("POST", "/api/rag/resource", { headers, body });
    expect(made).toMatchObject({ status: 422, json: { error: { code: "link_refused", field: "url" } } });
    expect(made.text).not.toContain("secret");
  });

  it.each([
    ["/none", "the server answered 404 Not Found"],
    ["/inwards", "10.0.0.1 is not a public address"],
  ])("reports why a link could not be ingested: %s", async (path, words) => {
    expect((await settled(path)).metadata).toMatchObject({
      status: "error",
      message: expect.stringContaining(words),
    });
  });
});

describe("an update of a link resource", () => {
  it("keeps version and chunks of an unchanged link and changes the other fields", async () => {
    news = "Old news of the harbour";
    const { _id: id } = (await create("/news")).json.data;
    const url = web.url("/news").href;

    const same = await update(id, { url, title: "Renamed" });
    expect(same.json.data).toMatchObject({ title: "Renamed", content: "Old news of the harbour" });
    expect(same.json.data.refreshedAt).not.toBeNull();
    const before = (await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data;
    expect(before.version).toBe(1);

    news = "Fresh news of the harbour";
    const changed = await update(id, { url });
    expect(changed.json.data.content).toBe("Fresh news of the harbour");
    const after = (await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data;
    expect(after.version).toBe(2);
  });

  it("chunks the unchanged text of a link again with new settings", async () => {
    news = "Settled news of the harbour";
    const { _id: id } = (await create("/news")).json.data;
    await update(id, { url: web.url("/news").href, settings: { chunkSize: 10, chunkOverlap: 0 } });
    const { data } = (await running.send("GET", `/api/rag/resource/${id}/chunks`)).json;
    expect(data.version).toBe(2);
    expect(data.chunks.length).toBeGreaterThan(2);
  });

  it("changes the address of a link, and keeps the new text when only the title changes", async () => {
    const { _id: id } = (await create("/text")).json.data;
    const moved = await update(id, { url: web.url("/settled").href });
    expect(moved.json.data).toMatchObject({ url: web.url("/settled").href, content: "Settled words" });
    expect((await update(id, { title: "Only this" })).json.data.content).toBe("Settled words");
  });

  it.each([
    ["another address of the same text", "/settled", "/settled-copy"],
    ["another part of the page", "/settled", "/settled#part"],
  ])("changes a link to %s and keeps version and chunks", async (_name, from, to) => {
    const { _id: id } = (await create(from)).json.data;
    const url = web.url(to).href;
    const moved = await update(id, { url });
    expect(moved.json.data).toMatchObject({ url, content: "Settled words" });
    expect((await running.send("GET", `/api/rag/resource/${id}`)).json.data.url).toBe(url);
    expect((await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data.version).toBe(1);
  });

  it("leaves a resource unchanged if the update of its link fails", async () => {
    const { _id: id } = (await create("/text")).json.data;
    expect((await update(id, { url: web.url("/none").href })).status).toBe(422);
    const { json } = await running.send("GET", `/api/rag/resource/${id}`);
    expect(json.data).toMatchObject({ content: "Plain words of the harbour", url: web.url("/text").href });
  });
});
