import { rmSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FakeOptions, FakeResource } from "../../fakes/knowledge-service.ts";
import { openWorld, until, type World } from "../daemon/harness.ts";
import { documentsOf, holdOfPass, loseLedger, promptService, writesOfPass } from "./fixture.ts";

let world: World;
/** What a list shows in place of all resources. */
let listed: ((all: readonly FakeResource[]) => readonly FakeResource[]) | undefined;

const open = async (options: FakeOptions = {}): Promise<void> => {
  await world.end();
  world = await openWorld({ listed: () => listedOf(), ...options });
};
const listedOf = (): readonly FakeResource[] => {
  const all = [...world.service.resources.values()];
  return listed === undefined ? all : listed(all);
};
beforeEach(async () => {
  listed = undefined;
  world = await openWorld({ listed: () => listedOf() });
});
afterEach(() => world.end());

const remove = (path: string): void => rmSync(join(world.root, path));
const rename = (from: string, to: string): void => renameSync(join(world.root, from), join(world.root, to));
const idOf = (path: string): string | undefined => documentsOf(world, path)[0]?._id;
const textsOf = (path: string): unknown[] => documentsOf(world, path).map(({ content }) => content);

describe.each<FakeOptions>([{ collections: true }, { collections: true, paged: true, keys: true }, {}])(
  "a lost ledger at a service with %o",
  (options) => {
    /** A service that does not name its collection is probed with one file, of which the older document stays. */
    const probe = options.collections === true ? 0 : 1;
    const writes = (create: number, update: number, deletes: number): Record<string, number> => {
      const all = { create: create + probe, update: update + probe, delete: deletes + probe };
      return Object.fromEntries(Object.entries(all).filter(([, count]) => count > 0));
    };
    beforeEach(() => open(options));

    it("sends nothing of what has not changed", async () => {
      for (let n = 0; n < 12; n += 1) world.write(`${n}.txt`, `text ${n}`);
      await world.sync();
      const before = world.service.live().map(({ _id }) => _id);
      loseLedger(world);
      expect(await writesOfPass(world)).toEqual(writes(0, 0, 0));
      expect(await holdOfPass(world)).toBeNull();
      expect(world.service.live().map(({ _id }) => _id)).toEqual(before);
    });

    it("ends with one document a file, with its id, after a morning's work", async () => {
      for (let n = 0; n < 12; n += 1) world.write(`${n}.txt`, `text ${n}`);
      await world.sync();
      const ids = ["0", "1", "2", "3", "4", "5", "9", "10", "11"].map((n) => idOf(`${n}.txt`));
      loseLedger(world);
      for (const n of [0, 1, 2]) world.write(`${n}.txt`, `another text ${n}`);
      for (const n of [3, 4, 5]) rename(`${n}.txt`, `renamed ${n}.txt`);
      for (const n of [6, 7, 8]) remove(`${n}.txt`);
      world.write("new.txt", "a new one");
      expect(await writesOfPass(world)).toEqual(writes(1, 6, 3));
      const paths = ["0.txt", "1.txt", "2.txt", "renamed 3.txt", "renamed 4.txt", "renamed 5.txt"];
      const rest = ["9.txt", "10.txt", "11.txt"];
      expect([...paths, ...rest].map((path) => documentsOf(world, path).map(({ _id }) => _id))).toEqual(
        ids.map((id) => [id]),
      );
      expect(textsOf("0.txt")).toEqual(["another text 0"]);
      expect(world.service.live()).toHaveLength(10);
      expect(await writesOfPass(world)).toEqual({});
    });

    it("swaps the texts of two files that swapped their names", async () => {
      world.write("a.txt", "of a");
      world.write("b.txt", "of b");
      await world.sync();
      loseLedger(world);
      rename("a.txt", "c.txt");
      rename("b.txt", "a.txt");
      rename("c.txt", "b.txt");
      await world.sync();
      expect([textsOf("a.txt"), textsOf("b.txt")]).toEqual([["of b"], ["of a"]]);
    });

    it("leaves the documents of others as they are, even where a list ignores owner and collection", async () => {
      world.write("a.txt", "of a");
      await world.sync();
      const [own] = world.service.live();
      if (own === undefined) throw new Error("no document");
      const others = [
        { ...own, _id: "f".repeat(24), ownerId: "somebody else" },
        {
          ...own,
          _id: "d".repeat(24),
          ownerId: "somebody else",
          description: "with a damaged marker [kb:aa",
        },
        { ...own, _id: "c".repeat(24), collectionId: "another" },
        { ...own, _id: "e".repeat(24), description: "without a marker" },
      ];
      for (const each of others) world.service.resources.set(each._id, each);
      loseLedger(world);
      remove("a.txt");
      world.write("b.txt", "of b");
      await world.sync();
      for (const each of others) expect(world.service.resources.get(each._id)).toEqual(each);
      expect(textsOf("b.txt")).toEqual(["of b"]);
    });
  },
);

