import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { readStatus } from "../../../src/sync/operator/status.ts";
import type { FakeOptions, FakeResource, Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

/** A ledger is lost, and the lists by which its source is adopted are stale or short without any sign of it. */

let world: World;
afterEach(() => {
  vi.useRealTimers();
  return world.end();
});

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const PDF = Buffer.from("%PDF-1.4 one page of it");

/** Three files are in agreement, and the ledger is lost. Returns their resources. */
async function begin(options: FakeOptions): Promise<readonly FakeResource[]> {
  world = await openWorld({ collections: true, ...options });
  world.write("a.txt", "text a");
  world.write("b.txt", "text b");
  world.write("c.pdf", PDF);
  await world.sync();
  loseLedger();
  return world.service.live();
}

function loseLedger(): void {
  for (const name of readdirSync(world.stateDir)) {
    if (name.startsWith("ledger.db")) rmSync(join(world.stateDir, name));
  }
}

/** Both lists of the adoption show these resources; later ones are true. */
function adoptBy(shown: () => readonly FakeResource[]): void {
  let lists = 0;
  world.service.fault = ({ operation }) => {
    if (operation !== "list") return undefined;
    lists += 1;
    return lists <= 2 ? listing(shown()) : undefined;
  };
}

function listing(resources: readonly FakeResource[]): Fault {
  const shown = resources.map((each) => ({ metadata: { status: "chunked" }, ...each, isDeleted: false }));
  const data = { resources: shown, created: 0 };
  return { kind: "answer", status: 200, body: JSON.stringify({ success: true, message: "listed", data }) };
}

/** Runs passes with a service whose lists catch up within `listLagMs`, as many as the comparisons after an adoption. */
async function sync(listLagMs = 1): Promise<void> {
  const { url, key } = world.service;
  const service = { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs };
  for (let passes = 0; passes < 4; passes += 1) await world.sync({ service });
}

const idsOf = (resources: readonly FakeResource[]): string[] => resources.map(({ _id }) => _id).toSorted();
const agreement = (): unknown => readStatus(world.stateDir, 0)?.sources;

describe.each([{}, { reads: true }])("with a service of %o", (options) => {
  it("files get back the resources that no list showed, and those made since are deleted", async () => {
    const before = await begin(options);
    adoptBy(() => []);
    await sync();
    expect(world.service.count("create")).toBe(6);
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    expect(agreement()).toMatchObject([{ halted: false, searchable: 3 }]);
    // They are the files' own: a change reaches them.
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
  });

  it.each([
    { when: "from before the ledger was lost", updatedAt: "2020-01-02T00:00:00.000Z" },
    { when: "from after the lists came", updatedAt: new Date(Date.now() + HOUR_MS).toISOString() },
  ])(
    "a file gets back the resource that the lists showed as it was before an update: $when",
    async ({ updatedAt }) => {
      const before = await begin(options);
      const [a] = before;
      if (a === undefined) throw new Error("no resource");
      const createdAt = "2020-01-01T00:00:00.000Z";
      Object.assign(a, { createdAt, updatedAt });
      const stale = {
        ...a,
        title: "former.txt",
        description: "former",
        content: "former",
        updatedAt: createdAt,
      };
      adoptBy(() => [stale, ...before.slice(1)]);
      await sync();
      expect(idsOf(world.service.live())).toEqual(idsOf(before));
      expect(agreement()).toMatchObject([{ halted: false, searchable: 3 }]);
    },
  );

  it("a file whose resource was deleted, and still listed, gets another one", async () => {
    const [a] = await begin(options);
    if (a === undefined) throw new Error("no resource");
    const shown = world.service.live();
    a.isDeleted = true;
    adoptBy(() => shown);
    await sync();
    expect(
      world.service
        .live()
        .map(({ title }) => title)
        .toSorted(),
    ).toEqual(["a.txt", "b.txt", "c.pdf"]);
    expect(agreement()).toMatchObject([{ searchable: 3 }]);
  });

  it("a file takes its resource, and not an equal older one that is listed though it is deleted", async () => {
    const before = await begin(options);
    const [a] = before;
    if (a === undefined) throw new Error("no resource");
    const ghost = { ...a, createdAt: "2020-01-01T00:00:00.000Z", isDeleted: true };
    const ghosts = [
      { ...ghost, _id: "1".repeat(24) },
      { ...ghost, _id: "2".repeat(24) },
    ];
    adoptBy(() => [...ghosts, ...before]);
    await sync();
    expect(world.service.count("create")).toBe(3);
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    // It is the file's own: a change reaches it.
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
  });

  it("a file gets nothing back that is listed though it is deleted", async () => {
    const before = await begin(options);
    for (const each of before) each.isDeleted = true;
    let lists = 0;
    world.service.fault = ({ operation }) => {
      if (operation !== "list") return undefined;
      lists += 1;
      return listing(lists <= 2 ? [] : [...before, ...world.service.live()]);
    };
    await sync();
    expect(world.service.live()).toHaveLength(3);
    expect(world.service.count("delete")).toBe(0);
  });

  it("a file keeps the resource just made for it when the older one that is listed is deleted", async () => {
    // Without the collections' ids the first create leaves before any list.
    const [a] = await begin({ ...options, collections: false });
    if (a === undefined) throw new Error("no resource");
    for (const path of ["b.txt", "c.pdf"]) rmSync(join(world.root, path));
    a.isDeleted = true;
    world.service.fault = ({ operation }) =>
      operation === "list" ? listing([a, ...world.service.live()]) : undefined;
    await world.sync();
    expect(world.service.live().filter(({ title }) => title === "a.txt")).toHaveLength(1);
    expect(world.service.count("delete")).toBe(0);
  });

  it("a file gets back the older resource though it could not be read when the lists came", async () => {
    // Without the collections' ids the first create leaves before any list: that of the shortest file.
    world = await openWorld({ ...options, collections: false });
    world.write("part/a.txt", "a");
    world.write("b.txt", "text b");
    await world.sync();
    const before = world.service.live();
    loseLedger();
    // An ignore file of this size is not read, and nothing below it is checked.
    const ignoreFile = "part/.kbsyncignore";
    world.service.fault = ({ operation }) => {
      if (operation === "create") world.write(ignoreFile, "#".repeat(2 * 1024 * 1024));
      return undefined;
    };
    await world.sync();
    expect(world.service.live()).toHaveLength(3);
    world.service.fault = () => undefined;
    rmSync(join(world.root, ignoreFile));
    await sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    expect(agreement()).toMatchObject([{ halted: false, searchable: 2 }]);
  });

  it("a file that fails before its older resource is found gets that one back, and still counts as failed", async () => {
    const before = await begin(options);
    adoptBy(() => []);
    const { url, key } = world.service;
    await world.sync({ service: { apiUrl: url, dbUrl: url, pauthkey: key, listLagMs: HOUR_MS } });
    expect(world.service.live()).toHaveLength(6);
    world.write("a.txt", Buffer.from([0, 1, 2, 0, 255]));
    await sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    expect(agreement()).toMatchObject([{ searchable: 2, failed: 1 }]);
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    expect(agreement()).toMatchObject([{ searchable: 3 }]);
  });

  it("a file gets back the older resource though the service answers for it only later", async () => {
    const [a] = await begin({ ...options, collections: false });
    if (a === undefined) throw new Error("no resource");
    for (const path of ["b.txt", "c.pdf"]) rmSync(join(world.root, path));
    world.write("a.txt", "text a, changed");
    let isAnswering = false;
    world.service.fault = ({ operation, docId }) =>
      docId === a._id && !isAnswering && (operation === "read" || operation === "update")
        ? { kind: "answer", status: 500, body: "{}" }
        : undefined;
    await world.sync();
    expect(agreement()).toMatchObject([{ holdReason: expect.stringContaining("does not answer") }]);
    expect(world.service.count("delete")).toBe(0);
    isAnswering = true;
    await sync();
    expect(world.service.live().filter(({ title }) => title === "a.txt")).toMatchObject([
      { _id: a._id, content: "text a, changed" },
    ]);
    expect(agreement()).toMatchObject([{ halted: false, searchable: 1 }]);
  });

  it("a file gets back the resource that the service was still working on when the first create left", async () => {
    // With a skew the service reports the time by the clock that is set below.
    const [a] = await begin({ ...options, collections: false, skewMs: 1 });
    if (a === undefined) throw new Error("no resource");
    for (const path of ["b.txt", "c.pdf"]) rmSync(join(world.root, path));
    for (const each of world.service.live()) if (each !== a) each.isDeleted = true;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HOUR_MS });
    let creates = 0;
    const atWork = { ...a, content: "", metadata: { status: "queued" } };
    world.service.fault = ({ operation }) => {
      if (operation === "create") creates += 1;
      if (operation === "create" && creates === 1) return { kind: "lose-answer" };
      // The adoption comes minutes after the first create.
      if (operation === "create") vi.setSystemTime(Date.now() + 5 * MINUTE_MS);
      if (operation !== "list" || world.service.count("delete") > 0) return undefined;
      return listing(world.service.live().map((each) => (each === a ? atWork : each)));
    };
    await sync();
    // It is older than both creates, so none of them made it.
    expect([creates, idsOf(world.service.live())]).toEqual([2, [a._id]]);
    // No create can arrive any more.
    vi.setSystemTime(Date.now() + 2 * HOUR_MS);
    await sync();
    expect(idsOf(world.service.live())).toEqual([a._id]);
  });

  it("a file that was empty when its ledger was lost gets its resource back with its text", async () => {
    const before = await begin(options);
    world.write("a.txt", "");
    await world.sync();
    world.write("a.txt", "text a");
    await world.sync();
    expect(idsOf(world.service.live())).toEqual(idsOf(before));
    expect(world.service.count("create")).toBe(3);
  });

  it("second resources of a create that was sent again go although an empty file has a resource", async () => {
    // Without the collections' ids the first create leaves before any list.
    await begin({ ...options, collections: false });
    for (const path of ["b.txt", "c.pdf"]) rmSync(join(world.root, path));
    world.write("a.txt", "");
    world.write("d.txt", "text d");
    const before = world.service.live();
    let creates = 0;
    world.service.fault = ({ operation }) => {
      if (operation !== "create") return undefined;
      creates += 1;
      return creates <= 2 ? { kind: "lose-answer" } : undefined;
    };
    await sync();
    expect(creates).toBe(3);
    expect(world.service.live().map(({ title }) => title)).toEqual([
      ...before.map(({ title }) => title),
      "d.txt",
    ]);
  });

  it("an equal resource that the adoption saw and left to others stays theirs", async () => {
    const before = await begin(options);
    const [a] = before;
    if (a === undefined) throw new Error("no resource");
    const theirs = { ...a, _id: "e".repeat(24), createdAt: "2020-01-01T00:00:00.000Z" };
    world.service.resources.set(theirs._id, theirs);
    rmSync(join(world.root, "a.txt"));
    adoptBy(() => world.service.live());
    await world.sync();
    world.write("a.txt", "text a");
    await sync();
    expect(world.service.live().map(({ _id }) => _id)).toContain(theirs._id);
    expect(
      world.service.requests.filter(({ path }) => path.includes(theirs._id) || path.includes(a._id)),
    ).toEqual([]);
  });
});

it("a service whose lists never lag is not compared again", async () => {
  await begin({});
  await sync(0);
  expect(world.service.count("list")).toBe(4);
});
