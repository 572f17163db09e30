import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FakeOptions, FakeRequest, FakeResource, Fault } from "../../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../../daemon/harness.ts";

/** A service that reports existing resources as missing. */

let world: World;
afterEach(() => world.end());

const GONE: Fault = {
  kind: "answer",
  status: 404,
  body: JSON.stringify({ success: false, message: "no such resource", error: { code: "not_found" } }),
};

/** Answers a list with these resources. */
function listing(resources: readonly FakeResource[]): Fault {
  const data = { resources, created: 0 };
  return { kind: "answer", status: 200, body: JSON.stringify({ success: true, message: "listed", data }) };
}

/** Gives this answer to the first requests of an operation. */
function firstOf(
  operation: FakeRequest["operation"],
  count: number,
): (request: FakeRequest) => Fault | undefined {
  let left = count;
  return (request) => (request.operation === operation && left-- > 0 ? GONE : undefined);
}

const SERVICES: readonly FakeOptions[] = [{ collections: true }, { collections: true, reads: true }];
describe.each(SERVICES)("with a service of %o", (options) => {
  beforeEach(async () => {
    world = await openWorld(options);
    world.write("a.txt", "text a");
    world.write("b.txt", "text b");
    await world.sync();
  });

  it("deletes a resource after a false 404", async () => {
    rmSync(join(world.root, "a.txt"));
    world.service.fault = firstOf("delete", 1);
    await world.sync();
    expect(world.service.live().map(({ title }) => title)).toEqual(["b.txt"]);
  });

  it("leaves one resource per file after repeated false 404s", async () => {
    world.write("a.txt", "text a, changed");
    world.service.fault = ({ operation }) =>
      operation === "update" || operation === "read" ? GONE : undefined;
    await world.sync();
    expect(world.service.live().map(({ content }) => content)).toEqual(["text a, changed", "text b"]);
  });

  it.each(["in the same process", "after a crash"])(
    "keeps a resource that was found by a list %s, while requests by its id do not find it yet",
    async (when) => {
      const before = world.service.count("create");
      let madeMs = Infinity;
      world.service.fault = ({ operation }) => {
        if (operation === "create") {
          madeMs = Date.now();
          return { kind: "lose-answer" };
        }
        const isById = ["read", "update", "delete"].includes(operation);
        return isById && Date.now() < madeMs + 500 ? GONE : undefined;
      };
      const timing = { goneAgainMs: [10, 1000] };
      const step = (): void => {
        if (when === "after a crash" && world.service.count("create") > before) throw new Error("a crash");
      };
      world.write("c.txt", "text c");
      await world.sync({ timing, step }).catch(() => undefined);
      world.write("c.txt", "text c, changed");
      await world.sync({ timing });
      expect(world.service.live().map(({ content }) => content)).toEqual([
        "text a",
        "text b",
        "text c, changed",
      ]);
      expect(world.service.resources.size).toBe(3);
    },
  );

  it("deletes a second resource in the next single pass, while requests by its id do not find it yet", async () => {
    const before = [...world.service.resources.values()];
    let creates = 0;
    let hidesUntilMs = Infinity;
    world.service.fault = ({ operation, path }) => {
      if (operation === "create") {
        creates += 1;
        return creates === 1 ? { kind: "lose-answer" } : undefined;
      }
      if (operation === "list" && creates === 1) return listing(before);
      const second = [...world.service.resources.keys()][before.length];
      if (operation !== "delete" || second === undefined || !path.endsWith(second)) return undefined;
      if (hidesUntilMs === Infinity) hidesUntilMs = Date.now() + 500;
      return Date.now() < hidesUntilMs ? GONE : undefined;
    };
    world.write("c.txt", "text c");
    for (let passes = 0; passes < 2; passes += 1) await world.sync({ timing: { goneAgainMs: [10, 1000] } });
    expect(world.service.resources.size).toBe(4);
    expect(world.service.live().map(({ title }) => title)).toEqual(["a.txt", "b.txt", "c.txt"]);
  });
});
