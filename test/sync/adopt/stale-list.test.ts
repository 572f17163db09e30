import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { DaemonOptions } from "../../../src/sync/daemon.ts";
import type { FakeOptions, FakeResource, FakeRequest, Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

/** A daemon with a service whose list is stale: it lacks new resources, and shows deleted ones. */

let world: World;
afterEach(() => world.end());

/** Answers a list with these resources, whatever happened to them. */
function listing(resources: readonly FakeResource[]): Fault {
  const shown = resources.map((each) => ({ ...each, isDeleted: false, metadata: { status: "chunked" } }));
  const data = { resources: shown, created: 0 };
  return { kind: "answer", status: 200, body: JSON.stringify({ success: true, message: "listed", data }) };
}

/** Every resource ever made, oldest first. */
const made = (): FakeResource[] => [...world.service.resources.values()];
const live = (): unknown[] => world.service.live().map(({ title, content }) => [title, content]);

/** Throws at a step's nth time, as a kill does, and at all later ones. */
function killAt(step: string, nth = 1): (name: string) => void {
  let count = 0;
  let dead = false;
  return (name) => {
    if (name === step) count += 1;
    dead ||= count >= nth;
    if (dead) throw new Error(`killed at ${step}`);
  };
}

/** One run that is killed at a step. `answer` decides about each request. */
async function killed(
  step: (name: string) => void,
  answer: (request: FakeRequest) => Fault | undefined = () => undefined,
  more: Partial<DaemonOptions> = {},
): Promise<void> {
  world.service.fault = answer;
  await expect(world.sync({ ...more, step })).rejects.toThrow("killed");
  world.service.fault = () => undefined;
}

/**
 * Leaves a create that took effect without an answer, and whose resource a list does not show; then the process is
 * killed.
 */
async function leaveADoubt(): Promise<void> {
  world.write("other.txt", "text of the other");
  await world.sync();
  world.write("a.txt", "text a");
  await killed(killAt("list"), ({ operation }) =>
    operation === "create" ? { kind: "lose-answer" } : undefined,
  );
  // The list is stale: the create is in doubt. The second list is that of the doubts.
  const before = made().slice(0, 1);
  await killed(killAt("list", 2), ({ operation }) => (operation === "list" ? listing(before) : undefined));
  expect(made()).toHaveLength(2);
}

const SERVICES: readonly FakeOptions[] = [{ collections: true }, { collections: true, reads: true }];

describe.each(SERVICES)("with a service of %o", (options) => {
  it("a resource that appears after a restart becomes its file's, and none is deleted", async () => {
    world = await openWorld(options);
    await leaveADoubt();
    await world.sync();
    expect(made().map(({ isDeleted }) => isDeleted)).toEqual([false, false]);
    expect(world.service.count("delete")).toBe(0);
  });

  it("a resource that this ledger deleted is not adopted though a list still shows it", async () => {
    world = await openWorld(options);
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await world.sync();
    rmSync(join(world.root, "a.txt"));
    await world.sync();
    world.write("a.txt", "text a");
    // The create takes effect without an answer, and the process dies.
    await killed(killAt("list"), ({ operation }) =>
      operation === "create" ? { kind: "lose-answer" } : undefined,
    );
    const [deleted, b, again] = made();
    if (deleted === undefined || b === undefined || again === undefined) throw new Error("not three");
    expect([deleted.isDeleted, again.isDeleted]).toEqual([true, false]);
    // As if it had been made a moment ago: its age does not distinguish it from the new one.
    deleted.createdAt = again.createdAt;
    world.service.fault = ({ operation }) => (operation === "list" ? listing([deleted, b]) : undefined);
    await world.sync();
    world.service.fault = () => undefined;
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a"],
      ["b.txt", "text b"],
    ]);
    // The file's resource exists: a change of the file reaches it, and makes no other.
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a, changed"],
      ["b.txt", "text b"],
    ]);
  });

  it("four restarts with stale lists leave the file with one resource", async () => {
    world = await openWorld(options);
    await leaveADoubt();
    const [other, a] = made();
    if (other === undefined || a === undefined) throw new Error("not two");
    // The list shows it now. Whatever is sent is answered too late.
    world.service.fault = ({ operation }) => (operation === "create" ? { kind: "lose-answer" } : undefined);
    await world.sync({ step: killAt("create:answered") }).catch(() => undefined);
    // And is behind once more.
    world.service.fault = ({ operation }) => (operation === "list" ? listing([other, a]) : undefined);
    await world.sync();
    world.service.fault = () => undefined;
    await world.sync();
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a"],
      ["other.txt", "text of the other"],
    ]);
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a, changed"],
      ["other.txt", "text of the other"],
    ]);
  });

  it("a second resource is deleted only after the first was confirmed by its own answer", async () => {
    world = await openWorld(options);
    await leaveADoubt();
    // Not there yet: the file gets another one, and the doubt stays.
    const [other, late] = made();
    if (other === undefined || late === undefined) throw new Error("not two");
    world.service.fault = ({ operation }) => (operation === "list" ? listing([other]) : undefined);
    await world.sync();
    const [, , last] = made();
    if (last === undefined) throw new Error("not three");
    // Somebody deletes the one that the ledger knows, and the list is stale.
    last.isDeleted = true;
    world.service.fault = ({ operation }) =>
      operation === "list" ? listing([other, late, last]) : undefined;
    await world.sync();
    world.service.fault = () => undefined;
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a"],
      ["other.txt", "text of the other"],
    ]);
    world.write("a.txt", "text a, changed");
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a, changed"],
      ["other.txt", "text of the other"],
    ]);
  });

  it("a second resource that appears later is deleted", async () => {
    world = await openWorld(options);
    await leaveADoubt();
    const [other] = made();
    world.service.fault = ({ operation }) =>
      operation === "list" && other !== undefined ? listing([other]) : undefined;
    await world.sync();
    expect(world.service.live()).toHaveLength(3);
    world.service.fault = () => undefined;
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a"],
      ["other.txt", "text of the other"],
    ]);
  });

  it("the second resource of a file that can no longer be sent is deleted", async () => {
    world = await openWorld(options);
    await leaveADoubt();
    const [other] = made();
    world.service.fault = ({ operation }) =>
      operation === "list" && other !== undefined ? listing([other]) : undefined;
    await world.sync();
    expect(world.service.live()).toHaveLength(3);
    // It has no text any more: the file keeps its resource.
    world.write("a.txt", Buffer.from([0, 1, 2, 0, 255, 254, 0]));
    world.service.fault = () => undefined;
    await world.sync();
    await world.sync();
    expect(live()).toEqual([
      ["a.txt", "text a"],
      ["other.txt", "text of the other"],
    ]);
  });

  it("nothing is sent to somebody else's resource when a list shows an old text of ours", async () => {
    world = await openWorld(options);
    world.write("other.txt", "text of the other");
    await world.sync();
    const [before] = made();
    if (before === undefined) throw new Error("none");
    const old = { ...before };
    world.write("other.txt", "text of the other, changed");
    await world.sync();
    world.write("a.txt", "text a");
    // With our title and description, made after our create has left.
    const theirs = (): FakeResource[] => {
      const ours = made()[1];
      return ours === undefined ? [] : [{ ...ours, _id: "e".repeat(24), content: "theirs" }];
    };
    let creates = 0;
    world.service.fault = ({ operation }) => {
      if (operation === "create") return (creates += 1) === 1 ? { kind: "lose-answer" } : undefined;
      return operation === "list" ? listing([old, ...theirs()]) : undefined;
    };
    await world.sync();
    expect(world.service.requests.filter(({ path }) => path.includes("e".repeat(24)))).toEqual([]);
    expect(live()).toContainEqual(["a.txt", "text a"]);
  });
});
