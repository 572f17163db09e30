import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { DaemonOptions } from "../../../src/sync/daemon.ts";
import { readStatus } from "../../../src/sync/operator/status.ts";
import { explain } from "../../../src/sync/why/explain.ts";
import type { DaemonObserver } from "../../../src/sync/remote/observer.ts";
import { openRunning, type Running } from "../../kb/service/running.ts";
import { buildPdf, textPage } from "../../kb/ingest/extract/pdf-fixture.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";

/** Shorter than what is held here takes. */
const TIMEOUT: Record<string, unknown> = { requestTimeoutMs: 1000 };
const BROKEN_PDF = "%PDF-1.4 no more than a head";
const pdf = (words: string): Buffer => buildPdf([textPage([words])]);

let world: World;
let running: Running;
/** Work on documents waits for this before it begins. */
let held: Promise<void> | undefined;
/** Jobs that were leased. */
let jobs: Set<number>;
/** Each test has its own. */
let owner = 0;
beforeAll(async () => {
  running = await openRunning({
    ocr: { pagesMax: 1 },
    wrapStore: (store) => ({
      ...store,
      createResource: async (...given) => {
        await held;
        return store.createResource(...given);
      },
      queue: {
        ...store.queue,
        lease: async (request) => {
          jobs.add(request.number);
          await held;
          return store.queue.lease(request);
        },
      },
    }),
  });
});
afterAll(() => running.close());
beforeEach(async () => {
  held = undefined;
  jobs = new Set();
  owner += 1;
  world = await openWorld();
});
afterEach(() => world.end());

/** A daemon's options: the service, and a timeout that is over long before the work is. */
const options = (settings = TIMEOUT): Partial<DaemonOptions> & { settings: Record<string, unknown> } => ({
  service: { apiUrl: running.url, dbUrl: running.url, pauthkey: running.key },
  sources: [world.source({ ownerId: `owner-${owner}` })],
  settings,
});
/** Resources that are there, by the list. */
const listed = async (): Promise<{ title: string; content: string; metadata: { status: string } }[]> => {
  const { json } = await running.send("GET", "/api/rag/collections");
  const id = json.data.collections.find(({ details }: { details: string }) => details === "fastest")._id;
  const list = await running.send(
    "GET",
    `/api/rag/resource/by-collection?collectionId=${id}&ownerId=owner-${owner}`,
  );
  return list.json.data.resources;
};
/** Holds the service's work until the daemon has asked `times` times how far it is. */
const holdUntilAsked = (times: number): DaemonObserver => {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  let asked = 0;
  return {
    request: (operation) => {
      if (operation === "read" && (asked += 1) === times) resolve();
    },
    rescanned: () => undefined,
  };
};

/** A document of which the service reads two pages of three, and what is told of that. */
const part = buildPdf([textPage(["typed words"]), textPage([]), textPage([])]);
const ofPart = [expect.stringContaining("Page 3 was not read"), 1];
/** What is told of the document's missing pages, and how many documents lack some. */
const told = async (): Promise<[string | null | undefined, number | undefined]> => [
  (await explain(world.stateDir, world.source(), "scan.pdf", new AbortController().signal)).ledger?.warning,
  readStatus(world.stateDir, 10)?.sources[0]?.readInPart,
];

