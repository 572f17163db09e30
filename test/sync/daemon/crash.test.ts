import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Daemon } from "../../../src/sync/daemon.ts";
import type { Fault, FakeOptions } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "./harness.ts";

const PDF = Buffer.from("%PDF-1.4\nsome pages");

/** A folder in agreement, then one change of every kind. */
async function prepare(world: World): Promise<void> {
  for (const name of ["edited", "renamed", "deleted", "kept"]) world.write(`${name}.txt`, `text of ${name}`);
  world.write("replaced.txt", "its kind changes");
  await world.sync();
  world.write("edited.txt", "another text of edited");
  // No update turns a text into a file.
  world.write("replaced.txt", PDF);
  renameSync(join(world.root, "renamed.txt"), join(world.root, "new name.txt"));
  rmSync(join(world.root, "deleted.txt"));
  world.write("created.txt", "a new text");
  world.write("twin of created.txt", "a new text");
  world.write("created.pdf", PDF);
}

const EXPECTED = [
  ["created.pdf", undefined],
  ["created.txt", "a new text"],
  ["edited.txt", "another text of edited"],
  ["kept.txt", "text of kept"],
  ["new name.txt", "text of renamed"],
  ["replaced.txt", undefined],
  ["twin of created.txt", "a new text"],
];

const resourcesOf = (world: World): unknown[] =>
  world.service.live().map(({ title, content }) => [title, content]);

/** Interval between tested effects; the crash suite tests all of them. */
const STRIDE = Number(process.env["KBSYNC_TEST_STRIDE"] ?? 3);

class Crash extends Error {}

/** Crashes at the nth effect and at every later one, like a dead process. */
function crashAt(nth: number, seen: string[]): (name: string) => void {
  let count = 0;
  return (name) => {
    count += 1;
    if (count < nth) seen.push(name);
    else throw new Crash(name);
  };
}

/** Whether the pass, or the last commit when it is closed, crashed. */
async function crashes(daemon: Daemon): Promise<boolean> {
  const worked = async (): Promise<boolean> => {
    await daemon.syncOnce();
    return true;
  };
  const passed = await worked().catch(() => false);
  const closed = await daemon.close().then(
    () => true,
    () => false,
  );
  return !passed || !closed;
}

async function crashAndRestart(options: FakeOptions, nth: number): Promise<boolean> {
  const world = await openWorld(options);
  try {
    await prepare(world);
    const seen: string[] = [];
    const daemon = world.daemon({ step: crashAt(nth, seen) });
    const crashed = await crashes(daemon);
    await world.sync();
    expect(resourcesOf(world), `after a crash behind ${seen.slice(-3).join(", ")}`).toEqual(EXPECTED);
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.slice(before).filter(({ operation }) => operation !== "list")).toEqual([]);
    return crashed;
  } finally {
    await world.end();
  }
}

describe("a crash between any two effects leaves one resource a file", () => {
  // The services differ in the first requests and in the list, so not every step needs all of them.
  it.each([
    { options: { collections: true }, stride: 1 },
    { options: { collections: true, paged: true }, stride: 4 },
    { options: {}, stride: 3 },
  ])(
    "leaves one resource per file after a crash between any two effects, with a service of %o",
    { timeout: 60_000 },
    async ({ options, stride }) => {
      let nth = 1;
      while (await crashAndRestart(options, nth)) nth += stride * STRIDE;
      expect(nth).toBeGreaterThan(15);
    },
  );

  it("leaves one resource after a crash during the very first create, with an unknown collection id", async () => {
    for (let nth = 1; ; nth += 1) {
      const world = await openWorld();
      world.write("a.txt", "text a");
      const daemon = world.daemon({ step: crashAt(nth, []) });
      const crashed = await crashes(daemon);
      await world.sync();
      expect(resourcesOf(world), `crash at effect ${nth}`).toEqual([["a.txt", "text a"]]);
      await world.end();
      if (!crashed) break;
    }
  });
});

