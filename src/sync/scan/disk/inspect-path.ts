import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { codeOf, isAbsence } from "../../../lib/failure.ts";
import { integerColumn } from "../../../lib/integer-column.ts";
import type { OnDisk } from "../../../wire/daemon-files.ts";

/** Stats a path without following a link at its end. */
export function inspectPath(path: string): OnDisk {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return { kind: "absent" };
    const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
    const kind = kindOf(stats);
    return {
      kind,
      sizeBytes,
      mtimeMs,
      ctimeMs,
      ino: integerColumn(stats.ino),
      ...(kind === "link" && { target: readlinkSync(path) }),
      ...(kind === "other" && { what: whatOf(stats) }),
    };
  } catch (error) {
    return isAbsence(error) ? { kind: "absent" } : { kind: "unreadable", error: codeOf(error) ?? "UNKNOWN" };
  }
}

function whatOf(stats: Stats): string {
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

function kindOf(stats: Stats): OnDisk["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "other";
}
