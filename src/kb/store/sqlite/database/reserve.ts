import { randomBytes } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Enough for the log of a delete of a text of some megabytes, which overwrites what it frees. */
const RESERVE_BYTES = 4 * 1024 * 1024;
/** A disk smaller than so many times the reserve has none: there it would be the first thing to take away. */
const DISK_TIMES_MIN = 10;
const SLICE_BYTES = 1024 * 1024;

/**
 * Disk space held back for deletes. SQLite writes a delete into its log before any page comes free, so on a full disk
 * nothing could be deleted from a store without it.
 */
export interface Reserve {
  /** Gives the space back to the disk. */
  release(): void;
  /** Takes the space again where there is room for all of it; next to nothing while it is taken. */
  refill(): void;
}

/** Takes the reserve beside a store, in the file `<store>-reserve`. A disk without room for it has none until `refill`. */
export function openReserve(storePath: string): Reserve {
  const path = `${storePath}-reserve`;
  let isTaken = statSync(path, { throwIfNoEntry: false })?.size === RESERVE_BYTES;
  const reserve: Reserve = {
    release: () => {
      isTaken = false;
      remove(path);
    },
    refill: () => {
      if (isTaken) return;
      try {
        if (!hasRoom(dirname(path))) return;
        takeSpace(path);
        isTaken = true;
      } catch {
        // Another program took the room meanwhile, or the disk is read-only. The writes themselves report that.
        remove(path);
      }
    },
  };
  reserve.refill();
  return reserve;
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A disk that cannot be changed any more; the next write says so.
  }
}

function hasRoom(folder: string): boolean {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return bavail * bsize >= RESERVE_BYTES && blocks * bsize >= DISK_TIMES_MIN * RESERVE_BYTES;
}

function takeSpace(path: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    // Random: a file system that compresses, or leaves holes for zeros, would hold nothing back.
    const slice = randomBytes(SLICE_BYTES);
    for (let bytes = 0; bytes < RESERVE_BYTES;) bytes += writeSync(file, slice);
  } finally {
    closeSync(file);
  }
}
