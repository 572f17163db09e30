import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import type { WatchedSource } from "../../../src/sync/rules/rules.ts";
import { openWorld, until } from "../daemon/harness.ts";

it("a source that settles a lost create does not touch another source's equal create in flight", async () => {
  const world = await openWorld({ collections: true });
  const base = dirname(world.root);
  const at = (name: string): WatchedSource => {
    mkdirSync(join(base, name));
    return { ...world.source({ ownerId: "owner" }), path: join(base, name), absolutePath: join(base, name) };
  };
  const [one, two] = [at("one"), at("two")];
  const licence = "the same words in both";
  writeFileSync(join(one.absolutePath, "LICENSE.txt"), licence);
  // The process dies when its note of the create is on disk and the request has not left.
  const step = (name: string): void => {
    if (name === "create") throw new Error("dies");
  };
  await expect(world.sync({ sources: [one], step })).rejects.toThrow("dies");
  expect(world.service.live()).toEqual([]);

  writeFileSync(join(two.absolutePath, "LICENSE.txt"), licence);
  const listed = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  let lists = 0;
  world.service.fault = ({ operation }) => {
    if (operation === "list" && ++lists === 1) return { kind: "wait", until: listed.promise };
    return operation === "create" ? { kind: "answer-late", until: made.promise } : undefined;
  };
  const daemon = world.daemon({ sources: [one, two] });
  const passed = daemon.syncOnce();
  await until(() => world.service.live().length === 1);
  listed.resolve();
  // Either the first list settles the file, or the list is read once more.
  await until(() => lists > 2 || daemon.status().sources.some(({ searchable }) => searchable > 0));
  made.resolve();
  const { status } = await passed;
  expect(status.sources).toMatchObject([
    { searchable: 1, failed: 0 },
    { searchable: 1, failed: 0 },
  ]);
  expect(world.service.live()).toHaveLength(2);
  await daemon.close();
  await world.end();
});