describe("a document that takes the service longer than a request may", () => {
  it("is made once, and acknowledged when it is searchable", async () => {
    world.write("scan.pdf", pdf("first words"));
    const observer = holdUntilAsked(3);
    await world.sync({ ...options(), observer });
    expect(await listed()).toMatchObject([{ content: "first words", metadata: { status: "chunked" } }]);
    expect(jobs.size).toBe(1);
    expect(world.activity.map(({ action, outcome }) => [action, outcome])).toEqual([["create", "done"]]);
    const before = world.activity.length;
    await world.sync(options());
    expect(world.activity).toHaveLength(before);
  });

  it("is changed once, and acknowledged when the new text is searchable", async () => {
    world.write("scan.pdf", pdf("first words"));
    await world.sync(options());
    world.write("scan.pdf", pdf("second words"));
    jobs = new Set();
    await world.sync({ ...options(), observer: holdUntilAsked(3) });
    expect(await listed()).toMatchObject([{ content: "second words", metadata: { status: "chunked" } }]);
    expect(jobs.size).toBe(1);
  });

  it("and is read in part is told as that until another text takes its place", async () => {
    world.write("scan.pdf", part);
    await world.sync({ ...options(), observer: holdUntilAsked(1) });
    expect(await told()).toEqual(ofPart);
    world.write("scan.pdf", pdf("all words"));
    await world.sync({ ...options(), observer: holdUntilAsked(1) });
    expect(await told()).toEqual([null, 0]);
    // Also where it is done within the wait.
    world.write("scan.pdf", part);
    await world.sync(options({}));
    expect(await told()).toEqual(ofPart);
    world.write("other.pdf", part);
    await world.sync(options({}));
    expect((await told())[1]).toBe(2);
  });

  it("that cannot be read leaves nothing at the service, and tells the service's words", async () => {
    world.write("scan.pdf", BROKEN_PDF);
    const daemon = world.daemon({ ...options(), observer: holdUntilAsked(2) });
    await daemon.syncOnce();
    expect(await listed()).toEqual([]);
    expect(daemon.troubled(10)).toMatchObject([
      { path: "scan.pdf", state: "failed", message: expect.stringContaining("PDF") },
    ]);
    // The file is still there: what its failed create left is no delete of it.
    expect(world.activity.map(({ action, outcome }) => [action, outcome])).toEqual([
      ["create", "refused"],
      ["discard", "done"],
    ]);
  });

  it("and whose file goes meanwhile is given up at once", async () => {
    // Made first, so that the job that is leased below is the scan's.
    world.write("note.txt", "stays");
    await world.sync(options());
    jobs = new Set();
    world.write("scan.pdf", pdf("first words"));
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const daemon = world.daemon({ ...options({ ...TIMEOUT, settleMs: 5 }) });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => jobs.size === 1);
    rmSync(join(world.root, "scan.pdf"));
    await until(() => world.activity.some(({ action }) => action === "delete"));
    resolve();
    stop.abort();
    await ended;
    expect(await listed()).toMatchObject([{ content: "stays" }]);
  });

  it("and a daemon that ends meanwhile: the next one adopts what is there", async () => {
    world.write("scan.pdf", pdf("first words"));
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const crash = new Error("crash");
    const daemon = world.daemon({
      ...options(),
      step: (name) => {
        if (name === "read") throw crash;
      },
    });
    await expect(daemon.syncOnce()).rejects.toThrow(crash);
    await daemon.close().catch(() => undefined);
    resolve();
    await world.sync(options());
    expect(await listed()).toMatchObject([{ content: "first words", metadata: { status: "chunked" } }]);
  });

  it("and is read in part is told as that, too, where a daemon finds it without its note of it", async () => {
    world.write("scan.pdf", part);
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const crash = new Error("crash");
    const step = (name: string): void => {
      if (name === "read") throw crash;
    };
    const daemon = world.daemon({ ...options(), step });
    await expect(daemon.syncOnce()).rejects.toThrow(crash);
    await daemon.close().catch(() => undefined);
    resolve();
    await vi.waitFor(
      async () => expect(await listed()).toMatchObject([{ metadata: { status: "chunked" } }]),
      {
        timeout: 60_000,
      },
    );
    await world.sync(options());
    expect(await told()).toEqual(ofPart);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(world.stateDir, `ledger.db${end}`), { force: true });
    await world.sync(options());
    expect(await told()).toEqual(ofPart);
  });
});

describe("documents that the service works on", () => {
  it("are made once each, and none is put aside, where a tier's embedder takes longer than a request may", async () => {
    const files = Array.from({ length: 40 }, (_, index) => `${index}.md`);
    for (const file of files) world.write(file, `words of ${file}`);
    const sources = [world.source({ ownerId: `owner-${owner}`, collection: "moderate" })];
    await world.sync({ ...options(), sources, observer: holdUntilAsked(200) });
    const { json } = await running.send("GET", "/api/rag/collections");
    const collection = json.data.collections.find(
      ({ details }: { details: string }) => details === "moderate",
    );
    expect(collection.resources).toBe(files.length);
    expect(world.activity.filter(({ outcome }) => outcome !== "done")).toEqual([]);
  });

  it("are followed by the next daemon after a crash, and no text is sent again", async () => {
    const files = Array.from({ length: 12 }, (_, index) => `${index}.md`);
    for (const file of files) world.write(file, `words of ${file}`);
    const given = {
      ...options(),
      sources: [world.source({ ownerId: `owner-${owner}`, collection: "moderate" })],
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    let reads = 0;
    const daemon = world.daemon({
      ...given,
      step: (name) => {
        if (name === "read" && (reads += 1) === files.length) throw new Error("crash");
      },
    });
    await expect(daemon.syncOnce()).rejects.toThrow("crash");
    await daemon.close().catch(() => undefined);
    const sent: string[] = [];
    await world.sync({
      ...given,
      observer: {
        request: (operation) => {
          sent.push(operation);
          if (operation === "read" && sent.filter((each) => each === "read").length === 3 * files.length)
            resolve();
        },
        rescanned: () => undefined,
      },
    });
    expect(sent.filter((operation) => operation === "create" || operation === "update")).toEqual([]);
    expect(jobs.size).toBe(files.length);
    expect(world.activity.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual(
      files.map(() => "adopt done"),
    );
    expect(readStatus(world.stateDir, 10)?.sources[0]).toMatchObject({ inAgreement: files.length });
  });

  it("hold back no other file, however few are sent at once", async () => {
    world.write("a.pdf", pdf("first words"));
    world.write("b.pdf", pdf("second words"));
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const daemon = world.daemon(options({ ...TIMEOUT, concurrency: 2, settleMs: 5 }));
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => jobs.size === 2);
    // From here on no other work is held: a text is queued, too, where the daemon does not wait for it.
    held = undefined;
    world.write("note.txt", "sent meanwhile");
    await until(
      () => world.activity.length > 0,
      () => "the third file",
      30_000,
    );
    expect(world.activity).toMatchObject([{ path: "note.txt", action: "create", outcome: "done" }]);
    resolve();
    await until(
      () => world.activity.length === 3,
      () => "all files",
      30_000,
    );
    stop.abort();
    await ended;
    expect((await listed()).map(({ content }) => content).toSorted()).toEqual([
      "first words",
      "second words",
      "sent meanwhile",
    ]);
    expect(jobs.size).toBe(3);
  });
});
