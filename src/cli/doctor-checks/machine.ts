import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { Finding } from "../../lib/finding.ts";
import { remoteFileSystem } from "../../sync/watch/network.ts";
import type { Check, Checked } from "./check.ts";

/** Below this a store and its journal cannot grow by much: the next large document may be the one that finds no room. */
const FREE_BYTES_LOW = 1024 ** 3;
/** Below this hardly anything can be written. */
const FREE_BYTES_MIN = 64 * 1024 ** 2;
/** Each upload is a file, and SQLite makes some for a moment. */
const FREE_FILES_MIN = 1000;

/** Room as statfs(2) tells it. */
export interface Room {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeFiles: number;
  /** 0 where a file system has no such limit. */
  readonly totalFiles: number;
}

/** The Node.js that runs, and where. */
export const nodeCheck: Check = {
  name: "node",
  run: () => {
    const { node } = process.versions;
    // What is too old was refused before any command ran.
    return { seen: `Node.js ${node} on ${process.platform} ${process.arch}`, findings: [] };
  },
};

/** Room on the disk of the state folder, and whether that disk suits a database. */
export const diskCheck: Check = {
  name: "disk",
  run: ({ state }) => {
    const place = nearestFolder(state.path);
    const { bavail, blocks, bsize, ffree, files } = statfsSync(place);
    const room = {
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      freeFiles: ffree,
      totalFiles: files,
    };
    const checked = judgeRoom(room, state.path);
    const remote = remoteFileSystem(place);
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

/** What is to be said of the room on a disk. */
export function judgeRoom({ freeBytes, totalBytes, freeFiles, totalFiles }: Room, subject: string): Checked {
  const seen = `${sizeWords(freeBytes)} of ${sizeWords(totalBytes)} free`;
  const remedy =
    "Free some, or name a folder on another disk with --state-dir or the configuration's stateDir.";
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

/** `1.4 GB`, `930 MB`: enough to tell whether it is much. */
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

/** The folder itself, or the nearest above it that is there. */
function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}
