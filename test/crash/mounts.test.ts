import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Daemon } from "../../src/sync/daemon.ts";
import { openWorld, until, type World } from "../sync/daemon/harness.ts";
import { canMountImages, makeImage, mountImage, withFreeLoop } from "./mount.ts";

const mayMount = canMountImages();
const NEEDS_LOOPS = mayMount ? "" : ": skipped, it needs the right to mount images";

/** Files on the disk: few enough that no limit of deletes holds them, so that only the mount can. */
const FILES = 8;

let world: World;
let base = "";
let stop: (() => Promise<void>) | undefined;
let disks = 0;
const mounted: string[] = [];
beforeEach(async () => {
  world = await openWorld();
  base = mkdtempSync(join(tmpdir(), "kbsync-images-"));
  for (let n = 0; n < 40; n++) world.write(`own${n}.md`, `own ${n}`);
});
afterEach(async () => {
  await stop?.();
  stop = undefined;
  for (const path of mounted.splice(0).toReversed()) run("umount", "-l", path);
  // There are few of these devices on a machine, and one that is not given back is taken until it starts again.
  for (const line of execFileSync("losetup", ["-n", "-O", "NAME,BACK-FILE"]).toString().split("\n")) {
    const [name, file] = line.trim().split(/\s+/);
    if (name !== undefined && file?.startsWith(base) === true) run("losetup", "-d", name);
  }
  await world.end();
  rmSync(base, { recursive: true, force: true });
});

function run(command: string, ...facts: readonly string[]): void {
  execFileSync(command, facts, { stdio: "pipe" });
}

/** A disk of its own, as a file with ext4 in it. */
function makeDisk(name: string): string {
  const image = join(base, name);
  // Disks differ by the second in which they were made.
  makeImage(image, 1_700_000_000 + disks++);
  return image;
}

function mount(image: string, at: string): void {
  mkdirSync(at, { recursive: true });
  mountImage(image, at);
  mounted.push(at);
}

function unmount(at: string): void {
  run("umount", "-l", at);
  mounted.splice(mounted.lastIndexOf(at), 1);
}

function fill(at: string, words: string): void {
  for (let n = 0; n < FILES; n++) writeFileSync(join(at, `d${n}.md`), `${words} ${n}`);
}

async function begin(): Promise<Daemon> {
  const daemon = world.daemon();
  const stopping = new AbortController();
  const running = daemon.run({ signal: stopping.signal });
  stop = async () => {
    stopping.abort();
    await running;
  };
  await daemon.whenIdle();
  return daemon;
}

const facts = (daemon: Daemon): string =>
  JSON.stringify([
    daemon.status().sources,
    world.activity.slice(-5).map(({ action, path }) => `${action} ${path}`),
  ]);
const texts = (): (string | undefined)[] => world.service.live().map(({ content }) => content);
const settled = async (daemon: Daemon, condition: () => boolean): Promise<void> =>
  await until(
    () => daemon.status().idle && condition(),
    () => facts(daemon),
    30_000,
  );

