import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { request } from "undici";
import { createBody, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { typeOf } from "../service/answer-check.ts";

let running: Running;
beforeAll(async () => {
  running = await openRunning({ limits: { contentBytes: 64 * 1024 } });
});
afterAll(() => running.close());

const PATH = "/api/rag/resources/bulk";

// Tests check lines field by field; a missing field is undefined.
// oxlint-disable-next-line typescript/no-explicit-any
type Outcome = any;

async function bulk(
  lines: readonly (string | object)[] | Readable,
  headers: Record<string, string> = {},
): Promise<{ status: number; lines: Outcome[] }> {
  const text = (line: string | object): string => (typeof line === "string" ? line : JSON.stringify(line));
  const answer = await request(running.url + PATH, {
    method: "POST",
    headers: { pauthkey: running.key, "content-type": "application/x-ndjson", ...headers },
    body: lines instanceof Readable ? lines : lines.map(text).join("\n"),
  });
  const body = await answer.body.text();
  running.check({
    method: "POST",
    path: PATH,
    status: answer.statusCode,
    contentType: typeOf(answer.headers),
    text: body,
  });
  return {
    status: answer.statusCode,
    lines: body
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  };
}

const list = async (collectionId: string, ownerId: string): Promise<Outcome[]> => {
  const path = `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=${ownerId}`;
  return (await running.send("GET", path)).json.data.resources;
};

describe("bulk create", () => {
  it("creates a resource per line, answers each in order and ends with a summary", async () => {
    const sent = Array.from({ length: 200 }, (_, at) => createBody({ owner_id: "bulk", title: `T${at}` }));
    const { status, lines } = await bulk(sent);
    expect(status).toBe(200);
    expect(lines.at(-1)).toEqual({ summary: { lines: 200, created: 200, repeated: 0, failed: 0 } });
    expect(lines.slice(0, -1).map(({ line, status: each }) => [line, each])).toEqual(
      sent.map((_, at) => [at + 1, 201]),
    );
    const resources = await list(lines[0].data.collectionId, "bulk");
    const titles = new Map(resources.map(({ _id, title }) => [_id, title]));
    expect(lines.slice(0, -1).map(({ data }) => titles.get(data._id))).toEqual(sent.map((_, at) => `T${at}`));
  });

  it("answers an invalid line as a create does, and continues", async () => {
    const { lines } = await bulk([
      createBody(),
      "{not json",
      "",
      createBody({ title: "" }),
      "[1]",
      createBody({ content: "x".repeat(70_000) }),
      "x".repeat(200_000),
      createBody({ metadata: { status: 1 } }),
      createBody({ idempotency_key: "ü" }),
      createBody(),
    ]);
    expect(
      lines.slice(0, -1).map(({ line, status, error }) => [line, status, error?.code, error?.field]),
    ).toEqual([
      [1, 201, undefined, undefined],
      [2, 400, "invalid_body", undefined],
      [4, 400, "invalid_field", "title"],
      [5, 400, "invalid_body", undefined],
      [6, 413, "text_too_large", "content"],
      [7, 413, "body_too_large", undefined],
      [8, 400, "invalid_field", "metadata.status"],
      [9, 400, "invalid_field", "idempotency_key"],
      [10, 201, undefined, undefined],
    ]);
    expect(lines.at(-1)).toEqual({ summary: { lines: 9, created: 2, repeated: 0, failed: 7 } });
  });

  it("honours an idempotency key per line, within a request and across requests", async () => {
    const sent = ["a", "b", "a"].map((key) => createBody({ owner_id: "keys", idempotency_key: key }));
    const first = await bulk(sent);
    const again = await bulk(sent);
    const ids = ({ lines }: { lines: Outcome[] }): string[] => lines.slice(0, -1).map(({ data }) => data._id);
    expect(ids(first)[0]).toBe(ids(first)[2]);
    expect(ids(again)).toEqual(ids(first));
    expect([first, again].map(({ lines }) => lines.at(-1)?.summary)).toEqual([
      { lines: 3, created: 2, repeated: 1, failed: 0 },
      { lines: 3, created: 0, repeated: 3, failed: 0 },
    ]);
    expect(await list(first.lines[0].data.collectionId, "keys")).toHaveLength(2);
    const other = await bulk([createBody({ owner_id: "keys", idempotency_key: "a", title: "Other" })]);
    expect(other.lines[0]).toMatchObject({ status: 409, error: { code: "idempotency_conflict" } });
  });

  it("queues every line if the client prefers that", async () => {
    const { lines } = await bulk([createBody(), createBody()], { prefer: "respond-async" });
    expect(lines.slice(0, -1).map(({ status }) => status)).toEqual([202, 202]);
  });

  it("answers lines before the body ends, and creates those before an interruption", async () => {
    const sent = httpRequest(running.url + PATH, {
      method: "POST",
      headers: { pauthkey: running.key, "content-type": "application/x-ndjson" },
    });
    const answered = new Promise<Outcome>((resolve, reject) => {
      sent.on("response", (response) => {
        response.once("data", (part: Buffer) => resolve(JSON.parse(part.toString("utf8"))));
        response.on("error", () => undefined);
      });
      sent.on("error", reject);
    });
    sent.write(`${JSON.stringify(createBody({ owner_id: "broken" }))}\n`);
    const outcome = await answered;
    expect(outcome).toMatchObject({ line: 1, status: 201 });
    sent.on("error", () => undefined);
    sent.write('{"title": "half');
    sent.destroy();
    expect(await list(outcome.data.collectionId, "broken")).toHaveLength(1);
    expect((await running.send("GET", "/v1/health")).status).toBe(200);
  });

  it("sends no second answer within the first if the rest of the body is not HTTP", async () => {
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    const line = `${JSON.stringify(createBody({ owner_id: "nonsense" }))}\n`;
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nhost: a\r\npauthkey: ${running.key}\r\ncontent-type: application/x-ndjson\r\n` +
        `transfer-encoding: chunked\r\n\r\n${Buffer.byteLength(line).toString(16)}\r\n${line}\r\n`,
    );
    let answer = "";
    for await (const part of socket.setEncoding("utf8")) {
      answer += String(part);
      if (answer.includes('"line":1')) socket.write("no length\r\n");
    }
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
  });

  it("continues for a client that reads only after it has sent everything", async () => {
    const text = `${JSON.stringify(createBody({ owner_id: "deaf", content: "x" }))}\n`;
    const body = Readable.from(
      (function* () {
        for (let at = 0; at < 3000; at++) yield text;
      })(),
    );
    const { lines } = await bulk(body);
    expect(lines.at(-1)?.summary).toEqual({ lines: 3000, created: 3000, repeated: 0, failed: 0 });
  }, 60_000);

  it("refuses another type of body, an empty body, and a key without the scope write", async () => {
    const send = (headers: Record<string, string>, body: string, key = running.key) =>
      running.send("POST", PATH, { headers, body, key });
    const refused = await send({ "content-type": "application/json" }, "{}");
    expect(refused).toMatchObject({
      status: 415,
      json: { error: { hint: expect.stringContaining("x-ndjson") } },
    });
    const reader = await running.issueKey("local", ["read"]);
    expect((await send({ "content-type": "application/x-ndjson" }, "{}", reader)).status).toBe(403);
    expect((await running.send("POST", PATH, {})).status).toBe(400);
  });
});

/** In pieces, so that sending does not block the event loop either. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 64 * 1024) yield bytes.subarray(at, at + 64 * 1024);
}

it("parses a long line of a bulk create on another thread, without blocking other requests", async () => {
  const roomy = await openRunning();
  const parsedHere = vi.spyOn(JSON, "parse");
  try {
    // Refused at its last byte, so all of it has been parsed.
    const line = Buffer.from(`{"content":"${"wave\\n".repeat(200_000)}" x`);
    const answer = await request(roomy.url + PATH, {
      method: "POST",
      headers: { pauthkey: roomy.key, "content-type": "application/x-ndjson" },
      body: Readable.from(piecesOf(line)),
    });
    expect(await answer.body.text()).toContain('"invalid_body"');
    expect(Math.max(0, ...parsedHere.mock.calls.map(([text]) => text.length))).toBeLessThan(10_000);
  } finally {
    parsedHere.mockRestore();
    await roomy.close();
  }
});
