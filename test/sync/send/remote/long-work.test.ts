import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { DaemonOptions } from "../../../../src/sync/daemon.ts";
import { readStatus } from "../../../../src/sync/operate/status.ts";
import type { DaemonObserver } from "../../../../src/sync/send/remote/observer.ts";
import { openRunning, type Running } from "../../../kb/service/running.ts";
import { buildPdf, textPage } from "../../../kb/ingest/extract/pdf-fixture.ts";
import { openWorld, until, type World } from "../../daemon/harness.ts";
import { withMethods } from "../../../kb/store/with-methods.ts";

/** Shorter than the held work takes. */
const TIMEOUT: Record<string, unknown> = { requestTimeoutMs: 1000 };
const BROKEN_PDF = "%PDF-1.4 no more than a head";
const pdf = (words: string): Buffer => buildPdf([textPage([words])]);

let world: World;
let running: Running;
/** Work on documents starts when this resolves. */
let held: Promise<void> | undefined;
/** Jobs that were leased. */
let jobs: Set<number>;
/** Each test has its own folder. */
let owner = 0;
beforeAll(async () => {
  running = await openRunning({
    ocr: { pagesMax: 1 },
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          createResource: async (...given) => {
            await held;
            return store.records.createResource(...given);
          },
        },
        queue: {
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

/** Options of a daemon with the service and a timeout far shorter than the work. */
const options = (settings = TIMEOUT): Partial<DaemonOptions> & { settings: Record<string, unknown> } => ({
  service: { apiUrl: running.url, dbUrl: running.url, pauthkey: running.key },
  sources: [world.source({ ownerId: `owner-${owner}` })],
  settings,
});
/** Listed resources. */
const listed = async (): Promise<{ title: string; content: string; metadata: { status: string } }[]> => {
  const { json } = await running.send("GET", "/api/rag/collections");
  const id = json.data.collections.find(({ details }: { details: string }) => details === "fastest")._id;
  const list = await running.send(
    "GET",
    `/api/rag/resource/by-collection?collectionId=${id}&ownerId=owner-${owner}`,
  );
  return list.json.data.resources;
};
/** Holds the service's work until the daemon has asked for its state `times` times. */
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

/** A document of which the service reads two of three pages, and its warning. */
const part = buildPdf([textPage(["typed words"]), textPage([]), textPage([])]);
const ofPart = [expect.stringContaining("Page 3 was not read"), 1];
/** The reported warning for the missing pages, and the number of documents read in part. */
const reported = async (): Promise<[string | null | undefined, number | undefined]> => [
  (await world.explain("scan.pdf")).ledger?.warning,
  readStatus(world.stateDir, 10)?.sources[0]?.readInPart,
];

describe("a document that takes the service longer than a request may", () => {
  it("creates a document once and acknowledges it when it is searchable, though it takes longer than a request may", async () => {
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

  it("changes a document once and acknowledges it when the new text is searchable", async () => {
    world.write("scan.pdf", pdf("first words"));
    await world.sync(options());
    world.write("scan.pdf", pdf("second words"));
    jobs = new Set();
    await world.sync({ ...options(), observer: holdUntilAsked(3) });
    expect(await listed()).toMatchObject([{ content: "second words", metadata: { status: "chunked" } }]);
    expect(jobs.size).toBe(1);
  });

  it("reports a document as read in part until another text replaces it", async () => {
    world.write("scan.pdf", part);
    await world.sync({ ...options(), observer: holdUntilAsked(1) });
    expect(await reported()).toEqual(ofPart);
    world.write("scan.pdf", pdf("all words"));
    await world.sync({ ...options(), observer: holdUntilAsked(1) });
    expect(await reported()).toEqual([null, 0]);
    // Also if the work ends within the wait.
    world.write("scan.pdf", part);
    await world.sync(options({}));
    expect(await reported()).toEqual(ofPart);
    world.write("other.pdf", part);
    await world.sync(options({}));
    expect((await reported())[1]).toBe(2);
  });

  it("leaves nothing at the service of a document that it cannot read, and reports its words", async () => {
    world.write("scan.pdf", BROKEN_PDF);
    const daemon = world.daemon({ ...options(), observer: holdUntilAsked(2) });
    await daemon.syncOnce();
    expect(await listed()).toEqual([]);
    expect(daemon.files({ limit: 10 })).toMatchObject([
      { path: "scan.pdf", state: "failed", message: expect.stringContaining("PDF") },
    ]);
    // The file still exists: the remains of its failed create are not a delete of it.
    expect(world.activity.map(({ action, outcome }) => [action, outcome])).toEqual([
      ["create", "refused"],
      ["discard", "done"],
    ]);
  });

  it("gives up a document at once when its file disappears during the work", async () => {
    // Created first, so that the job leased below is the scan's.
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

  it("adopts a document that the service finished after the daemon ended", async () => {
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

  it("reports a document as read in part even without its note in the ledger", async () => {
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
    expect(await reported()).toEqual(ofPart);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(world.stateDir, `ledger.db${end}`), { force: true });
    await world.sync(options());
    expect(await reported()).toEqual(ofPart);
  });
});

describe("documents that the service works on", () => {
  it("creates each document once and parks none when a tier's embedder is slower than the request timeout", async () => {
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

  it("follows unfinished documents after a crash without sending a text again", async () => {
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
    // Each is found by the list, and has its text later.
    expect(world.activity.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual(
      files.map(() => "update done"),
    );
    expect(readStatus(world.stateDir, 10)?.sources[0]).toMatchObject({ searchable: files.length });
  });

  it("delays no other file during long work, however low the concurrency", async () => {
    world.write("a.pdf", pdf("first words"));
    world.write("b.pdf", pdf("second words"));
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    const daemon = world.daemon(options({ ...TIMEOUT, concurrency: 2, settleMs: 5 }));
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => jobs.size === 2);
    // From here on no other work is held. A text is queued too if the daemon does not wait for it.
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
