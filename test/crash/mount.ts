import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf } from "../../src/lib/failure.ts";

/** A small disk of its own, in memory. */
export interface SmallDisk {
  readonly path: string;
  /** Takes all space that is left. */
  fill(): void;
  /** Takes all inodes that are left. */
  fillInodes(): void;
  /** Gives back what was taken. */
  free(): void;
  /** Gives it another size. */
  grow(sizeKib: number): void;
  setReadonly(readonly: boolean): void;
  unmount(): void;
}

const SLICE = Buffer.alloc(64 * 1024, 0xff);

/** Mounts a tmpfs. Throws where that is not permitted. */
export function mountDisk({ sizeKib, inodes = 1000 }: { sizeKib: number; inodes?: number }): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "kbsync-disk-"));
  mount("-t", "tmpfs", "-o", `size=${sizeKib}k,nr_inodes=${inodes},mode=0755`, "kbsync-test", path);
  const filler = join(path, "filler");
  return {
    path,
    fill: () => {
      const file = openSync(filler, "a");
      // To the last byte: what is left over after whole slices would still take a page or two.
      for (let bytes = SLICE.length; bytes >= 1; bytes = bytes >= 4096 ? bytes / 2 : 0) {
        untilFull(() => writeSync(file, SLICE, 0, bytes));
      }
      closeSync(file);
    },
    fillInodes: () => {
      const folder = `${filler}-inodes`;
      mkdirSync(folder);
      let number = 0;
      untilFull(() => writeFileSync(join(folder, String(number++)), ""));
    },
    free: () => {
      rmSync(filler, { force: true });
      rmSync(`${filler}-inodes`, { recursive: true, force: true });
    },
    grow: (kib) => mount("-o", `remount,size=${kib}k`, path),
    setReadonly: (readonly) => mount("-o", `remount,${readonly ? "ro" : "rw"}`, path),
    unmount: () => {
      // Lazily: a process that was killed may hold a file for a moment yet.
      execFileSync("umount", ["-l", path], { stdio: "pipe" });
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Whether this user may mount anything here. */
export function canMount(): boolean {
  try {
    mountDisk({ sizeKib: 64 }).unmount();
    return true;
  } catch {
    return false;
  }
}

/** Makes an image file with an ext4 of its own in it, made at that second. */
export function makeImage(image: string, bornSeconds: number): void {
  execFileSync("truncate", ["-s", "8M", image], { stdio: "pipe" });
  const env = { ...process.env, E2FSPROGS_FAKE_TIME: String(bornSeconds) };
  execFileSync("mkfs.ext4", ["-q", "-F", image], { stdio: "pipe", env });
}

/** The device is taken by somebody else between two steps, so often at most. */
const LOOP_TRIES = 5;

/** The next free loop device. A container may have no node for it yet. */
export function freeLoop(): string {
  const device = execFileSync("losetup", ["-f"], { encoding: "utf8" }).trim();
  if (!existsSync(device)) execFileSync("mknod", [device, "b", "7", device.replace(/\D+/, "")]);
  return device;
}

/** Runs what takes a free loop device, again while others on this machine are faster. */
export function withFreeLoop(take: (device: string) => void): void {
  for (let tries = 1; ; tries += 1) {
    try {
      take(freeLoop());
      return;
    } catch (error) {
      if (tries === LOOP_TRIES) throw error;
    }
  }
}

/** Mounts an image file. */
export function mountImage(image: string, at: string): void {
  withFreeLoop((device) => mount("-o", `loop=${device}`, image, at));
}

/** Whether images of disks can be made and mounted here: a container may mount memory and have no loop devices. */
export function canMountImages(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-image-"));
  try {
    makeImage(join(folder, "image"), 1_700_000_000);
    mkdirSync(join(folder, "at"));
    mountImage(join(folder, "image"), join(folder, "at"));
    execFileSync("umount", ["-l", join(folder, "at")], { stdio: "pipe" });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function mount(...args: readonly string[]): void {
  execFileSync("mount", args, { stdio: "pipe" });
}

function untilFull(take: () => void): void {
  for (;;) {
    try {
      take();
    } catch (error) {
      if (codeOf(error) === "ENOSPC") return;
      throw error;
    }
  }
}
