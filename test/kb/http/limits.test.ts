import { once } from "node:events";
import { connect } from "node:net";
import { expect, it, vi } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { createBody, openRunning } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const WAIT = { timeout: 10_000 };

/** Opens a service for one document at a time, whose creates wait for `release`. */
async function openHeld() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let started = 0;
  const wrapStore = (store: Store): Store =>
    withMethods(store, {
      records: {
        createResource: async (...argument) => {
          started += 1;
          await released;
          return store.records.createResource(...argument);
        },
      },
    });
  const running = await openRunning({ wrapStore, limits: { ingests: 1 } });
  return { running, started: () => started, release };
}

it("refuses too many concurrent documents with 503 and Retry-After, but no search", async () => {
  const { running, started, release } = await openHeld();
  const first = running.send("POST", "/api/rag/resource", { body: createBody() });
  await vi.waitFor(() => expect(started()).toBe(1), WAIT);
  const refused = await running.send("POST", "/api/rag/resource", { body: createBody() });
  expect({ status: refused.status, code: refused.json.error.code }).toEqual({
    status: 503,
    code: "overloaded",
  });
  expect(refused.headers["retry-after"]).toBe("1");
  expect((await running.send("GET", "/api/rag/collections")).status).toBe(200);
  release();
  expect((await first).status).toBe(201);
  expect((await running.send("POST", "/api/rag/resource", { body: createBody() })).status).toBe(201);
  await running.close();
});

it("disconnects a client that does not read its long answer", async () => {
  const running = await openRunning({ limits: { answerIdleMs: 300 } });
  const content = "The sea is wide. ".repeat(600_000);
  const body = createBody({ content, settings: { chunkSize: 4000, chunkOverlap: 0 } });
  const { data } = (await running.send("POST", "/api/rag/resource", { body })).json;
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  const closed = once(socket, "close");
  socket.on("error", () => undefined);
  socket.pause();
  socket.write(`GET /api/rag/resource/${data._id} HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\n\r\n`);
  // The service logs the end of each request, here although the client does not read.
  await vi.waitFor(() => expect(running.log()).toMatch(/"method":"GET","route":"[^"]*resource\/:id"/), WAIT);
  socket.resume();
  await closed;
  expect(socket.bytesRead).toBeLessThan(content.length);
  // A client that reads gets the whole answer.
  expect((await running.send("GET", `/api/rag/resource/${data._id}`)).json.data.content).toBe(content);
  await running.close();
});

it("bounds the memory of unread long answers, still answers short ones, and refuses changes before they are made", async () => {
  const running = await openRunning({ limits: { answerBytes: 12_000_000 } });
  const content = "The sea is wide. ".repeat(600_000);
  const settings = { chunkSize: 4000, chunkOverlap: 0 };
  const create = () => running.send("POST", "/api/rag/resource", { body: createBody({ content, settings }) });
  const { data } = (await create()).json;
  const path = `/api/rag/resource/${data._id}`;
  const keyed = { body: { title: data.title }, headers: { "idempotency-key": "k" } };
  expect((await running.send("PUT", path, keyed)).status).toBe(200);
  const list = `/api/rag/resource/by-collection?collectionId=${data.collectionId}&ownerId=${data.ownerId}`;
  const stalled = connect(Number(new URL(running.url).port), "127.0.0.1");
  stalled.on("error", () => undefined);
  stalled.write(`GET ${path} HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\n\r\n`);
  await once(stalled, "readable"); // its head is there, and nothing more is read

  const requests = [
    ["GET", path],
    ["GET", `${path}/chunks`],
    ["GET", list],
    ["PUT", path, { title: "Other" }],
    ["DELETE", path],
  ] as const;
  for (const [method, at, body] of requests) {
    const refused = await running.send(method, at, body === undefined ? {} : { body });
    const seen = {
      at,
      status: refused.status,
      code: refused.json.error?.code,
      wait: refused.headers["retry-after"],
    };
    expect(seen).toEqual({ at, status: 503, code: "overloaded", wait: "1" });
  }
  // A repeated request answers with the whole record, too.
  expect((await running.send("PUT", path, keyed)).status).toBe(503);
  const found = await running.send("POST", "/rag/query", { body: { query: "sea", doc_id: data._id } });
  expect(found.status).toBe(200);
  expect((await running.send("POST", "/api/rag/resource", { body: createBody() })).status).toBe(201);

  stalled.destroy();
  await vi.waitFor(async () => expect((await running.send("GET", path)).status).toBe(200), WAIT);
  // The refused requests changed nothing.
  expect((await running.send("GET", path)).json.data).toMatchObject({ title: data.title, isDeleted: false });
  // Two parts that each fill the memory: the answer is complete and releases all memory.
  await create();
  expect((await running.send("GET", list)).text.split(content)).toHaveLength(3);
  for (const [method, at, body] of requests.filter(([, where]) => where !== list)) {
    const answered = await running.send(method, at, body === undefined ? {} : { body });
    expect({ at, status: answered.status }).toEqual({ at, status: 200 });
  }
  await running.close();
});

it("counts a create as in flight until its work ends, even if its client disconnects", async () => {
  const { running, started, release } = await openHeld();
  const create = () => running.send("POST", "/api/rag/resource", { body: createBody() });
  const body = JSON.stringify(createBody());
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  socket.write(
    `POST /api/rag/resource HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n${body}`,
  );
  await vi.waitFor(() => expect(started()).toBe(1), WAIT);
  socket.destroy();
  // The service logs the end of the connection; the work continues.
  await vi.waitFor(() => expect(running.log()).toContain('"method":"POST"'), WAIT);
  expect((await create()).json.error?.code).toBe("overloaded");
  release();
  await vi.waitFor(async () => expect((await create()).status).toBe(201), WAIT);
  await running.close();
});

it("ends an upload whose client disconnects while the account's documents are counted", async () => {
  const counted = Promise.withResolvers<void>();
  let counts = 0;
  const running = await openRunning({
    wrapStore: (store) =>
      withMethods(store, {
        queue: {
          figures: async (...argument) => {
            counts += 1;
            if (counts === 1) await counted.promise;
            return store.queue.figures(...argument);
          },
        },
      }),
  });
  const form = `--b\r\ncontent-disposition: form-data; name=file; filename=a\r\n\r\nabc\r\n--b--\r\n`;
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  socket.write(
    `POST /image/processing/upload HTTP/1.1\r\nhost: x\r\npauthkey: ${running.key}\r\n` +
      `content-type: multipart/form-data; boundary=b\r\ncontent-length: ${form.length}\r\n\r\n${form}`,
  );
  await vi.waitFor(() => expect(counts).toBe(1), WAIT);
  socket.destroy();
  await vi.waitFor(() => expect(running.log()).toContain('"method":"POST"'), WAIT);
  counted.resolve();
  await vi.waitFor(async () => expect((await running.service.figures()).requestsInFlight).toBe(0), WAIT);
  await running.close();
});
