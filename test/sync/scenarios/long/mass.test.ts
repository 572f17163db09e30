import { renameSync, utimesSync, writeFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import {
  folderTexts,
  LONG_PATIENCE_MS,
  openFollowed,
  shell,
  smallFiles,
  type Followed,
} from "../followed.ts";

let followed: Followed;
afterEach(async () => {
  await followed.end();
});

it("500 times a file in five new folders at once: none is missed, nor what changes there later", async () => {
  followed = await openFollowed({ "a.txt": "a" }, { patienceMs: LONG_PATIENCE_MS });
  const { agrees, sent, world } = followed;
  const make =
    "i=0; while [ $i -lt 500 ]; do mkdir -p n$i/b/c/d/e; echo $i > n$i/b/c/d/e/x.txt; i=$((i+1)); done";
  await shell(make, world.root);
  await agrees();
  expect(Object.keys(folderTexts(world.root))).toHaveLength(501);
  expect(sent()).toEqual({ create: 500 });
  await shell("for f in n*; do echo later >> $f/b/c/d/e/x.txt; echo y > $f/b/y.txt; done", world.root);
  await agrees();
  expect(sent()).toEqual({ create: 500, update: 500 });
});

it("a rename of a folder of 1,000 files keeps every id and sends titles alone", async () => {
  followed = await openFollowed(
    { ...smallFiles(1000, "old"), "other.txt": "other" },
    { patienceMs: LONG_PATIENCE_MS },
  );
  const { at, agrees, sent, ids } = followed;
  const before = ids();
  renameSync(at("old"), at("new"));
  await agrees();
  expect(sent()).toEqual({ update: 1000 });
  expect(
    followed.world.service.requests.slice(-1000).every(({ body }) => body?.["content"] === undefined),
  ).toBe(true);
  const renamed = Object.entries(before).map(([path, id]) => [path.replace(/^old\//, "new/"), id]);
  expect(ids()).toEqual(Object.fromEntries(renamed));
});

it("2,000 files that are only touched send nothing", async () => {
  followed = await openFollowed(smallFiles(2000, "d"), { patienceMs: LONG_PATIENCE_MS });
  const { at, sent, daemon } = followed;
  const later = new Date(Date.now() - 5000);
  for (let n = 0; n < 2000; n++) utimesSync(at(`d/${n % 10}/f${n}.txt`), later, later);
  // A new file is checked after them: when it is there, so were they.
  writeFileSync(at("d/0/last.txt"), "last");
  await followed.agrees();
  await daemon.retry();
  await followed.agrees();
  expect(sent()).toEqual({ create: 1 });
});
