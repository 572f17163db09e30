import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { distrustLedger } from "../../../src/sync/ledger/restored.ts";
import type { FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";
import { documentsOf, holdOfPass, promptService, writesOfPass } from "./fixture.ts";

let world: World;
/** What a list shows in place of all resources. */
let listed: (all: readonly FakeResource[]) => readonly FakeResource[];
beforeEach(async () => {
  listed = (all) => all;
  world = await openWorld({
    collections: true,
    listed: () => listed([...world.service.resources.values()]),
  });
  for (let n = 0; n < 8; n += 1) world.write(`${n}.txt`, `text ${n}`);
  await world.sync();
  cpSync(world.stateDir, `${world.stateDir}-backup`, { recursive: true });
});
afterEach(() => world.end());

const textsOf = (path: string): unknown[] => documentsOf(world, path).map(({ content }) => content);
const restore = (): void => {
  rmSync(world.stateDir, { recursive: true });
  renameSync(`${world.stateDir}-backup`, world.stateDir);
};
/** Another day's work, and its pass. */
const work = async (): Promise<void> => {
  world.write("0.txt", "another text");
  renameSync(join(world.root, "1.txt"), join(world.root, "renamed.txt"));
  rmSync(join(world.root, "2.txt"));
  world.write("new.txt", "a new one");
  await world.sync();
};
/** Requests for a document that is gone already, until the service's answer is believed. */
const GONE = 3;
const PATHS = ["0.txt", "renamed.txt", "new.txt", "3.txt", "4.txt", "5.txt", "6.txt", "7.txt"];

describe("a ledger that was restored from a backup", () => {
  it("learns from the service what was sent since, and sends nothing", async () => {
    await work();
    const before = world.service.live().map(({ _id }) => _id);
    restore();
    expect(await writesOfPass(world)).toEqual({ delete: GONE });
    expect(world.service.live().map(({ _id }) => _id)).toEqual(before);
    expect(PATHS.map((path) => textsOf(path).length)).toEqual(PATHS.map(() => 1));
    expect(await writesOfPass(world)).toEqual({});
  });

  it("sends what changed after that, to the documents of the files", async () => {
    await work();
    restore();
    world.write("0.txt", "a third text");
    world.write("new.txt", "a newer one");
    rmSync(join(world.root, "3.txt"));
    expect(await writesOfPass(world)).toEqual({ update: 2, delete: GONE + 1 });
    expect([textsOf("0.txt"), textsOf("new.txt"), textsOf("3.txt")]).toEqual([
      ["a third text"],
      ["a newer one"],
      [],
    ]);
    expect(world.service.live()).toHaveLength(7);
  });

  it("keeps the document with a file's text of two that name the file", async () => {
    renameSync(join(world.root, "0.txt"), join(world.root, "0.pdf"));
    await world.sync();
    world.write("0.txt", "another text");
    await world.sync();
    const [older, newer] = documentsOf(world, "0.txt").map(({ _id }) => _id);
    expect([older, newer]).not.toContain(undefined);
    restore();
    await writesOfPass(world);
    expect(documentsOf(world, "0.txt").map(({ _id }) => _id)).toEqual([newer]);
    expect(textsOf("0.txt")).toEqual(["another text"]);
  });

  it("keeps the document that took the place of one that it knows", async () => {
    world.write("0.txt", "%PDF-1.4 pages 1");
    await world.sync();
    const [now] = documentsOf(world, "0.txt").map(({ _id }) => _id);
    restore();
    expect(await writesOfPass(world)).not.toHaveProperty("create");
    expect(documentsOf(world, "0.txt").map(({ _id }) => _id)).toEqual([now]);
  });

  it("is compared before anything is sent where a person says that it is old", async () => {
    expect(distrustLedger(world.stateDir, Date.now())).toBeUndefined();
    const before = world.service.count("list");
    expect(await writesOfPass(world)).toEqual({});
    expect(world.service.count("list")).toBeGreaterThan(before);
  });

  it("sends nothing while the list lacks a document that the service has", async () => {
    await work();
    restore();
    listed = (all) => all.slice(0, 5);
    world.write("4.txt", "another text");
    const service = promptService(world);
    expect(await holdOfPass(world, { service })).toMatch(/^the service's list lacks \d documents/);
    expect(textsOf("4.txt")).toEqual(["text 4"]);
    listed = (all) => all;
    await world.offline.approve();
    await world.sync({ service });
    expect(PATHS.map((path) => textsOf(path).length)).toEqual(PATHS.map(() => 1));
    expect(textsOf("4.txt")).toEqual(["another text"]);
  });

  it("sends while the list lacks documents once a person approved that", async () => {
    await work();
    restore();
    listed = (all) => all.slice(0, 5);
    world.write("4.txt", "another text");
    world.write("7.txt", "another text");
    const service = promptService(world);
    await world.sync({ service });
    await world.offline.approve();
    expect(await holdOfPass(world, { service })).toBeNull();
    expect(["4.txt", "7.txt"].map((path) => textsOf(path))).toEqual([["another text"], ["another text"]]);
  });
});

describe("a service that was restored from a backup", () => {
  it("gets what it lost, and loses again what was deleted since", async () => {
    const backup = structuredClone([...world.service.resources.values()]);
    await work();
    world.service.resources.clear();
    for (const each of backup) world.service.resources.set(each._id, each);
    const service = promptService(world);
    const daemon = world.daemon({ service });
    await daemon.audit({ repair: true });
    await daemon.syncOnce();
    await daemon.close();
    expect(PATHS.map((path) => textsOf(path))).toEqual([
      ["another text"],
      ["text 1"],
      ["a new one"],
      ...[3, 4, 5, 6, 7].map((n) => [`text ${n}`]),
    ]);
    expect(world.service.live()).toHaveLength(8);
  });
});
