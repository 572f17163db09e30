import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Store } from "../../../src/kb/store/store.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running, RunningOptions } from "./running.ts";
import { withMethods } from "../store/with-methods.ts";

/** Ample for a busy machine; a condition that holds ends the wait at once. */
const WAIT = { timeout: 10_000 };

const opened: Running[] = [];
async function open(options?: RunningOptions): Promise<Running> {
  const running = await openRunning(options);
  opened.push(running);
  return running;
}
afterEach(async () => {
  for (const running of opened.splice(0)) await running.close();
});

/** A store whose creates wait until they are let go. */
function slowStore(): { wrapStore: (store: Store) => Store; begun(): number; release(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  return {
    begun: () => begun,
    release: resolve,
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          createResource: async (...given) => {
            begun += 1;
            await promise;
            return store.records.createResource(...given);
          },
        },
      }),
  };
}

const create = (running: Running) => running.send("POST", "/api/rag/resource", { body: createBody() });

/** For what leaves no trace; the others open their own. */
let shared: Running;
/** What the shared service's store throws on a create. */
let storeFailure: Error | undefined;
beforeAll(async () => {
  shared = await openRunning({
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          createResource: async (...given) => {
            if (storeFailure !== undefined) throw storeFailure;
            return store.records.createResource(...given);
          },
        },
      }),
  });
});
afterAll(() => shared.close());

describe("health", () => {
  it("health answers without a key", async () => {
    const running = shared;
    const { status, json } = await running.send("GET", "/v1/health", { key: null });
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      status: "ready",
      version: "0.0.0-test",
      embedder: { state: "off", message: expect.any(String) },
      reranker: { state: "off", message: expect.any(String) },
      languageModel: { state: "off", message: expect.any(String) },
      isBackfilling: false,
      tiers: { fastest: expect.any(String), moderate: expect.any(String), high_accuracy: expect.any(String) },
    });
  });
});

describe("starting", () => {
  it("refuses a port in use with its own code", async () => {
    const running = await open();
    const second = await open({ start: false, port: Number(new URL(running.url).port) });
    await expect(second.service.start()).rejects.toMatchObject({ code: "address_in_use" });
  });

  it("a starting service answers 503 with Retry-After until it is ready", async () => {
    // A left upload whose row the start looks up, which takes until it is let go.
    const release = Promise.withResolvers<void>();
    const running = await open({
      start: false,
      wrapStore: (store) =>
        withMethods(store, {
          records: {
            file: async (token) => {
              await release.promise;
              return store.records.file(token);
            },
          },
        }),
    });
    await writeFile(join(running.stateDir, "uploads", "incoming", "left"), "x");
    const started = running.service.start();
    const url = await vi.waitFor(() => {
      const found = /"url":"([^"]+)"/.exec(running.log())?.[1];
      expect(found).toBeDefined();
      return found ?? "";
    }, WAIT);
    const early = await running.send("GET", `${url}/api/rag/collections`);
    expect(early.status).toBe(503);
    expect(early.json.error.code).toBe("starting");
    expect(Number(early.headers["retry-after"])).toBeGreaterThan(0);
    expect((await running.send("GET", `${url}/v1/health`)).json.status).toBe("starting");
    release.resolve();
    await started;
    expect((await running.send("GET", `${url}/api/rag/collections`)).status).toBe(200);
  });
});

