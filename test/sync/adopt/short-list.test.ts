import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readStatus } from "../../../src/sync/operator/status.ts";
import type { FakeOptions, FakeResource, FakeRequest, Fault } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

/** A ledger is lost, and the service's lists silently omit resources. */

let world: World;
const begin = async (options: FakeOptions): Promise<void> => {
  world = await openWorld({ collections: true, ...options });
  for (let n = 1; n <= 6; n += 1) world.write(`${n}.txt`, `some text number${n} of these`);
  await world.sync();
  for (const name of readdirSync(world.stateDir)) {
    if (name.startsWith("ledger.db")) rmSync(join(world.stateDir, name));
  }
};
afterEach(() => world.end());

function listing(resources: readonly FakeResource[]): Fault {
  const shown = resources.map((each) => ({ ...each, metadata: { status: "chunked" } }));
  const data = { resources: shown, created: 0 };
  return { kind: "answer", status: 200, body: JSON.stringify({ success: true, message: "listed", data }) };
}

/** Lists show only this many of the first resources, if `isShort` returns true for the list. */
function cutOff(count: number, isShort: (request: FakeRequest) => boolean = () => true): void {
  world.service.fault = (request) =>
    request.operation === "list" && isShort(request)
      ? listing(world.service.live().slice(0, count))
      : undefined;
}

const status = (): unknown => readStatus(world.stateDir, 0)?.sources;

describe("with a service that can be searched", () => {
  beforeEach(() => begin({ searches: true }));

  it.each([0, 4])(
    "creates nothing again when lists show %i of 6 resources, and continues by itself",
    async (shown) => {
      cutOff(shown);
      await world.sync();
      await world.sync();
      expect(world.service.count("create")).toBe(6);
      expect(status()).toMatchObject([
        { halted: true, holdReason: expect.stringContaining("omits documents") as string },
      ]);
      world.service.fault = () => undefined;
      await world.sync();
      expect(world.service.count("create")).toBe(6);
      expect(status()).toMatchObject([{ halted: false, searchable: 6 }]);
    },
  );

  it("uses the short list when a person agrees", async () => {
    cutOff(4);
    await world.sync();
    await world.offline.approve();
    await world.sync();
    expect(world.service.count("create")).toBe(8);
    expect(status()).toMatchObject([{ halted: false, searchable: 6 }]);
  });

  it("sends new files although lists are short", async () => {
    world.write("7.txt", "another one");
    await world.sync();
    expect(world.service.count("create")).toBe(7);
    expect(status()).toMatchObject([{ halted: false, searchable: 7 }]);
  });

  it("does not wait for a resource that a search still finds and the service reports as deleted", async () => {
    await world.end();
    await begin({ searches: true, reads: true });
    const [gone] = world.service.live();
    if (gone === undefined) throw new Error("no resource");
    cutOff(6, () => false);
    const found = {
      id: "1",
      version: 1,
      score: 1,
      payload: {
        resourceId: gone._id,
        collectionId: gone.collectionId,
        ownerId: gone.ownerId,
        content: gone.content ?? "",
      },
    };
    gone.isDeleted = true;
    world.service.fault = ({ operation }) =>
      operation === "search"
        ? { kind: "answer", status: 200, body: JSON.stringify({ success: true, text: "", results: [found] }) }
        : undefined;
    await world.sync();
    expect(status()).toMatchObject([{ halted: false, searchable: 6 }]);
  });
});

describe("with a service that cannot be searched", () => {
  beforeEach(() => begin({}));

  it("lists again until two successive lists agree", async () => {
    let lists = 0;
    cutOff(3, () => (lists += 1) === 1);
    await world.sync();
    expect(world.service.count("create")).toBe(6);
    expect(status()).toMatchObject([{ halted: false, searchable: 6 }]);
  });

  it("compares each list with the previous one, not with the first", async () => {
    let lists = 0;
    // The first list omits three resources, the second and the third omit one; then the service shows all of them.
    world.service.fault = ({ operation }) => {
      const shown = [3, 5, 5][lists];
      if (operation !== "list") return undefined;
      lists += 1;
      return shown === undefined ? undefined : listing(world.service.live().slice(0, shown));
    };
    await world.sync();
    expect(lists).toBe(3);
  });

  it("requests a list without a limit, in case the service truncates it there", async () => {
    cutOff(5, ({ query }) => query.has("limit"));
    await world.sync();
    expect(world.service.count("create")).toBe(6);
    expect(status()).toMatchObject([{ halted: false, searchable: 6 }]);
  });

  it("holds the source while no two lists agree", async () => {
    let lists = 0;
    world.service.fault = ({ operation }) =>
      operation === "list" ? listing(world.service.live().slice(0, (lists += 1) % 5)) : undefined;
    await world.sync();
    expect(world.service.count("create")).toBe(6);
    expect(status()).toMatchObject([
      { halted: true, holdReason: expect.stringContaining("differ from one moment to the next") as string },
    ]);
  });
});
