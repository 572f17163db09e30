import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";

/** What is at a path. */
export interface OnDisk {
  readonly kind: "file" | "folder" | "link" | "other" | "absent" | "unreadable";
  readonly sizeBytes?: number;
  readonly mtimeMs?: number;
  readonly ctimeMs?: number;
  readonly ino?: number;
  /** Where a link leads. */
  readonly target?: string;
  /** Why it cannot be looked at: the system's error code. */
  readonly error?: string;
}

/** Looks at a path, without following a link at its end. */
export function lookAt(path: string): OnDisk {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return { kind: "absent" };
    const { size: sizeBytes, mtimeMs, ctimeMs, ino } = stats;
    const facts = { kind: kindOf(stats), sizeBytes, mtimeMs, ctimeMs, ino };
    return facts.kind === "link" ? { ...facts, target: readlinkSync(path) } : facts;
  } catch (error) {
    const code = codeOf(error) ?? "UNKNOWN";
    return code === "ENOTDIR" ? { kind: "absent" } : { kind: "unreadable", error: code };
  }
}

function kindOf(stats: Stats): OnDisk["kind"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "folder";
  return stats.isSymbolicLink() ? "link" : "other";
}