describe.skipIf(!mayMount)(`a disk below the source's folder${NEEDS_LOOPS}`, () => {
  let disk = "";
  let image = "";
  beforeEach(() => {
    disk = join(world.root, "disk");
    image = makeDisk("one");
    mount(image, disk);
    fill(disk, "on disk");
  });
  const unreadable = (daemon: Daemon): readonly string[] => daemon.status().sources[0]?.unreadablePaths ?? [];

  it("deletes nothing when it is unmounted, and is watched again when it is back", async () => {
    const daemon = await begin();
    expect(texts()).toHaveLength(40 + FILES);
    unmount(disk);
    await settled(daemon, () => unreadable(daemon).includes("disk"));
    expect(daemon.status().sources[0]?.warnings).toMatchObject([
      { path: "disk", remedy: expect.stringContaining('"disk/**"') as string },
    ]);
    world.write("disk/below.md", "hidden by the disk later");
    world.write("own0.md", "own changed");
    await settled(daemon, () => texts().includes("own changed"));
    expect(texts()).toHaveLength(40 + FILES);
    mount(image, disk);
    await settled(daemon, () => unreadable(daemon).length === 0);
    expect(daemon.status().sources[0]?.warnings).toEqual([]);
    writeFileSync(join(disk, "d0.md"), "changed on disk");
    await settled(daemon, () => texts().includes("changed on disk"));
    expect(world.activity.filter(({ action }) => action === "delete")).toEqual([]);
    expect(texts()).toHaveLength(40 + FILES);
  });

  it("deletes nothing when it was unmounted while no daemon ran, nor when its folder went with it", async () => {
    await world.sync();
    unmount(disk);
    await world.sync();
    rmSync(disk, { recursive: true });
    await world.sync();
    expect(texts()).toHaveLength(40 + FILES);
    mount(image, disk);
    rmSync(join(disk, "d0.md"));
    await world.sync();
    expect(texts()).toHaveLength(40 + FILES - 1);
  });

  it("deletes nothing when another disk is mounted over it, and sends nothing of that", async () => {
    const other = makeDisk("two");
    mount(other, join(base, "at"));
    fill(join(base, "at"), "other");
    for (let n = 0; n < FILES; n++) run("mv", join(base, "at", `d${n}.md`), join(base, "at", `other${n}.md`));
    unmount(join(base, "at"));
    const daemon = await begin();
    mount(other, disk);
    await settled(daemon, () => unreadable(daemon).includes("disk"));
    expect(texts()).toHaveLength(40 + FILES);
    expect(texts().some((text) => text?.startsWith("other"))).toBe(false);
    unmount(disk);
    await settled(daemon, () => unreadable(daemon).length === 0);
    expect(texts()).toHaveLength(40 + FILES);
  });

  it("loses its documents once a rule leaves it out", async () => {
    await world.sync();
    unmount(disk);
    await world.sync();
    expect(texts()).toHaveLength(40 + FILES);
    await world.sync({ sources: [world.source({ exclude: ["disk/**"] })] });
    expect(texts()).toHaveLength(40);
  });
});

describe.skipIf(!mayMount)(`a source that is a disk${NEEDS_LOOPS}`, () => {
  it("a source that is a disk is watched again after it was unmounted and mounted, under another device number too", async () => {
    const image = makeDisk("one");
    mount(image, world.root);
    fill(world.root, "on disk");
    const daemon = await begin();
    expect(texts()).toHaveLength(FILES);
    for (const change of ["first", "second"]) {
      unmount(world.root);
      await until(
        () => daemon.status().sources[0]?.halted === true,
        () => facts(daemon),
        30_000,
      );
      // Another loop device in between has the next mount get another number.
      const filler = makeDisk(`filler ${change}`);
      withFreeLoop((device) => run("losetup", device, filler));
      mount(image, world.root);
      await settled(daemon, () => daemon.status().sources[0]?.halted === false);
      writeFileSync(join(world.root, "d0.md"), change);
      await settled(daemon, () => texts().includes(change));
    }
    expect(world.activity.filter(({ action }) => action === "delete")).toEqual([]);
  });

  it("halts when a disk is mounted over its folder, and goes on when that is gone", async () => {
    const daemon = await begin();
    world.write("own1.md", "watched");
    await settled(daemon, () => texts().includes("watched"));
    mount(makeDisk("one"), world.root);
    await until(
      () => daemon.status().sources[0]?.halted === true,
      () => facts(daemon),
      30_000,
    );
    expect(texts()).toHaveLength(40);
    unmount(world.root);
    await settled(daemon, () => daemon.status().sources[0]?.halted === false);
    world.write("own0.md", "seen again");
    await settled(daemon, () => texts().includes("seen again"));
  });
});