describe("a lost ledger at a service that must first name the collection", () => {
  it.each<[string, () => void, string]>([
    ["renamed", () => rename("a.txt", "b.txt"), "of a"],
    ["edited", () => world.write("b.txt", "of a, edited"), "of a, edited"],
  ])("keeps the id of a file that was %s, and is sent to learn that", async (how, change, text) => {
    const path = how === "renamed" ? "a.txt" : "b.txt";
    world.write(path, "of a");
    await world.sync();
    const before = idOf(path);
    loseLedger(world);
    change();
    await world.sync();
    await world.sync();
    expect(documentsOf(world, "b.txt")).toMatchObject([{ _id: before, content: text }]);
    expect(world.service.live()).toHaveLength(1);
    expect(await writesOfPass(world)).toEqual({});
  });
});

describe("a lost ledger", () => {
  it.each<[string, (text: string) => string]>([
    ["lower-cases", (text) => text.toLowerCase()],
    ["trims", (text) => text.trim()],
    ["escapes HTML in", (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")],
  ])("finds its documents at a service that %s descriptions", async (_what, change) => {
    await open({
      collections: true,
      normalise: (field, text) => (field === "description" ? change(text) : text),
    });
    world.write("a & <b>.txt", "of a");
    world.write("B.txt", "of b");
    await world.sync();
    loseLedger(world);
    await world.sync();
    await world.sync();
    expect(world.service.count("create")).toBe(2);
    expect(await writesOfPass(world)).toEqual({});
  });

  it.each<[string, (text: string) => string]>([
    ["drops", () => ""],
    ["cuts", (text) => text.slice(0, 20)],
  ])("asks before it sends anything to a service that %s descriptions", async (_what, change) => {
    await open({
      collections: true,
      normalise: (field, text) => (field === "description" ? change(text) : text),
    });
    for (const name of ["a.txt", "b.txt", "c.txt"]) world.write(name, `of ${name} and some more words`);
    await world.sync();
    await world.sync();
    expect(world.service.count("create")).toBe(3);
    loseLedger(world);
    expect(await holdOfPass(world)).not.toBeNull();
    expect(world.service.count("create")).toBeLessThanOrEqual(4);
  });

  it("decides nothing by a list that ends early, once it knows a document that the list lacks", async () => {
    for (let n = 0; n < 12; n += 1) world.write(`${n}.txt`, `text ${n}`);
    await world.sync();
    listed = (all) => all.slice(0, 6);
    const daemon = world.daemon({ service: promptService(world) });
    const report = await daemon.audit({ repair: true });
    await daemon.close();
    expect(report).toMatchObject({ findings: [], sources: [{ unjudged: 6, missing: 0 }] });
    expect(await writesOfPass(world)).toEqual({});
  });

  it("takes nothing from a file that was made since a document without a file went", async () => {
    await open({ collections: true });
    for (const name of ["a.txt", "stays.txt"]) world.write(name, `of ${name}`);
    await world.sync();
    loseLedger(world);
    remove("a.txt");
    const daemon = world.daemon({ settings: { settleMs: 5 } });
    const stop = new AbortController();
    const ended = daemon.run({ signal: stop.signal });
    await until(() => textsOf("a.txt").length === 0 && daemon.status().idle);
    world.write("b.txt", "of b");
    await until(() => textsOf("b.txt").length === 1 && daemon.status().idle);
    const id = idOf("b.txt");
    world.write("a.txt", "of a again");
    await until(() => textsOf("a.txt").length === 1 && daemon.status().idle);
    expect([idOf("b.txt"), textsOf("b.txt"), textsOf("a.txt")]).toEqual([id, ["of b"], ["of a again"]]);
    stop.abort();
    await ended;
  });
});