describe("an answer that never comes leaves one resource a file", () => {
  const faults: readonly Fault[] = [
    { kind: "lose-request" },
    // The service takes the request and never answers: the daemon's own timeout ends it.
    { kind: "wait", until: new Promise(() => undefined) },
    { kind: "lose-answer" },
    { kind: "cut-answer" },
    { kind: "html" },
    { kind: "answer", status: 500, body: "oops" },
    { kind: "answer", status: 502, body: "<html>bad gateway</html>" },
    {
      kind: "answer",
      status: 429,
      body: '{"success":false,"message":"slow down"}',
      headers: { "retry-after": "0" },
    },
    {
      kind: "answer",
      status: 503,
      body: '{"success":false,"message":"starting"}',
      headers: { "retry-after": "0" },
    },
  ];
  it.concurrent.each(faults)(
    "leaves one resource per file when the first request of each operation meets %o",
    async (fault) => {
      for (const options of [{ collections: true }, {}]) {
        const world = await openWorld(options);
        await prepare(world);
        const met = new Set<string>();
        world.service.fault = ({ operation }) => {
          if (met.has(operation)) return undefined;
          met.add(operation);
          return fault;
        };
        const settings = fault.kind === "wait" ? { requestTimeoutMs: 500 } : {};
        await world.sync({ settings });
        expect(resourcesOf(world)).toEqual(EXPECTED);
        expect(met.has("create") && met.has("update") && met.has("delete") && met.has("upload")).toBe(true);
        const before = world.service.requests.length;
        await world.sync();
        expect(world.service.requests.slice(before).filter(({ operation }) => operation !== "list")).toEqual(
          [],
        );
        await world.end();
      }
    },
  );

  it("finds a resource by the list after a lost answer, without a second request", async () => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "text a");
    world.service.fault = ({ operation }) => (operation === "create" ? { kind: "lose-answer" } : undefined);
    await world.sync();
    // Two lists that agree before the very first create, and one to settle it.
    expect([
      world.service.resources.size,
      world.service.count("create"),
      world.service.count("list"),
    ]).toEqual([1, 1, 3]);
    const [docId] = world.service.resources.keys();
    expect(world.activity).toMatchObject([{ action: "adopt", path: "a.txt", outcome: "done", docId }]);
    await world.end();
  });

  it("leaves one resource per file after several lost answers in a row", async () => {
    const world = await openWorld({ collections: true });
    for (const name of ["a.txt", "b.txt", "c.txt"]) world.write(name, `text ${name}`);
    world.service.fault = ({ operation }) => (operation === "create" ? { kind: "lose-answer" } : undefined);
    await world.sync({ settings: { concurrency: 1 } });
    expect([world.service.resources.size, world.service.count("create")]).toEqual([3, 3]);
    await world.end();
  });

  it("leaves one resource when the answer to a replacement is lost", async () => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "text a");
    await world.sync();
    world.service.fault = ({ operation }) => (operation === "create" ? { kind: "lose-answer" } : undefined);
    await world.sync({ sources: [world.source({ settings: { chunkSize: 500 } })] });
    expect(world.service.live()).toMatchObject([{ title: "a.txt", settings: { chunkSize: 500 } }]);
    expect(world.service.count("create")).toBe(2);
    await world.end();
  });

  it("leaves one resource when the answer with the collection's id is lost", async () => {
    const world = await openWorld();
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    let lost = 0;
    world.service.fault = ({ operation }) =>
      operation === "create" && lost++ < 2 ? { kind: "lose-answer" } : undefined;
    await world.sync();
    expect(resourcesOf(world)).toEqual([
      ["a.txt", "text a"],
      ["b.txt", "text b"],
    ]);
    await world.end();
  });

  it("leaves one resource when the service acts long after the connection ended", async () => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "text a");
    const { promise, resolve } = Promise.withResolvers<void>();
    let late = true;
    world.service.fault = ({ operation }) => {
      if (operation !== "create" || !late) return undefined;
      late = false;
      return { kind: "act-late", until: promise };
    };
    await world.sync();
    expect(resourcesOf(world)).toEqual([["a.txt", "text a"]]);
    resolve();
    await Promise.resolve();
    await new Promise((done) => {
      setImmediate(done);
    });
    expect(world.service.live()).toHaveLength(2);
    // The next pass after lists had time to catch up compares again.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    await world.sync();
    vi.useRealTimers();
    expect(resourcesOf(world)).toEqual([["a.txt", "text a"]]);
    await world.end();
  });

  it("leaves one resource when the file changes while a running daemon settles a lost answer", async () => {
    const world = await openWorld({ collections: true });
    world.write("f.txt", "text f");
    const { url, key } = world.service;
    const daemon = world.daemon({ service: { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs: 100 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.live().length === 1 && daemon.status().idle);
    const late = Promise.withResolvers<void>();
    let created = false;
    let listed = false;
    world.service.fault = ({ operation, body }) => {
      if (operation === "create" && !created && body?.["title"] === "a.txt") {
        created = true;
        return { kind: "act-late", until: late.promise };
      }
      if (operation !== "list" || listed) return undefined;
      listed = true;
      world.write("a.txt", "second");
      // Events arrive in order: this one arrives after the earlier one.
      world.write("z.txt", "seen");
      return { kind: "wait", until: until(() => daemon.status().sources[0]?.waiting === 2) };
    };
    world.write("a.txt", "first");
    await until(() => world.service.live().some(({ content }) => content === "second"));
    late.resolve();
    await until(() => world.service.live().some(({ content }) => content === "first"));
    await until(() => world.service.live().length === 3 && daemon.status().idle);
    expect(resourcesOf(world)).toEqual([
      ["a.txt", "second"],
      ["f.txt", "text f"],
      ["z.txt", "seen"],
    ]);
    stop.abort();
    await ended;
    await world.end();
  });
});

describe("a file that is put back as it was while nobody watched", () => {
  it("sends a reverted file again after an update whose answer was lost in a crash", async () => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "one");
    await world.sync();
    world.write("a.txt", "two");
    const seen: string[] = [];
    const daemon = world.daemon({
      step: (name) => {
        if (seen.includes("update:answered") || name === "update:answered") throw new Crash(name);
        seen.push(name);
      },
    });
    expect(await crashes(daemon)).toBe(true);
    expect(world.service.live()[0]?.content).toBe("two");
    world.write("a.txt", "one");
    await world.sync();
    expect(world.service.live()[0]?.content).toBe("one");
    await world.end();
  });
});

describe("what others have there", () => {
  it("neither adopts nor deletes a foreign resource of equal title and text", async () => {
    const world = await openWorld({ collections: true });
    world.write("a.txt", "text a");
    await world.sync();
    const [ours] = world.service.live();
    if (ours === undefined) throw new Error("nothing was made");
    const foreign = {
      ...ours,
      _id: "f".repeat(24),
      title: "b.txt",
      description: "b.txt",
      content: "text b",
      createdAt: "2020-01-01T00:00:00.000Z",
    };
    world.service.resources.set(foreign._id, foreign);
    world.write("b.txt", "text b");
    let lost = false;
    world.service.fault = ({ operation }) => {
      if (operation !== "create" || lost) return undefined;
      lost = true;
      return { kind: "lose-request" };
    };
    await world.sync();
    expect(world.service.live()).toHaveLength(3);
    rmSync(join(world.root, "b.txt"));
    await world.sync();
    expect(
      world.service
        .live()
        .map(({ _id }) => _id)
        .sort(),
    ).toEqual([ours._id, foreign._id].sort());
    await world.end();
  });
});
