import { mkdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import type { Daemon } from "../../../src/sync/daemon.ts";
import type { WaitEnd } from "../../../src/sync/daemon/wait.ts";
import { readStatus } from "../../../src/sync/operate/status.ts";
import { REAL_WORLD as realWorld } from "../../../src/sync/daemon/options.ts";
import { openWorld, SINGLE_DELETES, until, type World } from "./harness.ts";

let world: World;
let stopping: AbortController;
let running: Promise<void>[];
beforeEach(async () => {
  world = await openWorld();
  stopping = new AbortController();
  running = [];
});
afterEach(async () => {
  stopping.abort();
  await Promise.all(running);
  await world.end();
});

/** A running daemon that has become idle. */
async function run(more?: Parameters<World["daemon"]>[0]): Promise<Daemon> {
  const daemon = world.daemon({ timing: SINGLE_DELETES, ...more });
  running.push(daemon.run({ signal: stopping.signal }));
  await daemon.whenIdle();
  return daemon;
}

const titles = (): string[] => world.service.live().map(({ title }) => title);
const changes = (): number =>
  world.service.requests.filter(({ operation }) => operation !== "list" && operation !== "collections")
    .length;
const never = new AbortController().signal;

describe("pause", () => {
  it("sends nothing during a pause, counts changes, and sends them after resume", async () => {
    world.write("a.txt", "a");
    const daemon = await run();
    expect(await daemon.pause()).toEqual([world.root]);
    const before = changes();
    world.write("a.txt", "another a");
    world.write("b.txt", "b");
    world.write("folder/c.txt", "c");
    await until(() => daemon.status().sources[0]?.waiting === 3);
    expect(daemon.status().sources).toMatchObject([
      { paused: true, waiting: 3, searchable: 0, files: 3, failed: 0 },
    ]);
    expect(changes()).toBe(before);
    expect(await daemon.resume()).toEqual([world.root]);
    await until(() => titles().length === 3);
    await daemon.whenIdle();
    expect(daemon.status().sources).toMatchObject([{ paused: false, waiting: 0, searchable: 3 }]);
  });

  it("keeps a wait from reporting agreement while the document of a deleted file is there", async () => {
    world.write("a.txt", "text");
    world.write("b.txt", "another text");
    const daemon = await run();
    await daemon.pause();
    unlinkSync(join(world.root, "a.txt"));
    expect(await daemon.wait({ signal: never })).toMatchObject({
      agreed: false,
      reasons: [{ path: "a.txt", code: "paused" }],
    });
    expect(daemon.status().sources).toMatchObject([{ paused: true, waiting: 0, searchable: 2 }]);
    await daemon.resume();
    expect(await daemon.wait({ signal: never })).toMatchObject({ agreed: true });
    expect(titles()).toEqual(["b.txt"]);
  });

  it("keeps the resources of files that are renamed during a pause", async () => {
    world.write("a.txt", "a text that moves");
    const daemon = await run();
    const [before] = world.service.live();
    await daemon.pause();
    renameSync(join(world.root, "a.txt"), join(world.root, "b.txt"));
    await until(() => daemon.status().sources[0]?.waiting === 1);
    await daemon.resume();
    await until(() => titles().join() === "b.txt");
    expect(world.service.live()).toMatchObject([{ _id: before?._id }]);
  });

  it("cancels planned work and finishes work in flight at a pause, without losing either", async () => {
    for (let index = 0; index < 300; index += 1) world.write(`${index}.txt`, `text ${index}`);
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let waiting = 0;
    world.service.fault = (request) => {
      if (request.operation !== "create") return undefined;
      waiting += 1;
      return { kind: "wait", until: released };
    };
    const daemon = world.daemon();
    running.push(daemon.run({ signal: stopping.signal }));
    await until(() => waiting > 0);
    const paused = daemon.pause();
    release();
    await paused;
    await daemon.whenIdle();
    const sent = world.service.live().length;
    expect(sent).toBe(waiting);
    expect(sent).toBeLessThan(100);
    expect(daemon.status().sources).toMatchObject([{ files: 300, searchable: sent, waiting: 300 - sent }]);
    world.service.fault = () => undefined;
    await daemon.resume();
    await until(() => titles().length === 300);
    await daemon.whenIdle();
    expect(new Set(titles()).size).toBe(300);
  });

  it("suspends at a pause what waited for the service to answer", async () => {
    world.write("a.txt", "a");
    let leaving = 0;
    const daemon = await run({
      step: (name) => {
        if (name === "create") leaving += 1;
        if (name === "create:answered") leaving -= 1;
      },
    });
    // A delay of a second keeps the others at the gate while the request in flight ends.
    const headers = { "retry-after": "1" };
    world.service.fault = () => ({ kind: "answer", status: 503, body: "{}", headers });
    for (const name of ["b", "c", "d", "e"]) world.write(`${name}.txt`, name);
    await until(() => daemon.status().service.kind === "waiting");
    await daemon.pause();
    await until(() => leaving === 0);
    world.service.fault = () => undefined;
    await daemon.whenIdle();
    expect(titles()).toEqual(["a.txt"]);
    await daemon.resume();
    await until(() => titles().length === 5);
  });

  it("pauses one source without the others", async () => {
    const other = `${world.root}-other`;
    mkdirSync(other);
    writeFileSync(join(other, "x.txt"), "x");
    const daemon = await run({
      sources: [world.source(), { ...world.source(), absolutePath: other, ownerId: "another" }],
    });
    await daemon.pause(world.root);
    world.write("a.txt", "a");
    writeFileSync(join(other, "y.txt"), "y");
    await until(() => titles().length === 2);
    expect(titles().toSorted()).toEqual(["x.txt", "y.txt"]);
    expect(daemon.status().sources.map(({ paused }) => paused)).toEqual([true, false]);
    await expect(daemon.pause("/elsewhere")).rejects.toMatchObject({ code: "source_unknown" });
  });

  it("lets a pause that is requested while a resume is written take effect", async () => {
    const daemon = await run();
    await daemon.pause();
    await Promise.all([daemon.resume(), daemon.pause()]);
    world.write("a.txt", "a");
    await until(() => daemon.status().sources[0]?.waiting === 1 || titles().length === 1);
    await daemon.whenIdle();
    expect(titles()).toEqual([]);
    expect(daemon.status().sources).toMatchObject([{ paused: true, waiting: 1 }]);
  });

  it("suspends deletes during a pause, and sends them after resume", async () => {
    for (const name of ["a", "b", "c"]) world.write(`${name}.txt`, name);
    const daemon = await run();
    await daemon.pause();
    unlinkSync(join(world.root, "a.txt"));
    await daemon.retry();
    await daemon.whenIdle();
    expect(titles()).toHaveLength(3);
    await daemon.resume();
    await until(() => titles().length === 2);
  });
});

describe("wait", () => {
  const wait = (daemon: Daemon, path?: string): Promise<WaitEnd> =>
    daemon.wait({ signal: never, ...(path !== undefined && { path: join(world.root, path) }) });

  it("waits for a file that was just written, with or without an event", async () => {
    const daemon = await run({ world: deafWorld() });
    for (let round = 0; round < 5; round += 1) {
      world.write("a.txt", `round ${round}`);
      expect(await wait(daemon, "a.txt")).toEqual({
        agreed: true,
        reasons: [],
        troubled: 0,
        reading: 0,
        readingPaths: [],
      });
      expect(world.service.live()).toMatchObject([{ content: `round ${round}` }]);
    }
    world.write("new/folder/b.txt", "b");
    expect(await wait(daemon)).toMatchObject({ agreed: true });
    expect(titles()).toHaveLength(2);
    world.write("new/folder/c.txt", "c");
    expect(await wait(daemon, "new")).toMatchObject({ agreed: true });
    expect(titles()).toHaveLength(3);
  });

  it("waits for all of a first sync when asked before the first scan", async () => {
    for (let index = 0; index < 30; index += 1) world.write(`${index}.txt`, `text ${index}`);
    const daemon = world.daemon();
    running.push(daemon.run({ signal: stopping.signal }));
    const [whole, one] = await Promise.all([wait(daemon), wait(daemon, "29.txt")]);
    expect([whole, one]).toMatchObject([{ agreed: true }, { agreed: true }]);
    expect(titles()).toHaveLength(30);
  });

  it("waits for the words of new PDFs, and names scans and images while the service reads their pictures", async () => {
    world.write("first.txt", "shows the service's id of the collection");
    const daemon = await run();
    const metadata = new Map<string, object>();
    world.service.fault = ({ operation, body, docId }) => {
      const title = body?.["title"];
      const name = typeof title === "string" ? title : (docId ?? "");
      if (operation === "create") metadata.set(name, { status: "queued" });
      if (operation !== "create" && operation !== "read") return undefined;
      const data = { _id: name, title: name, metadata: metadata.get(name) };
      const status = operation === "create" ? 202 : 200;
      return { kind: "answer", status, body: JSON.stringify({ success: true, data }) };
    };
    world.write("typed.pdf", "%PDF-1.4 typed");
    world.write("scan.pdf", "%PDF-1.4 scanned");
    world.write("photo.png", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"));
    let isEnded = false;
    const waited = wait(daemon).finally(() => (isEnded = true));
    await until(() => daemon.status().sources[0]?.reading === 3);
    const named = wait(daemon, "scan.pdf");
    metadata.set("scan.pdf", { status: "queued", warning: "Pages 1–2 are still being read." });
    const [source] = daemon.status().sources;
    await until(() => world.service.count("read") > 6);
    expect([isEnded, source?.searchable]).toEqual([false, 1]);
    metadata.set("typed.pdf", { status: "chunked" });
    const end = await waited;
    expect(end).toMatchObject({ agreed: true, reading: 2 });
    const paths = ["photo.png", "scan.pdf"].map((name) => join(world.root, name));
    expect(end.readingPaths.toSorted()).toEqual(paths);
    metadata.set("scan.pdf", { status: "chunked" });
    expect(await named).toMatchObject({ agreed: true, reading: 0 });
    // A wait makes the service read nothing again.
    expect([world.service.count("create"), world.service.count("update")]).toEqual([4, 0]);
  });

  it("follows at a pause what the service reads, and sends none of it again", async () => {
    world.write("first.txt", "shows the service's id of the collection");
    const daemon = await run();
    let data: object = { _id: "scan", title: "scan.pdf", metadata: { status: "queued" } };
    world.service.fault = ({ operation }) => {
      if (operation !== "create" && operation !== "read") return undefined;
      const status = operation === "create" ? 202 : 200;
      return { kind: "answer", status, body: JSON.stringify({ success: true, data }) };
    };
    world.write("scan.pdf", "%PDF-1.4 scanned");
    await until(() => daemon.status().sources[0]?.reading === 1);
    await daemon.pause();
    world.write("b.txt", "waits");
    await until(() => daemon.status().sources[0]?.waiting === 1);
    const asked = world.service.count("read");
    await until(() => world.service.count("read") > asked + 1);
    expect(daemon.status().sources).toMatchObject([{ files: 3, searchable: 1, reading: 1, waiting: 1 }]);
    const [all, named] = [wait(daemon), wait(daemon, "scan.pdf")];
    data = { ...data, metadata: { status: "chunked" } };
    expect((await all).reasons).toMatchObject([{ path: "b.txt", code: "paused" }]);
    expect(await named).toMatchObject({ agreed: true });
    world.service.fault = () => undefined;
    await daemon.resume();
    await until(() => titles().includes("b.txt"));
    await daemon.whenIdle();
    expect([world.service.count("create"), world.service.count("update")]).toEqual([3, 0]);
  });

  it("waits for the settle time too", async () => {
    const daemon = await run({ settings: { settleMs: 200 } });
    world.write("a.txt", "a");
    expect(await wait(daemon, "a.txt")).toMatchObject({ agreed: true });
    expect(titles()).toEqual(["a.txt"]);
  });

  it("waits for a change that came while an older version was in flight", async () => {
    const daemon = await run();
    let release = (): void => undefined;
    let arrived = false;
    world.service.fault = ({ operation }) => {
      if (operation !== "create") return undefined;
      arrived = true;
      return {
        kind: "wait",
        until: new Promise<void>((resolve) => {
          release = resolve;
        }),
      };
    };
    world.write("a.txt", "old");
    await until(() => arrived);
    world.write("a.txt", "new");
    const waited = wait(daemon, "a.txt");
    release();
    expect(await waited).toMatchObject({ agreed: true });
    expect(world.service.live()).toMatchObject([{ content: "new" }]);
  });

  it("waits until a deleted file is gone, and returns at once for one that never existed", async () => {
    for (const name of ["a", "b", "c"]) world.write(`${name}.txt`, name);
    const daemon = await run();
    unlinkSync(join(world.root, "b.txt"));
    expect(await wait(daemon, "b.txt")).toMatchObject({ agreed: true });
    expect(titles().toSorted()).toEqual(["a.txt", "c.txt"]);
    expect(await wait(daemon, "never.txt")).toMatchObject({ agreed: true });
  });

  it("waits for a service that returns", async () => {
    const daemon = await run();
    world.service.fault = () => ({ kind: "answer", status: 503, body: "{}" });
    world.write("a.txt", "a");
    const waited = wait(daemon);
    await until(() => daemon.status().service.kind === "waiting");
    world.service.fault = () => undefined;
    expect(await waited).toMatchObject({ agreed: true });
    expect(titles()).toEqual(["a.txt"]);
  });

  it("does not take a file for empty that is truncated before it is rewritten", async () => {
    const daemon = await run({ settings: { settleMs: 500 } });
    world.write("a.txt", "");
    const { promise: checked, resolve } = Promise.withResolvers<void>();
    const path = join(world.root, "a.txt");
    const waited = daemon.wait({ signal: never, path, onWaiting: () => resolve() });
    await Promise.race([checked, waited]);
    world.write("a.txt", "text");
    expect(await waited).toMatchObject({ agreed: true });
    expect(titles()).toEqual(["a.txt"]);
    expect(world.activity).toMatchObject([{ outcome: "done" }]);
  });

  it("does not end a wait while the delete of an older resource of the path waits for the current file", async () => {
    world.write("a.txt", "old");
    const daemon = await run();
    let refusing = true;
    let arrived = false;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    world.service.fault = ({ operation }) => {
      if (operation === "delete" && refusing)
        return { kind: "answer", status: 422, body: '{"success":false,"message":"not now"}' };
      if (operation !== "create") return undefined;
      arrived = true;
      return { kind: "wait", until: released };
    };
    unlinkSync(join(world.root, "a.txt"));
    await until(() => daemon.status().sources[0]?.deletesRefused === 1);
    world.write("a.txt", "new");
    let isOver = false;
    const waited = wait(daemon, "a.txt").finally(() => (isOver = true));
    await until(() => arrived);
    refusing = false;
    await daemon.retry();
    // The work that the retry starts is done after two more commits: the delete waits for the create.
    await daemon.retry();
    await daemon.retry();
    expect([isOver, world.service.live()]).toMatchObject([false, [{ content: "old" }]]);
    release();
    await waited;
    await until(() => world.service.live().length === 1);
    expect(await wait(daemon, "a.txt")).toMatchObject({ agreed: true });
    expect(world.service.live()).toMatchObject([{ content: "new" }]);
  });

  it("returns inaccessible paths as reasons: below a folder, and above a file", async () => {
    world.write("open/a.txt", "a");
    world.write("shut/inner/b.txt", "b");
    const daemon = await run();
    // An ignore file that is too large to read: what it excludes is unknown, like for an inaccessible folder.
    world.write("shut/inner/.kbsyncignore", Buffer.alloc(2 * 1024 * 1024, 0x23));
    expect(await wait(daemon, "shut")).toMatchObject({
      agreed: false,
      reasons: [{ path: "shut/inner", code: "unreadable" }],
    });
    expect(await wait(daemon, "shut/inner/b.txt")).toMatchObject({
      agreed: false,
      reasons: [{ path: "shut/inner", code: "unreadable" }],
    });
    expect(daemon.status().sources).toMatchObject([{ unreadable: 1, unreadablePaths: ["shut/inner"] }]);
    expect(await wait(daemon, "open")).toMatchObject({ agreed: true });
    unlinkSync(join(world.root, "shut/inner/.kbsyncignore"));
    expect(await wait(daemon, "shut")).toMatchObject({ agreed: true });
  });

  it("does not take a path for done while a pass handles it, whenever it is asked", async () => {
    let ask = (): void => undefined;
    const watch: typeof realWorld.watch = ({ onError }) => {
      // Any report makes all waiting callers check again.
      ask = () => onError(new KbsyncError("a warning", { code: "a_warning" }));
      return Promise.resolve({
        degraded: () => undefined,
        renew: () => undefined,
        close: () => Promise.resolve(),
      });
    };
    world.write("a.txt", "a");
    const daemon = await run({ world: { ...realWorld, watch }, step: () => ask() });
    unlinkSync(join(world.root, "a.txt"));
    expect(await wait(daemon, "a.txt")).toMatchObject({ agreed: true });
    expect(titles()).toEqual([]);
  });
});

/** A world whose watcher reports nothing. */
function deafWorld(): NonNullable<NonNullable<Parameters<World["daemon"]>[0]>["world"]> {
  return {
    ...realWorld,
    watch: ({ onReady }) => {
      setImmediate(onReady);
      return Promise.resolve({
        degraded: () => undefined,
        renew: () => undefined,
        close: () => Promise.resolve(),
      });
    },
  };
}

it("commits a person's approval before answering it", async () => {
  for (let index = 0; index < 10; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const daemon = await run({ settings: { holdDeletesOver: 2, holdDeletesPercent: 10 } });
  for (let index = 0; index < 8; index += 1) unlinkSync(join(world.root, `${index}.txt`));
  await until(() => daemon.status().sources[0]?.held === 8);
  expect(await daemon.approve()).toMatchObject([{ source: world.root, held: 8 }]);
  const codes = new Set(readStatus(world.stateDir, 10)?.troubled.map(({ code }) => code));
  // The pass may have carried out some of them by now.
  expect(codes).not.toContain("held");
  await until(() => titles().length === 2);
});

describe("retry", () => {
  it("asks a service again at once that had asked to wait for a day", async () => {
    const daemon = await run();
    const headers = { "retry-after": "86400" };
    world.service.fault = () => ({ kind: "answer", status: 503, body: "{}", headers });
    world.write("a.txt", "a");
    await until(() => daemon.status().service.kind === "waiting");
    expect(daemon.status().service).toMatchObject({ isAsked: true });
    world.service.fault = () => undefined;
    await daemon.retry();
    await until(() => titles().length === 1);
  });

  it("tries failed files again, and returns how many", async () => {
    const daemon = await run();
    let isWilling = false;
    world.service.fault = ({ operation }) =>
      operation === "create" && !isWilling
        ? { kind: "answer", status: 422, body: '{"success":false,"message":"not today"}' }
        : undefined;
    world.write("a.txt", "a");
    world.write("folder/b.txt", "b");
    world.write("folder/c.txt", "c");
    await until(() => daemon.status().sources[0]?.failed === 3);
    isWilling = true;
    const tried = (files: number): unknown => [
      { source: world.root, failed: files, parked: 0, skipped: 0, deletes: 0 },
    ];
    expect(await daemon.retry(join(world.root, "folder/b.txt"))).toEqual(tried(1));
    await until(() => daemon.status().sources[0]?.failed === 2);
    expect(await daemon.retry(join(world.root, "folder"))).toEqual(tried(1));
    await until(() => daemon.status().sources[0]?.failed === 1);
    expect(await daemon.retry()).toEqual(tried(1));
    await until(() => daemon.status().sources[0]?.failed === 0);
    expect(titles()).toHaveLength(3);
    expect(await daemon.retry()).toEqual(tried(0));
    await expect(daemon.retry("/elsewhere")).rejects.toMatchObject({ code: "outside_sources" });
  });

  it("tries parked files and refused deletes before their time", async () => {
    for (const name of ["a", "b", "c"]) world.write(`${name}.txt`, name);
    const daemon = await run();
    let isWilling = false;
    world.service.fault = ({ operation }) =>
      operation === "delete" && !isWilling
        ? { kind: "answer", status: 400, body: '{"success":false,"message":"never"}' }
        : operation === "create" && !isWilling
          ? { kind: "html" }
          : undefined;
    unlinkSync(join(world.root, "a.txt"));
    await until(() => daemon.status().sources[0]?.deletesRefused === 1);
    isWilling = true;
    expect(await daemon.retry()).toMatchObject([{ failed: 0, deletes: 1 }]);
    await until(() => daemon.status().sources[0]?.deletesRefused === 0);
    expect(titles()).toHaveLength(2);
  });
});

it("releases the state folder when a daemon cannot be opened", async () => {
  const { url, key } = world.service;
  const wrong = { apiUrl: "no address", dbUrl: url, pauthkey: key, identity: "s" };
  const right = { apiUrl: url, dbUrl: url, pauthkey: key, identity: "s" };
  expect(() => world.daemon({ service: wrong })).toThrow("Invalid URL");
  world.write("a.txt", "a");
  await world.sync({ service: right });
  expect(titles()).toEqual(["a.txt"]);
});

it("writes nothing for the status during work", async () => {
  for (let index = 0; index < 200; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const steps: string[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  world.service.fault = ({ operation }) => {
    if (operation !== "create" || (waiting += 1) < 20) return undefined;
    return { kind: "wait", until: released };
  };
  const daemon = world.daemon({ step: (name) => steps.push(name) });
  running.push(daemon.run({ signal: stopping.signal }));
  await until(() => waiting > 20);
  daemon.status();
  const before = steps.filter((name) => name === "commit").length;
  for (let index = 0; index < 1000; index += 1) daemon.status();
  expect(steps.filter((name) => name === "commit").length - before).toBeLessThan(10);
  release();
  await daemon.whenIdle();
});

it("counts waiting files as soon as work is planned, even if the status was read a moment before", async () => {
  for (let index = 0; index < 50; index += 1) world.write(`${index}.txt`, `text ${index}`);
  const gate = Promise.withResolvers<void>();
  world.service.fault = ({ operation }) =>
    operation === "create" ? { kind: "wait", until: gate.promise } : undefined;
  const daemon = world.daemon();
  running.push(daemon.run({ signal: stopping.signal }));
  // Each read of the figures reads the status, too.
  await until(() => daemon.figures().planned);
  const { sources } = daemon.status();
  gate.resolve();
  expect(sources).toMatchObject([{ files: 50, waiting: 50, searchable: 0 }]);
});
