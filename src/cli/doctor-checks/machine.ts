import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { Finding } from "../../lib/finding.ts";
import { remoteFileSystem } from "../../sync/watch/network.ts";
import type { Check, Checked } from "./check.ts";

/** Free space below which the next large document may not fit. */
const FREE_BYTES_LOW = 1024 ** 3;
/** Free space below which hardly anything can be written. */
const FREE_BYTES_MIN = 64 * 1024 ** 2;
/** Fewest free inodes: each upload is a file, and SQLite creates temporary ones. */
const FREE_FILES_MIN = 1000;

/** Free space as statfs(2) reports it. */
export interface Room {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeFiles: number;
  /** 0 on a file system without this limit. */
  readonly totalFiles: number;
}

/** Reports the version of Node.js and the platform. */
export const nodeCheck: Check = {
  name: "node",
  run: () => {
    const { node } = process.versions;
    // The program refuses too old a version before any command runs.
    return { seen: `Node.js ${node} on ${process.platform} ${process.arch}`, findings: [] };
  },
};

/** Checks the free space of the state folder's disk, and whether that disk suits a database. */
export const diskCheck: Check = {
  name: "disk",
  run: ({ state }) => {
    const folder = nearestFolder(state.path);
    const { bavail, blocks, bsize, ffree, files } = statfsSync(folder);
    const room = {
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      freeFiles: ffree,
      totalFiles: files,
    };
    const checked = judgeRoom(room, state.path);
    const remote = remoteFileSystem(folder);
    if (remote === undefined) return checked;
    const finding: Finding = {
      check: "disk-network",
      level: "warning",
      subject: state.path,
      message: `the state folder is on ${remote}, whose locks and flushes databases cannot rely on`,
      remedy: "Name a folder on a local disk with --state-dir or the configuration's stateDir.",
    };
    return { ...checked, findings: [...checked.findings, finding] };
  },
};

/** Judges the free space of a disk. Pure. */
export function judgeRoom({ freeBytes, totalBytes, freeFiles, totalFiles }: Room, subject: string): Checked {
  const seen = `${sizeWords(freeBytes)} of ${sizeWords(totalBytes)} free`;
  const remedy =
    "Free some space, or name a folder on another disk with --state-dir or the configuration's stateDir.";
  const findings: Finding[] = [];
  if (freeBytes < FREE_BYTES_LOW) {
    findings.push({
      check: "disk-space",
      level: freeBytes < FREE_BYTES_MIN ? "failure" : "warning",
      subject,
      message: `only ${sizeWords(freeBytes)} are free on the disk of the state folder; expected at least ${sizeWords(FREE_BYTES_LOW)}`,
      remedy,
    });
  }
  if (totalFiles > 0 && freeFiles < FREE_FILES_MIN) {
    findings.push({
      check: "disk-files",
      level: "failure",
      subject,
      message: `the disk of the state folder has room for ${freeFiles} more files only, however many bytes are free`,
      remedy,
    });
  }
  return { seen, findings };
}

/** Formats a size: `1.4 GB`, `930 MB`. */
export function sizeWords(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** Returns the folder or its nearest existing ancestor. */
function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}
