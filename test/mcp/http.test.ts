import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { request } from "undici";
import { openMcpHttp } from "../../src/mcp/http.ts";
import { NO_FILES, type KnownFiles } from "../../src/mcp/known-files.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { openMcpGround, type McpGround } from "./fixture.ts";

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

let service: Running;
let mcp: McpGround;
let nowMs = Date.now();
let documentId: string;
const defects: unknown[] = [];

async function post(
  headers: Record<string, string>,
  body: string = JSON.stringify(INITIALIZE),
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const answer = await request(mcp.url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body,
  });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

/** What is answered to a request that no client library would send, to the end of its first answer. */
async function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(mcp.url).port), "127.0.0.1");
  socket.write(text);
  let answer = "";
  for await (const piece of socket) {
    answer += String(piece);
    // The connection stays open behind an answer that came whole or in pieces.
    if (/\}(\r\n0\r\n\r\n)?$/.test(answer)) break;
  }
  return answer;
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

beforeAll(async () => {
  // So many that only the test of the limit meets it.
  service = await openRunning({ rate: { perMinute: 60, burst: 40 } });
  const made = await service.send("POST", "/api/rag/resource", { body: createBody({ owner_id: "sea" }) });
  const { _id, collectionId } = made.json.data;
  const other = await service.send("POST", "/api/rag/resource", { body: createBody({ owner_id: "sea" }) });
  const otherId: string = other.json.data._id;
  documentId = _id;
  const files: KnownFiles = {
    ...NO_FILES,
    sources: [{ folder: "/srv/sea", ownerId: "sea", collectionId }],
    fileOf: () => ({ folder: "/srv/sea", path: "tides.md" }),
    documentsOf: (path) => {
      if (path === "both.md") return [documentId, otherId];
      return path === "tides.md" || path === "Makefile-of-tides" ? [documentId] : [];
    },
  };
  mcp = await openMcpGround({
    service: service.url,
    files,
    nowMs: () => nowMs,
    onDefect: (error) => defects.push(error),
  });
  // Loading the service takes seconds where other suites load theirs at the same time.
}, 60_000);
afterAll(async () => {
  await mcp.close();
  await service.close();
});

describe("a key, over HTTP", () => {
  it("MCP over HTTP requires a key", async () => {
    const answer = await post({});
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toContain("Bearer");
    expect(answer.text).toContain("key_missing");
  });

  it.each([
    ["an unknown one", () => Promise.resolve("kb_made_up"), 401, "key_unknown"],
    ["an expired one", () => service.issueKey("local", ["read"], "2020-01-01T00:00:00Z"), 401, "key_expired"],
    ["one that may not read", () => service.issueKey("local", ["write"]), 403, "scope_missing"],
    ["another scheme", () => Promise.resolve("Basic abc"), 401, "key_missing"],
  ])("%s is refused as at the service", async (_name, keyOf, status, code) => {
    const key = await keyOf();
    const headers = key.startsWith("Basic") ? { authorization: key } : bearer(key);
    const answer = await post(headers);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(code);
  });

  it("a key beyond its rate gets 429 with Retry-After", async () => {
    const key = await service.issueKey("busy", ["read"]);
    let answer = await post(bearer(key));
    for (let tries = 0; answer.status === 200 && tries < 100; tries++) {
      nowMs += 10_000; // so that the service is asked each time
      answer = await post(bearer(key));
    }
    expect(answer.status).toBe(429);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  });

  it("a key of another account finds nothing of the first account, including its folders and paths", async () => {
    const { call } = await mcp.connect(await service.issueKey("stranger", ["read"]));
    expect((await call("list_sources")).data).toEqual({ sources: [], next_cursor: null });
    const found = await call("search", { query: "moon" });
    expect(found.data).toMatchObject({ results: [], more: false });
    for (const [tool, argument, more] of [
      ["fetch", "id", {}],
      ["search", "document", { query: "moon" }],
    ] as const) {
      const reported = async (document: string): Promise<string> =>
        (await call(tool, { ...more, [argument]: document })).text.replaceAll(document, "IT");
      expect(await reported(documentId)).toMatch(/resource_not_found/);
      // A file that is synced, one of two sources, and one that nobody has: the answer must not show which.
      const unknown = await reported("nobody.md");
      expect(unknown).toMatch(/document_unknown/);
      expect([await reported("tides.md"), await reported("both.md")]).toEqual([unknown, unknown]);
      // A file's name may look like an id, which is asked for as such.
      expect(await reported("Makefile-of-tides")).toBe(await reported("Makefile-of-nobody"));
    }
    const { text } = await call("search", { query: "moon", source: "/srv/sea" });
    expect(text).toMatch(/source_unknown/);
    expect(text).not.toContain("tides");
  });

  it("revoking a key ends the calls of a connected client", async () => {
    const made = await service.send("POST", "/v1/keys", {
      key: await service.issueKey("local", ["admin"]),
      body: { name: "brief", scopes: ["read"] },
    });
    const { call } = await mcp.connect(made.json.data.key);
    expect((await call("search", { query: "moon" })).isError).toBe(false);
    await service.send("DELETE", `/v1/keys/${made.json.data._id}`, {
      key: await service.issueKey("local", ["admin"]),
    });
    expect((await call("search", { query: "moon" })).text).toMatch(/key_unknown/);
    nowMs += 10_000;
    await expect(call("search", { query: "moon" })).rejects.toThrow(/key_unknown/);
  });
});

