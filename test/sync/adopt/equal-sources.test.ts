import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import type { WatchedSource } from "../../../src/sync/rules/rules.ts";
import type { FakeOptions } from "../../fakes/knowledge-service.ts";
import { openWorld, type World } from "../daemon/harness.ts";

const SERVICES: readonly FakeOptions[] = [{ collections: true }, {}];

/** Makes two folders, `one` and `two`, with the files that `fill` writes. Returns them as sources of one owner. */
function twoSources(
  world: World,
  fill: (folder: string, name: string) => void = () => undefined,
): WatchedSource[] {
  return ["one", "two"].map((name) => {
    const absolutePath = join(dirname(world.root), name);
    mkdirSync(absolutePath);
    fill(absolutePath, name);
    return Object.assign(world.source({ ownerId: "owner" }), { path: absolutePath, absolutePath });
  });
}

it.each(SERVICES)(
  "two sources of one owner with equal files find every resource again after the ledger is lost, with a service of %o",
  async (options) => {
    const world = await openWorld(options);
    const sources = twoSources(world, (folder) => {
      for (let file = 0; file < 6; file += 1)
        writeFileSync(join(folder, `${file}.txt`), `text of file ${file}`);
    });
    await world.sync({ sources });
    expect(world.service.live()).toHaveLength(12);
    const before = world.service.live().map(({ _id }) => _id);

    rmSync(world.stateDir, { recursive: true });
    await world.sync({ sources });
    // A bare service returns a collection's id only in the answer to a create, which is then deleted.
    expect(
      world.service
        .live()
        .map(({ _id }) => _id)
        .toSorted(),
    ).toEqual(before.toSorted());
    await world.end();
  },
);

it.each(SERVICES)(
  "a new file does not take over the resource of another source's file of that name, with a service of %o",
  async (options) => {
    const world = await openWorld(options);
    const sources = twoSources(world, (folder, name) =>
      writeFileSync(join(folder, `${name}.txt`), `text of ${name}`),
    );
    const [one = "", two = ""] = sources.map(({ absolutePath }) => absolutePath);
    writeFileSync(join(two, "both.txt"), "text of two");
    await world.sync({ sources });
    const id = world.service.live().find(({ description }) => description === "both.txt")?._id;
    expect(id).toBeDefined();

    rmSync(world.stateDir, { recursive: true });
    writeFileSync(join(one, "both.txt"), "another text");
    await world.sync({ sources });
    expect(world.service.live()).toHaveLength(4);
    expect(world.service.live().find(({ _id }) => _id === id)?.content).toBe("text of two");
    await world.end();
  },
);

it("a create in doubt since a backup deletes no resource of a source that the backup does not know and whose folder is away", async () => {
  const world = await openWorld({ collections: true, reads: true });
  const base = dirname(world.root);
  const sources = twoSources(world);
  const [one = "", two = ""] = sources.map(({ absolutePath }) => absolutePath);
  const idsOf = (): string[] => world.service.live().map(({ _id }) => _id);

  // Its first attempt never arrived: its create stays in doubt for an hour.
  writeFileSync(join(two, "x.txt"), "text");
  let creates = 0;
  world.service.fault = ({ operation }) =>
    operation === "create" && (creates += 1) === 1 ? { kind: "lose-request" } : undefined;
  await world.sync({ sources });
  expect(idsOf()).toHaveLength(1);
  const backup = join(base, "backup");
  cpSync(world.stateDir, backup, { recursive: true });
  writeFileSync(join(one, "x.txt"), "text");
  await world.sync({ sources });
  const before = idsOf();
  expect(before).toHaveLength(2);

  for (const name of ["ledger.db", "ledger.db-wal", "ledger.db-shm"])
    rmSync(join(world.stateDir, name), { force: true });
  cpSync(join(backup, "ledger.db"), join(world.stateDir, "ledger.db"));
  renameSync(one, join(base, "away"));
  await world.sync({ sources });
  expect(idsOf()).toEqual(before);
  await world.end();
});
