import { randomBytes } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Enough for the log of the delete of a text of some megabytes, which overwrites the pages that it frees. */
const RESERVE_BYTES = 4 * 1024 * 1024;
/** Space that a new reserve leaves free: the log of a write of some megabytes, so that what deletes freed can be used. */
const FREE_BYTES_MIN = 1024 * 1024;
/** Minimum size of the disk in reserves. On a smaller disk the reserve would be the first thing to remove. */
const DISK_TIMES_MIN = 10;
const SLICE_BYTES = 1024 * 1024;

/**
 * Disk space reserved for deletes. SQLite writes a delete into its log before it frees any page, so on a full disk nothing
 * could be deleted without it.
 */
export interface Reserve {
  /** Frees the space on the disk. */
  release(): void;
  /** Allocates the space again if the disk has all of it. Costs almost nothing while it is allocated. */
  refill(): void;
}

/** Allocates the reserve of a store, in the file `<store>-reserve`. On a disk without space for it, `refill` tries again. */
export function openReserve(storePath: string): Reserve {
  const path = `${storePath}-reserve`;
  let isAllocated = statSync(path, { throwIfNoEntry: false })?.size === RESERVE_BYTES;
  const reserve: Reserve = {
    release: () => {
      isAllocated = false;
      remove(path);
    },
    refill: () => {
      if (isAllocated) return;
      try {
        if (!hasSpace(dirname(path))) return;
        allocate(path);
        isAllocated = true;
      } catch {
        // Another program used the space, or the disk is read-only. The writes report that.
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
    // The disk is read-only; the next write reports it.
  }
}

function hasSpace(folder: string): boolean {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return bavail * bsize >= RESERVE_BYTES + FREE_BYTES_MIN && blocks * bsize >= DISK_TIMES_MIN * RESERVE_BYTES;
}

function allocate(path: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    // Random: a file system that compresses, or stores zeros as holes, would allocate nothing.
    const slice = randomBytes(SLICE_BYTES);
    for (let bytes = 0; bytes < RESERVE_BYTES;) bytes += writeSync(file, slice);
  } finally {
    closeSync(file);
  }
}