describe("a request, over HTTP", () => {
  it.each([
    ["from a page of another site", { origin: "https://example.com" }, 403],
    ["under a name that was rebound to this machine", { host: "rebound.example" }, 403],
    ["from a page on this machine", { origin: "http://localhost:3000" }, 200],
  ])("judges a request %s", async (_name, headers, status) => {
    const key = await service.issueKey("local", ["read"]);
    expect((await post({ ...bearer(key), ...headers })).status).toBe(status);
  });

  it("a request with too large a body is refused, and the next one is served", async () => {
    const key = await service.issueKey("local", ["read"]);
    expect((await post(bearer(key), " ".repeat(1024 * 1024 + 1))).status).toBe(413);
    expect((await post(bearer(key))).status).toBe(200);
  });

  it("a request with an invalid key is refused before its body is read", async () => {
    expect((await post(bearer("kb_made_up"), " ".repeat(1024 * 1024 + 1))).status).toBe(401);
    const head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer kb_made_up\r\n";
    expect(await raw(`${head}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`)).toMatch(/^HTTP\/1.1 401 /);
  });

  it.each([
    ["a method that nothing may answer", "TRACE /mcp"],
    ["an address that is none", "GET //"],
    ["an address with a password", "GET http://a:b@localhost/mcp"],
  ])(
    "a request over HTTP with %s is refused, with a key and without, and is no defect",
    async (_name, line) => {
      const key = await service.issueKey("local", ["read"]);
      for (const given of ["", `authorization: Bearer ${key}\r\n`]) {
        const answer = await raw(`${line} HTTP/1.1\r\nhost: localhost\r\n${given}\r\n`);
        expect(answer).toMatch(/^HTTP\/1.1 400 /);
        expect(answer).toContain('"code":"invalid_request"');
      }
      expect(defects).toEqual([]);
    },
  );

  it("a request that fails unexpectedly after its body gets an answer, and is reported as a defect", async () => {
    const broken = await openMcpHttp({
      port: 0,
      version: "0.0.0-test",
      nowMs: Date.now,
      onDefect: (error) => defects.push(error),
      callerOf: () => ({
        reach: () => Promise.reject(new Error("never foreseen")),
        files: () => NO_FILES,
      }),
    });
    const answer = await request(broken.url, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer("kb_x") },
      body: JSON.stringify(INITIALIZE),
    });
    await answer.body.dump();
    expect(answer.statusCode).toBe(500);
    expect(defects.splice(0)).toEqual([expect.objectContaining({ message: "never foreseen" })]);
    await broken.close();
  });

  it("a request to any other path gets 404", async () => {
    const answer = await request(new URL("/", mcp.url), { headers: bearer("kb_any") });
    await answer.body.dump();
    expect(answer.statusCode).toBe(404);
  });

  it.each([
    ["no JSON", "{"],
    ["no message", "[1, 2]"],
    ["an unknown method", JSON.stringify({ jsonrpc: "2.0", id: 1, method: "no/such" })],
  ])("a request over HTTP that holds %s is answered, and is no defect", async (_name, body) => {
    const key = await service.issueKey("local", ["read"]);
    expect((await post(bearer(key), body)).status).toBeLessThan(500);
  });
});

describe("a file's name, for a key that is not the ledger's", () => {
  it("a file's name finds its document for a key of the same account, unless two sources have it", async () => {
    const { call } = await mcp.connect(await service.issueKey("local", ["read"]));
    expect((await call("fetch", { id: "tides.md" })).data.id).toBe(documentId);
    const { data } = await call("search", { query: "moon", document: "tides.md" });
    expect(data.results[0].id).toBe(documentId);
    expect((await call("fetch", { id: "both.md" })).text).toMatch(/document_ambiguous/);
  });
});

it("says so where the service does not run", async () => {
  const gone = await openMcpGround({ service: "http://127.0.0.1:9", files: NO_FILES });
  const answer = await request(gone.url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json", ...bearer("kb_x") },
    body: JSON.stringify(INITIALIZE),
  });
  expect(answer.statusCode).toBe(503);
  expect(await answer.body.text()).toContain("service_unreachable");
  await gone.close();
});