describe("draining", () => {
  it("a draining service completes requests in flight, refuses new ones, then ends", async () => {
    const slow = slowStore();
    const running = await open({ wrapStore: slow.wrapStore });
    const underWay = create(running);
    await vi.waitFor(() => expect(slow.begun()).toBe(1), WAIT);
    const closed = running.service.close();
    // The port is free at once.
    await expect(create(running)).rejects.toThrow("ECONNREFUSED");
    expect(errorLines(running)).toBe(0);
    expect(running.service.health().status).toBe("draining");
    slow.release();
    expect((await underWay).status).toBe(201);
    await closed;
    await expect(create(running)).rejects.toThrow("ECONNREFUSED");
  });

  it.each([
    ["its bound", { drainMs: 50 }, undefined],
    ["the time that is left to it", {}, 50],
  ])("draining ends after %s though a request never finishes", async (_name, limits, withinMs) => {
    const slow = slowStore();
    const running = await open({ wrapStore: slow.wrapStore, limits });
    const underWay = create(running).catch((error: unknown) => error);
    await vi.waitFor(() => expect(slow.begun()).toBe(1), WAIT);
    await running.service.close(withinMs);
    expect(await underWay).toBeInstanceOf(Error);
    slow.release();
  });

  it("a draining service refuses new requests on an open connection", async () => {
    const slow = slowStore();
    const running = await open({ wrapStore: slow.wrapStore });
    const body = JSON.stringify(createBody());
    const post = `POST /api/rag/resource HTTP/1.1\r\nhost: a\r\npauthkey: ${running.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    const answers = text(socket);
    socket.write(post);
    await vi.waitFor(() => expect(slow.begun()).toBe(1), WAIT);
    const closed = running.service.close();
    socket.write(post);
    slow.release();
    await closed;
    const [first = "", second = ""] = (await answers).split("HTTP/1.1 ").slice(1);
    expect(first).toMatch(/^201 /);
    expect(second).toMatch(/^503 [^]*retry-after: [^]*"draining"/i);
  });

  it("draining ends in time although the model hangs, in a request and in a backfill", async () => {
    let asked = 0;
    const embed = (): Promise<never> => {
      asked += 1;
      return new Promise(() => undefined);
    };
    const facts = { fingerprint: "hanging", dimensions: 2, tokensMax: 256 };
    const running = await open({
      openEmbedder: async () => ({ ...facts, embed, close: async () => undefined }),
    });
    const settings = { strategy: "semantic", chunkSize: 20, chunkOverlap: 0 };
    const body = createBody({ collection_details: "moderate", settings });
    const small = running.send("POST", "/api/rag/resource", { body }).catch((error: unknown) => error);
    const plain = createBody({ collection_details: "moderate" });
    expect((await running.send("POST", "/api/rag/resource", { body: plain })).status).toBe(201);
    await vi.waitFor(() => expect(asked).toBe(2), WAIT);
    const closed = running.service.close(100);
    await expect(create(running)).rejects.toThrow("ECONNREFUSED");
    await closed;
    expect(await small).toBeInstanceOf(Error);
  });

  it("answers a probe although the store reports failures", async () => {
    const failing = async (): Promise<never> => {
      throw new Error("the disk is full");
    };
    const running = await open({
      wrapStore: (store) => withMethods(store, { records: { collections: failing } }),
    });
    await expect(running.service.probe()).resolves.toBeUndefined();
  });

  it("leaves an interrupted document to the next start, neither failed nor counted as a crash", async () => {
    const broken = Promise.withResolvers<never>();
    let taken = 0;
    let left: object | undefined;
    const running = await open({
      limits: { drainMs: 50 },
      wrapStore: (store) => ({
        ...withMethods(store, {
          records: {
            updateResource: () => {
              taken += 1;
              return broken.promise;
            },
          },
        }),
        close: async () => {
          const at = { accountId: (await store.records.ensureAccount("local")).id, id };
          broken.reject(new Error("what reads it is gone by now"));
          await new Promise(setImmediate);
          const job = await store.queue.change({ ...at, nowMs: Date.now() });
          const leased = await store.queue.lease({
            number: job?.number ?? 0,
            worker: "next",
            nowMs: Date.now(),
          });
          left = { crashes: leased?.crashes, status: (await store.records.resource(at))?.status };
          await store.close();
        },
      }),
    });
    const sent = { body: createBody(), headers: { prefer: "respond-async" } };
    const id = (await running.send("POST", "/api/rag/resource", sent)).json.data._id;
    await vi.waitFor(() => expect(taken).toBe(1), WAIT);
    await running.service.close();
    expect(left).toEqual({ crashes: 0, status: "queued" });
  });

  it("starts no document whose turn comes after the close", async () => {
    const held = Promise.withResolvers<void>();
    const [holding, changed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let begun = 0;
    const running = await open({
      wrapStore: (store) => ({
        ...withMethods(store, {
          records: {
            updateResource: async (...given) => {
              holding.resolve();
              await held.promise;
              return await store.records.updateResource(...given).finally(changed.resolve);
            },
          },
          queue: {
            lease: async (request) => {
              begun += 1;
              return store.queue.lease(request);
            },
          },
        }),
        close: async () => {
          // The queue has ended, and now the turn comes that a document waited for.
          held.resolve();
          await changed.promise;
          for (let reads = 0; reads < 3; reads += 1) await store.queue.figures("ingest", undefined);
          await store.close();
        },
      }),
    });
    // Not one of those that are done in a moment, which need no job.
    const body = createBody({ collection_details: "moderate" });
    const { json } = await running.send("POST", "/api/rag/resource", { body });
    const path = `/api/rag/resource/${json.data._id}`;
    const first = running.send("PUT", path, { body: { content: "First words." } });
    await holding.promise;
    const headers = { prefer: "respond-async" };
    const later = await running.send("PUT", path, { body: { content: "Later words." }, headers });
    expect(later.status).toBe(202);
    const [answer] = await Promise.allSettled([first, running.service.close(1)]);
    expect(answer.status).toBe("rejected");
    expect(begun).toBe(0);
  });

  it("a close does not wait for idle connections", async () => {
    const running = await open();
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    socket.write("GET /v1/health HTTP/1.1\r\nhost: a\r\n\r\n");
    await new Promise((resolve) => socket.once("data", resolve));
    const ended = new Promise((resolve) => socket.once("close", resolve));
    await running.service.close();
    await ended;
    expect(socket.destroyed).toBe(true);
  });
});

describe("a body over the limit", () => {
  it("answers a body over the limit while the client still sends, and reuses the connection", async () => {
    const running = await open({ limits: { contentBytes: 1000 } });
    const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
    const bytes = 2_000_000;
    socket.write(
      `POST /api/rag/resource HTTP/1.1\r\nhost: a\r\npauthkey: ${running.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n${"x".repeat(bytes)}` +
        "GET /v1/health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    const answers = await text(socket);
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413", "HTTP/1.1 200"]);
  });
});

describe("bounds", () => {
  it("refuses more concurrent requests than allowed with 503", async () => {
    const slow = slowStore();
    const running = await open({ wrapStore: slow.wrapStore, limits: { requests: 4 } });
    // One account gets three quarters.
    const underWay = [create(running), create(running), create(running)];
    await vi.waitFor(() => expect(slow.begun()).toBe(3), WAIT);
    const third = await create(running);
    expect(third).toMatchObject({ status: 503, json: { error: { code: "overloaded" } } });
    expect(third.headers["retry-after"]).toBe("1");
    slow.release();
    expect((await Promise.all(underWay)).map(({ status }) => status)).toEqual([201, 201, 201]);
    expect((await create(running)).status).toBe(201);
  });

  it("refuses bodies that would exceed the memory limit, and accepts a single large one", async () => {
    const slow = slowStore();
    const running = await open({ wrapStore: slow.wrapStore, limits: { bodyBytes: 1000 } });
    const body = createBody({ content: "x".repeat(5000) });
    const first = running.send("POST", "/api/rag/resource", { body });
    await vi.waitFor(() => expect(slow.begun()).toBe(1), WAIT);
    expect((await running.send("POST", "/api/rag/resource", { body })).status).toBe(503);
    slow.release();
    expect((await first).status).toBe(201);
    expect((await running.send("POST", "/api/rag/resource", { body })).status).toBe(201);
  });
});

describe("failures inside", () => {
  afterEach(() => {
    storeFailure = undefined;
  });

  it("a failed write leaves no note of the request, which succeeds later under its Idempotency-Key", async () => {
    storeFailure = new Error("no room");
    const sent = { body: createBody(), headers: { "idempotency-key": "unwritten" } };
    expect((await shared.send("POST", "/api/rag/resource", sent)).status).toBe(500);
    storeFailure = undefined;
    expect((await shared.send("POST", "/api/rag/resource", sent)).status).toBe(201);
  });

  it("internal failures answer 500 without details, and are logged", async () => {
    storeFailure = new Error("secret /path");
    const answer = await create(shared);
    expect(answer).toMatchObject({ status: 500, json: { success: false, error: { code: "internal" } } });
    expect(answer.text).not.toContain("secret");
    expect(shared.log()).toContain("secret /path");
  });

  it("writes to a full disk answer 503 with Retry-After", async () => {
    storeFailure = Object.assign(new Error("write"), { code: "ENOSPC" });
    const answer = await create(shared);
    expect(answer).toMatchObject({ status: 503, json: { error: { code: "disk_full" } } });
    expect(answer.headers["retry-after"]).toBe("60");
  });

  it("writes to a full disk are logged in one line, however many, without stacks", async () => {
    const before = shared.log().length;
    for (let count = 0; count < 3; count += 1) {
      storeFailure = Object.assign(new Error("write"), { code: "ENOSPC" });
      expect((await create(shared)).status).toBe(503);
    }
    const lines = shared.log().slice(before).split("\n");
    expect(lines.filter((line) => line.includes('"level":50'))).toEqual([]);
    expect(lines.filter((line) => line.includes("disk_full")).length).toBeLessThanOrEqual(1);
    expect(shared.log().split("requests are refused: The disk has no space left")).toHaveLength(2);
  });
});

describe("a damaged store", () => {
  it("answers, health and readiness report a damaged store with its remedy, and the log has it once", async () => {
    const damaged = Object.assign(new Error("database disk image is malformed"), {
      code: "SQLITE_CORRUPT_VTAB",
    });
    const running = await open({
      wrapStore: (store) =>
        withMethods(store, { records: { createResource: async () => Promise.reject(damaged) } }),
    });
    for (let count = 0; count < 3; count += 1) {
      const answer = await create(running);
      expect(answer).toMatchObject({ status: 503, json: { error: { code: "store_damaged" } } });
      expect(answer.json.error.hint).toMatch(/`kbsync doctor`.*`kbsync restore`/);
    }
    expect(await running.send("GET", "/readyz", { key: null })).toMatchObject({
      status: 503,
      json: { error: { code: "store_damaged" } },
    });
    const health = await running.send("GET", "/v1/health", { key: null });
    expect(health).toMatchObject({ status: 200, json: { status: "damaged" } });
    const lines = running.log().split("\n");
    expect(lines.filter((line) => line.includes('"level":50'))).toHaveLength(1);
  });
});

describe("what is not HTTP", () => {
  it.each([
    { name: "nonsense", bytes: "hello\r\n\r\n", status: 400, code: "invalid_request" },
    {
      name: "headers of 100 KB",
      bytes: `GET / HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
      status: 431,
      code: "headers_too_large",
    },
    {
      name: "two lengths",
      bytes:
        "POST /rag/query HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      status: 400,
      code: "invalid_request",
    },
  ])("$name: $status in the shape of every refusal", async ({ bytes, status, code }) => {
    const socket = connect(Number(new URL(shared.url).port), "127.0.0.1");
    socket.write(bytes);
    const [head = "", body = ""] = (await text(socket)).split("\r\n\r\n");
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(body)).toEqual({ success: false, message: expect.any(String), error: { code } });
  });

  it("a client that disconnects in the middle of its body disturbs no other", async () => {
    const running = shared;
    const errors = errorLines(running);
    for (let i = 0; i < 5; i++) {
      const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
      socket.write(
        `POST /api/rag/resource HTTP/1.1\r\nhost: a\r\npauthkey: ${running.key}\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"title"`,
      );
      await vi.waitFor(() => expect(socket.bytesWritten).toBeGreaterThan(0), WAIT);
      socket.destroy();
    }
    expect((await create(running)).status).toBe(201);
    expect(errorLines(running)).toBe(errors);
  });
});

function errorLines(running: Running): number {
  return running.log().split('"level":50').length - 1;
}
