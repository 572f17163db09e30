import { cpSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { REAL_WORLD } from "../../../src/sync/daemon/options.ts";
import { readMarker } from "../../../src/sync/plan/marker.ts";
import type { FakeOptions, FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";
import { documentsOf, holdOfPass, loseLedger, promptService, writesOfPass } from "./fixture.ts";

let world: World;
/** What a list shows in place of all resources. */
let listed: (all: readonly FakeResource[]) => readonly FakeResource[];

const open = async (options: FakeOptions): Promise<void> => {
  world = await openWorld({ listed: () => listed([...world.service.resources.values()]), ...options });
};
beforeEach(async () => {
  listed = (all) => all;
  await open({ collections: true });
});
afterEach(() => world.end());

const writeAll = (count: number): void => {
  for (let n = 0; n < count; n += 1) world.write(`${n}.txt`, `text ${n}`);
};
const ids = (): string[] => world.service.live().map(({ _id }) => _id);
const writers = (): unknown[] =>
  world.service.live().map(({ description }) => {
    const reading = readMarker(description);
    return reading.kind === "whole" ? reading.marker.writer : undefined;
  });

describe("a second installation", () => {
  const OTHER_MACHINE = { ...REAL_WORLD, machineId: () => "another machine" };

  it("without a ledger holds before its first write, and says how many documents it found", async () => {
    writeAll(3);
    await world.sync();
    rmSync(world.stateDir, { recursive: true });
    expect(await writesOfPass(world)).toEqual({});
    expect(await holdOfPass(world)).toMatch(
      /^another kbsync \([a-z2-7]{8}\) writes 3 documents of this source/,
    );
  });

  it("on another machine with the same path and account, and other files, holds before its first write", async () => {
    writeAll(3);
    await world.sync();
    const before = structuredClone(world.service.live());
    for (let n = 0; n < 3; n += 1) rmSync(join(world.root, `${n}.txt`));
    world.write("0.txt", "of the other machine");
    world.write("other.txt", "of the other machine, too");
    const other = { stateDir: `${world.stateDir}-other`, world: OTHER_MACHINE };
    expect(await writesOfPass(world, other)).toEqual({});
    expect(await holdOfPass(world, other)).toContain("writes 3 documents of this source");
    expect(world.service.live()).toEqual(before);
  });

  it("of a folder that was copied to another disk holds before its first write, with the old one kept", async () => {
    writeAll(3);
    await world.sync();
    const before = structuredClone(world.service.live());
    const root = join(dirname(world.stateDir), "new disk", basename(world.root));
    cpSync(world.root, root, { recursive: true });
    const sources = [{ ...world.source({ path: root }), absolutePath: root }];
    expect(await writesOfPass(world, { sources })).toEqual({});
    expect(await holdOfPass(world, { sources })).toContain("writes 3 documents of this source");
    expect(world.service.live()).toEqual(before);
    const daemon = world.daemon({ sources });
    await daemon.approve();
    await daemon.close();
    expect(await writesOfPass(world, { sources })).toEqual({ update: 3 });
    expect(ids()).toEqual(before.map(({ _id }) => _id));
    expect(await writesOfPass(world, { sources })).toEqual({});
  });

  it("takes the documents over once a person approved it, with their ids", async () => {
    writeAll(3);
    await world.sync();
    const [before, [former]] = [ids(), writers()];
    rmSync(world.stateDir, { recursive: true });
    await world.sync();
    world.write("1.txt", "another text");
    await world.offline.approve();
    await world.sync();
    expect([ids(), world.service.count("create")]).toEqual([before, 3]);
    expect(documentsOf(world, "1.txt")).toMatchObject([{ content: "another text" }]);
    expect(writers()).not.toContain(former);
    expect(await writesOfPass(world)).toEqual({});
  });

  it.each([
    ["on another machine", { world: OTHER_MACHINE }],
    ["in another folder", { stateDir: "copy" }],
  ])(
    "with a copied state folder %s holds before its first write",
    async (_where, { stateDir, ...options }: { stateDir?: string; world?: typeof REAL_WORLD }) => {
      writeAll(3);
      await world.sync();
      const copy = `${world.stateDir}-${stateDir ?? ""}`;
      if (stateDir !== undefined) cpSync(world.stateDir, copy, { recursive: true });
      const more = { ...options, ...(stateDir !== undefined && { stateDir: copy }) };
      world.write("new.txt", "a new one");
      expect(await writesOfPass(world, more)).toEqual({});
      expect(await holdOfPass(world, more)).toContain("this state folder was copied or moved");
    },
  );

  it("that was approved leaves a person's copy with another text alone, and is not held for it again", async () => {
    writeAll(2);
    await world.sync();
    const [own] = documentsOf(world, "1.txt");
    if (own === undefined) throw new Error("no document");
    const copy = { ...own, _id: "f".repeat(24), content: "a person's own words" };
    world.service.resources.set(copy._id, copy);
    rmSync(world.stateDir, { recursive: true });
    await world.sync();
    await world.offline.approve();
    await world.sync();
    const daemon = world.daemon({ service: promptService(world) });
    const report = await daemon.audit({ repair: true });
    await daemon.close();
    expect(report).toMatchObject({
      findings: [{ docId: copy._id, kind: "twice", repaired: false }],
      sources: [{ lost: null }],
    });
    expect(world.service.resources.get(copy._id)).toEqual(copy);
  });

  it("that was approved stops the first one at the next document that both write", async () => {
    writeAll(3);
    await world.sync();
    const more = { stateDir: `${world.stateDir}-copy`, service: promptService(world) };
    cpSync(world.stateDir, more.stateDir, { recursive: true });
    const daemon = world.daemon(more);
    await daemon.syncOnce();
    await daemon.approve();
    await daemon.close();
    world.write("0.txt", "of the second one");
    expect(await writesOfPass(world, more)).toMatchObject({ update: 3 });
    const first = world.daemon({ service: promptService(world) });
    const report = await first.audit({ repair: true });
    await first.close();
    expect(report.sources[0]?.lost).toContain("another kbsync");
    expect(await writesOfPass(world)).toEqual({});
  });
});

describe("a new ledger", () => {
  it("sends one file to a service that has yet to name the collection, and the rest once a list shows it", async () => {
    await world.end();
    await open({});
    writeAll(3);
    listed = () => [];
    expect(await holdOfPass(world)).toContain("does not show the document that was just sent");
    expect(world.service.count("create")).toBe(1);
    listed = (all) => all;
    await world.sync();
    expect([world.service.count("create"), world.service.live().length]).toEqual([3, 3]);
  });

  it("sends nothing where a proxy answered in the place of a service that names the collection", async () => {
    writeAll(3);
    await world.sync();
    loseLedger(world);
    let pages = 2;
    world.service.fault = ({ operation }) =>
      operation === "collections" && (pages -= 1) >= 0 ? { kind: "html" } : undefined;
    expect(await writesOfPass(world)).toEqual({});
    expect(pages).toBeLessThan(0);
  });

  it("sends its only file again to such a service after a restart", async () => {
    await world.end();
    await open({});
    writeAll(1);
    world.service.fault = ({ operation }) =>
      operation === "create"
        ? { kind: "answer", status: 500, body: '{"success":false,"message":"poison"}' }
        : undefined;
    await world.sync();
    expect(world.activity.at(-1)).toMatchObject({ path: "0.txt", outcome: "parked" });
    world.service.fault = () => undefined;
    const daemon = world.daemon();
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => world.service.live().length === 1);
    stop.abort();
    await ended;
    expect(documentsOf(world, "0.txt")).toHaveLength(1);
  });

  it("sends nothing while two lists of its documents differ again and again", async () => {
    writeAll(3);
    await world.sync();
    loseLedger(world);
    let lists = 0;
    listed = (all) => all.slice(0, (lists += 1) % 3);
    expect(await holdOfPass(world)).toContain("differ from one moment to the next");
    listed = (all) => all;
    const before = world.service.requests.length;
    await world.sync();
    expect(world.service.requests.slice(before).map(({ operation }) => operation)).not.toContain("create");
  });

  it("holds where a document's description ends with a damaged marker, and leaves it alone once a person approved that", async () => {
    writeAll(2);
    await world.sync();
    const [damaged] = documentsOf(world, "0.txt");
    if (damaged === undefined) throw new Error("no document");
    damaged.description = damaged.description.slice(0, 30);
    loseLedger(world);
    expect(await holdOfPass(world)).toContain(`the description of ${damaged._id} ends with a damaged marker`);
    await world.offline.approve();
    expect(await writesOfPass(world)).toEqual({ create: 1 });
    expect(world.service.resources.get(damaged._id)).toEqual(damaged);
    expect(await holdOfPass(world)).toBeNull();
  });
});

describe("resources that turn out to be gone", () => {
  const loseResources = (count: number): void => {
    for (const each of world.service.live().slice(0, count)) each.isDeleted = true;
  };

  it("are created again where they are few", async () => {
    writeAll(12);
    await world.sync();
    loseResources(2);
    for (let n = 0; n < 12; n += 1) world.write(`${n}.txt`, `another text ${n}`);
    await world.sync();
    expect([world.service.live().length, world.service.count("create")]).toEqual([12, 14]);
  });

  it("are created again where no list can say how many they are", async () => {
    await world.end();
    await open({ shown: ({ collectionId: _unknown, ...rest }) => rest });
    writeAll(2);
    await world.sync();
    loseResources(1);
    world.write("0.txt", "another text");
    world.write("1.txt", "another text");
    await world.sync();
    expect([world.service.live().length, world.service.count("create")]).toEqual([2, 3]);
  });

  it("hold the source where they are most of all, until a person approves that they are sent again", async () => {
    writeAll(12);
    await world.sync();
    loseResources(10);
    for (let n = 0; n < 12; n += 1) world.write(`${n}.txt`, `another text ${n}`);
    const service = promptService(world);
    expect(await holdOfPass(world, { service, settings: { concurrency: 1 } })).toMatch(
      /the service has lost 7 of 9 resources/,
    );
    expect(world.service.live().length).toBeLessThan(6);
    await world.offline.approve();
    await world.sync({ service });
    await world.sync({ service });
    expect(world.service.live()).toHaveLength(12);
  });
});

describe("a daemon", () => {
  it("goes on by itself when a hold is over", async () => {
    writeAll(2);
    await world.sync();
    loseLedger(world);
    let lists = 0;
    listed = (all) => all.slice(0, (lists += 1) % 2);
    const daemon = world.daemon({ settings: { settleMs: 0 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => daemon.status().sources[0]?.holdReason !== null);
    listed = (all) => all;
    await daemon.approve();
    await until(() => daemon.status().sources[0]?.holdReason === null && daemon.status().idle);
    stop.abort();
    await ended;
    expect(world.service.count("create")).toBe(2);
  });
});
