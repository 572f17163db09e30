import { appendFileSync, copyFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { inodeSuspects } from "../../../../src/sync/plan/moves.ts";
import type { KnownFile } from "../../../../src/sync/plan/model.ts";
import { withoutMarker } from "../../../../src/wire/marker.ts";
import { openWorld, type World } from "../harness.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(async () => {
  await world.end();
});
const at = (path: string): string => join(world.root, path);

it("a file that is renamed and edited at once keeps its id", async () => {
  world.write("a.txt", "first");
  world.write("other.txt", "other");
  await world.sync();
  const before = world.service.live().find(({ title }) => title === "a.txt");
  renameSync(at("a.txt"), at("b.txt"));
  appendFileSync(at("b.txt"), " and more");
  const from = world.service.requests.length;
  await world.sync();
  expect(world.service.requests.slice(from).map(({ operation }) => operation)).toEqual(["update"]);
  const after = world.service.live().find(({ title }) => title === "b.txt");
  expect(after).toMatchObject({ _id: before?._id, content: "first and more" });
  expect(world.service.live()).toHaveLength(2);
});

it("a file that is renamed while it is written to keeps its id", async () => {
  world.write("a.txt", "first");
  world.write("other.txt", "other");
  await world.sync();
  const before = world.service.live().find(({ title }) => title === "a.txt");
  renameSync(at("a.txt"), at("b.txt"));
  appendFileSync(at("b.txt"), " and more");
  const from = world.service.requests.length;
  // Longer than it takes to find the file missing under its old name.
  await world.sync({ settings: { settleMs: 1000 } });
  expect(world.service.requests.slice(from).map(({ operation }) => operation)).toEqual(["update"]);
  const after = world.service.live().find(({ title }) => title === "b.txt");
  expect(after).toMatchObject({ _id: before?._id, content: "first and more" });
});

it("a file that was copied and removed within the settle time of one pass keeps its id", async () => {
  world.write("a.txt", "first");
  world.write("other.txt", "other");
  await world.sync();
  const before = world.service.live().find(({ title }) => title === "a.txt");
  copyFileSync(at("a.txt"), at("b.txt"));
  rmSync(at("a.txt"));
  const from = world.service.requests.length;
  await world.sync({ settings: { settleMs: 1000 } });
  expect(world.service.requests.slice(from).map(({ operation }) => operation)).toEqual(["update"]);
  expect(world.service.live().find(({ title }) => title === "b.txt")?._id).toBe(before?._id);
});

it("a file that received the inode of a deleted one gets a resource of its own", async () => {
  // File systems reuse numbers at once: of many files, some get those of others.
  for (let file = 0; file < 20; file++) world.write(`old/${file}.txt`, `old ${file}`);
  for (let file = 0; file < 40; file++) world.write(`${file}.txt`, `other ${file}`);
  await world.sync({ settings: { holdDeletesOver: 1000, holdDeletesPercent: 100 } });
  const before = new Set(world.service.live().map(({ _id }) => _id));
  for (let file = 0; file < 20; file++) rmSync(at(`old/${file}.txt`));
  for (let file = 0; file < 20; file++) writeFileSync(at(`new-${file}.txt`), `something new ${file}`);
  await world.sync({ settings: { holdDeletesOver: 1000, holdDeletesPercent: 100 } });
  const made = world.service.live().filter(({ _id }) => !before.has(_id));
  expect(made).toHaveLength(20);
  expect(world.service.live()).toHaveLength(60);
});

it("a file renamed to the same letters in another composition has its description sent", async () => {
  world.write("\u00E9.md", "# Heading\n\ntext");
  await world.sync();
  renameSync(at("\u00E9.md"), at("e\u0301.md"));
  await world.sync();
  const [resource] = world.service.live();
  expect([resource?.title, withoutMarker(resource?.description ?? "")]).toEqual(["Heading", "e\u0301.md"]);
});

it("no file counts as a moved one where two share the inode", () => {
  const row = (id: number, ino: number): KnownFile => ({
    id,
    path: `gone-${id}`,
    docId: `doc ${id}`,
    state: "agreed",
    sizeBytes: 1,
    mtimeMs: 1,
    ctimeMs: 1,
    ino,
    rulesKey: 1,
  });
  const entry = (path: string, ino: number) => ({ path, sizeBytes: 2, mtimeMs: 2, ctimeMs: 2, ino });
  const candidates = [
    { entry: entry("alone", 1), known: undefined },
    { entry: entry("one of two rows", 2), known: undefined },
    { entry: entry("one of two files", 3), known: undefined },
    { entry: entry("the other", 3), known: undefined },
    { entry: entry("with a row", 5), known: row(50, 5) },
  ];
  const gone = [row(1, 1), row(2, 2), row(22, 2), row(3, 3), row(5, 5)];
  expect(inodeSuspects(candidates, gone).map(({ known, entry: { path } }) => [known.id, path])).toEqual([
    [1, "alone"],
  ]);
});
