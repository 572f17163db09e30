import { createServer, type Server } from "node:http";
import { getEventListeners, once } from "node:events";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { afterEach, beforeEach, expect, it } from "vitest";
import { exchange, type ExchangeRequest } from "../../../../src/sync/send/remote/exchange.ts";

let server: Server;
let pool: Pool;
let asked: string[];
/** Paths with an answer; all others never answer. */
const ANSWERED = /^\/(?:answer|early)/;

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (!ANSWERED.test(request.url ?? "")) return;
    if (request.url === "/early") response.writeEarlyHints({ link: "</a>; rel=preload" });
    response.setHeader("x-name", "value");
    response.statusCode = 201;
    response.write("half ");
    response.end("and hälf");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { connections: 1 });
});
afterEach(async () => {
  await pool.destroy();
  server.closeAllConnections();
  server.close();
});

const get = (path: string): ExchangeRequest => ({ method: "GET", path });

it.each(["/answer", "/early"])("returns status, headers and the whole text of %s", async (path) => {
  const answer = await exchange(pool, get(path), new AbortController().signal);
  expect(answer).toMatchObject({ status: 201, headers: { "x-name": "value" }, text: "half and hälf" });
});

it("ends requests in flight and requests without a connection with the signal's reason", async () => {
  const stopping = new AbortController();
  const underWay = exchange(pool, get("/silent"), stopping.signal);
  const waiting = exchange(pool, get("/answer"), stopping.signal);
  const outcomes = Promise.allSettled([underWay, waiting]);
  await expect.poll(() => asked).toEqual(["/silent"]);
  const reason = new Error("enough");
  stopping.abort(reason);
  expect(await outcomes).toEqual([
    { status: "rejected", reason },
    { status: "rejected", reason },
  ]);
  // The waiting request was never sent; the connection serves others.
  await exchange(pool, get("/answer-other"), new AbortController().signal);
  expect(asked).toEqual(["/silent", "/answer-other"]);
});

it("sends nothing for a signal that has already aborted", async () => {
  const reason = new Error("too late");
  await expect(exchange(pool, get("/answer"), AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(asked).toEqual([]);
});

it("adds one listener to a signal, however many requests it has", async () => {
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 5 }, () => exchange(pool, get("/answer"), signal)));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
});

it("rejects when it cannot connect", async () => {
  const { port } = server.address() as AddressInfo;
  server.close();
  const other = new Pool(`http://127.0.0.1:${port}`);
  await expect(exchange(other, get("/answer"), new AbortController().signal)).rejects.toMatchObject({
    code: "ECONNREFUSED",
  });
  await other.destroy();
});
