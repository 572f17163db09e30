import { existsSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { SINGLE_DELETES, until } from "../daemon/harness.ts";
import { openFollowed, shell, smallFiles, folderTexts, type Followed } from "./followed.ts";

let followed: Followed;
afterEach(async () => {
  await followed.end();
});

describe("folders that come fast", () => {
  it("a folder removed and made again 50 times: files that come later are seen, and nothing is left over", async () => {
    followed = await openFollowed(
      { "keep.txt": "keep", ...smallFiles(20, "d") },
      { settings: { holdDeletesPercent: 100 }, timing: SINGLE_DELETES },
    );
    const { agrees, world } = followed;
    // Names of their own: a file that is written to all the time is read once a minute.
    await shell(
      "i=0; while [ $i -lt 50 ]; do rm -rf d; mkdir -p d/1; echo $i > d/1/x$i.txt; i=$((i+1)); done",
      world.root,
    );
    await agrees();
    for (let n = 0; n < 20; n++) world.write(`d/1/later${n}.txt`, `later ${n}`);
    world.write("d/2/new.txt", "new");
    await agrees();
    expect(Object.keys(folderTexts(world.root))).toHaveLength(23);
  });
});

describe("renames", () => {
  it("renames in a ring, of folders among each other, and by case alone keep every id", async () => {
    // Longer than a busy machine takes to report them all: each name that is seen in between costs an update.
    followed = await openFollowed(
      { "a.txt": "1", "b.txt": "2", "c.txt": "3", ...smallFiles(20, "p"), ...smallFiles(20, "q") },
      { settleMs: 500 },
    );
    const { at, agrees, sent, ids } = followed;
    const before = ids();
    renameSync(at("a.txt"), at("t"));
    renameSync(at("c.txt"), at("a.txt"));
    renameSync(at("b.txt"), at("c.txt"));
    renameSync(at("t"), at("b.txt"));
    renameSync(at("p"), at("t"));
    renameSync(at("q"), at("p"));
    renameSync(at("t"), at("q"));
    await agrees();
    const names: Record<string, string> = { "a.txt": "b.txt", "b.txt": "c.txt", "c.txt": "a.txt" };
    const swapped = (path: string): string =>
      names[path] ?? path.replace(/^([pq])/, (letter) => (letter === "p" ? "q" : "p"));
    const wanted = Object.fromEntries(Object.entries(before).map(([path, id]) => [swapped(path), id]));
    expect(ids()).toEqual(wanted);
    expect(sent()).toEqual({ update: 43 });
    renameSync(at("p"), at("P"));
    await agrees();
    expect(sent()).toEqual({ update: 20 });
    expect(Object.values(ids()).toSorted()).toEqual(Object.values(before).toSorted());
  });
});

describe("copies", () => {
  it.each([
    ["copied as a whole, then removed", "cp -r old new && rm -r old"],
    [
      "moved file by file, as between file systems",
      "cp -r --attributes-only old new; for f in old/*/*; do cp $f new/${f#old/}; rm $f; done",
    ],
  ])("copies of a folder %s keep every id", async (_, script) => {
    // Longer than it takes on any machine: a copy that is sent before its original goes is a document of its own.
    followed = await openFollowed(
      { ...smallFiles(40, "old"), ...smallFiles(60, "other") },
      { settleMs: 2000 },
    );
    const { agrees, ids, sent } = followed;
    const before = ids();
    await shell(script, followed.world.root);
    await agrees();
    const renamed = Object.entries(before).map(([path, id]) => [path.replace("old/", "new/"), id]);
    expect(ids()).toEqual(Object.fromEntries(renamed));
    expect(sent()).toEqual({ update: 40 });
  });
});

describe("equal files", () => {
  it("equal files are resources of their own: when one goes the other stays", async () => {
    followed = await openFollowed(
      { "a.txt": "same", "b.txt": "same", "sub/c.txt": "same" },
      { timing: SINGLE_DELETES },
    );
    const { at, agrees, sent, ids } = followed;
    const { "b.txt": b, "sub/c.txt": c } = ids();
    unlinkSync(at("a.txt"));
    await agrees();
    expect(sent()).toEqual({ delete: 1 });
    expect(ids()).toEqual({ "b.txt": b, "sub/c.txt": c });
  });
});

describe("the source's own folder", () => {
  const halted = (): boolean => followed.daemon.status().sources[0]?.halted === true;
  const sources = (): unknown => followed.daemon.status().sources[0];
  /** How many deletes a person is asked about. */
  const awaiting = (): number | undefined => followed.daemon.status().sources[0]?.approval?.held;
  const missing = (): boolean =>
    followed.daemon.status().sources[0]?.holdReason?.includes("missing") === true;

  it("a source removed and made again with another file in it deletes nothing until a person agrees", async () => {
    followed = await openFollowed(smallFiles(60, "d"));
    const { world, sent, agrees, daemon } = followed;
    rmSync(world.root, { recursive: true });
    await until(halted, () => JSON.stringify(sources()));
    expect(sent()).toEqual({});
    // The new folder may be given the old one's number; then it is the mass of the deletes that is held.
    mkdirSync(world.root);
    world.write("new.txt", "new");
    await until(
      () => daemon.status().idle && awaiting() === 60 && !missing(),
      () => JSON.stringify(sources()),
      20_000,
    );
    expect(sent().delete).toBeUndefined();
    await daemon.approve();
    await agrees(() => ({ "new.txt": "new" }));
    world.write("later.txt", "later");
    await agrees(() => ({ "new.txt": "new", "later.txt": "later" }));
  });

  it("a source renamed away and back sends nothing, and is watched again", async () => {
    followed = await openFollowed(smallFiles(60, "d"));
    const { world, sent, agrees } = followed;
    renameSync(world.root, `${world.root}-away`);
    await until(halted, () => JSON.stringify(sources()));
    renameSync(`${world.root}-away`, world.root);
    await until(
      () => !halted(),
      () => JSON.stringify(sources()),
      15_000,
    );
    await agrees();
    expect(sent()).toEqual({});
    let nextMs = 0;
    await until(
      () => {
        // Again and again, for nobody knows when the watch is whole, yet with rests in between.
        if (performance.now() > nextMs) {
          world.write("d/0/f0.txt", `seen at ${performance.now()}`);
          nextMs = performance.now() + 500;
        }
        return followed.world.service.count("update") > 0;
      },
      () => `a write to be seen: ${JSON.stringify(sources())}`,
    );
    await agrees();
    expect(sources()).toMatchObject({ held: 0, holdReason: null });
  });

  it("a source replaced by another folder in a blink holds every delete until the first is back", async () => {
    followed = await openFollowed(smallFiles(60, "d"));
    const { world, sent, agrees, ids } = followed;
    const before = ids();
    mkdirSync(`${world.root}-other`);
    writeFileSync(`${world.root}-other/foreign.txt`, "foreign");
    renameSync(world.root, `${world.root}-away`);
    renameSync(`${world.root}-other`, world.root);
    await until(() => awaiting() === 60);
    expect(sent().delete).toBeUndefined();
    renameSync(world.root, `${world.root}-other`);
    renameSync(`${world.root}-away`, world.root);
    await until(
      () => awaiting() === undefined,
      () => JSON.stringify(sources()),
      20_000,
    );
    await agrees();
    expect(ids()).toEqual(before);
    expect(sent().update).toBeUndefined();
    expect(existsSync(`${world.root}-other`)).toBe(true);
    rmSync(`${world.root}-other`, { recursive: true });
  });
});
