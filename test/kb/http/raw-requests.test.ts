import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { assertRequestId, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";
import { typeOf } from "../service/answer-check.ts";
import { WAIT } from "../../wait.ts";

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

/** Sends text unchanged and reads until the service closes the connection. */
async function exchange(request: string): Promise<{ status: number; json: unknown }> {
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  socket.write(request);
  const [head = "", body = ""] = (await text(socket)).split("\r\n\r\n");
  const [line = "", ...headers] = head.split("\r\n");
  const named = headers
    .map((each) => each.split(": "))
    .map(([name = "", value]) => [name.toLowerCase(), value]);
  const answered = Object.fromEntries(named);
  assertRequestId(request, answered);
  const status = Number(line.split(" ")[1]);
  const [, method = "GET", path = "/"] = /^(\S+) (\S+) HTTP/.exec(request) ?? [];
  running.check({ method, path, status, contentType: typeOf(answered), text: body });
  return { status, json: JSON.parse(body) };
}

describe("a request", () => {
  it.each([
    { name: "without a Host", request: "GET /v1/health HTTP/1.1\r\nconnection: close\r\n\r\n", status: 400 },
    {
      name: "with an unknown expectation",
      request:
        "POST /rag/query HTTP/1.1\r\nhost: x\r\nexpect: foo\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
      status: 417,
    },
    { name: "that is not HTTP", request: "asdf\r\n\r\n", status: 400 },
    {
      name: "for a malformed address",
      request: "GET /%E0%A4%A HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
      status: 400,
    },
    {
      name: "for an unknown address",
      request: "GET /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
      status: 404,
    },
  ])("refuses a request $name in JSON with $status", async ({ request, status }) => {
    expect(await exchange(request)).toMatchObject({
      status,
      json: { success: false, message: expect.any(String), error: { code: expect.any(String) } },
    });
  });

  it("accepts a request of HTTP/1.0 without Host", async () => {
    expect(await exchange("GET /v1/health HTTP/1.0\r\n\r\n")).toMatchObject({ status: 200 });
  });
});

it("never repeats a request id, not even after a restart", async () => {
  const next = await openRunning();
  const ids: unknown[] = [];
  for (const one of [running, running, next, next])
    ids.push((await one.send("GET", "/v1/health")).headers["x-request-id"]);
  expect(new Set(ids).size).toBe(4);
  await next.close();
});

describe("requests that a client sends before earlier ones of its connection are answered", () => {
  const stream = (): string =>
    `GET /v1/events HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\naccept: text/event-stream\r\n\r\n`;
  const inFlight = async (): Promise<number> => (await running.service.figures()).requestsInFlight;

  it("requests sent ahead on a connection are in flight no longer than it", async () => {
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    // The second response waits for the end of the first, which never comes.
    socket.write(stream() + "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20));
    await vi.waitFor(async () => expect(await inFlight()).toBe(21), WAIT);
    socket.destroy();
    await vi.waitFor(async () => expect(await inFlight()).toBe(0), WAIT);
  });

  it("requests sent ahead on a connection end it when they are too many", async () => {
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(stream() + "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100));
    await vi.waitFor(() => expect(socket.closed).toBe(true), WAIT);
    expect(running.log()).toContain("more than 100 requests of a connection wait for their answers");
    await vi.waitFor(async () => expect(await inFlight()).toBe(0), WAIT);
  });
});

describe("a body in chunks", () => {
  const head = (key: string): string =>
    `POST /rag/query HTTP/1.1\r\nhost: x\r\npauthkey: ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const open = (key: string): Socket => {
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    socket.on("error", () => undefined).resume();
    socket.write(head(key));
    return socket;
  };

  it.each([
    ["with a key", () => running.key],
    ["without a valid key, after its refusal", () => "none"],
  ])("a body in chunks ends the connection if they are thousands of single bytes, %s", async (_name, key) => {
    const socket = open(key());
    const write = (): boolean => socket.write("1\r\n \r\n".repeat(1000));
    const timer = setInterval(write, 5);
    await vi.waitFor(() => expect(socket.closed).toBe(true), WAIT);
    clearInterval(timer);
    expect(running.log()).toContain("a body came in more than 1000 pieces of less than 64 bytes");
  });

  it("a body in chunks is taken in a thousand single bytes, and in more chunks that are as long as a line", async () => {
    const socket = open(running.key);
    const answer = once(socket, "data");
    socket.write("1\r\n \r\n".repeat(1000 - 2) + `40\r\n${" ".repeat(64)}\r\n`.repeat(1000));
    socket.write("2\r\n{}\r\n0\r\n\r\n");
    expect(String(await answer)).toContain("HTTP/1.1 4");
    socket.destroy();
  });
});

describe("an upload that its client interrupts", () => {
  it.each([
    { name: "within the file", form: `content-disposition: form-data; name=file; filename=a\r\n\r\nabc` },
    {
      name: "after the file",
      form: `content-disposition: form-data; name=file; filename=a\r\n\r\nabc\r\n--b\r\ncontent-disposition: form-data; name=x\r\n\r\ny`,
    },
  ])(
    "reports an upload interrupted $name as no error of the service, and leaves nothing",
    async ({ form }) => {
      const loggedBefore = running.log().length;
      const incoming = join(running.stateDir, "uploads", "incoming");
      const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
      socket.write(
        `POST /image/processing/upload HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\n` +
          `content-type: multipart/form-data; boundary=b\r\ncontent-length: 100000\r\n\r\n--b\r\n${form}`,
      );
      await vi.waitFor(async () => expect(await readdir(incoming)).toHaveLength(1), WAIT);
      socket.destroy();
      // The parser also reports the broken connection, before or after the upload is refused.
      const refusal = /"route":"\/image\/processing\/upload".*"status":400.*request refused/;
      await vi.waitFor(() => expect(running.log().slice(loggedBefore)).toMatch(refusal), WAIT);
      expect(running.log().slice(loggedBefore)).not.toContain("request failed");
      expect(running.log().slice(loggedBefore)).not.toContain('"status":200');
      await vi.waitFor(async () => expect(await readdir(incoming)).toEqual([]), WAIT);
    },
  );
});
