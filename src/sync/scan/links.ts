import { lstatSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** The resolution of a link, in absolute paths. */
export interface Resolved {
  /** Links on the path, then its end or the first missing point. */
  readonly points: readonly string[];
  /** The end, free of links; undefined if there is none. */
  readonly real: string | undefined;
}

/** The kernel's own limit (path_resolution(7)): more links than this form a ring. */
const LINKS_MAX = 40;

/**
 * Resolves a path through its links, like realpath(3), and records them. Throws the system's error for inaccessible
 * paths.
 */
export function resolveLink(path: string): Resolved {
  const points: string[] = [];
  let done = "";
  const rest = partsOf(path).toReversed();
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    if (part === "..") {
      done = done === "" ? "" : dirname(done).replace(/^\/$/, "");
      continue;
    }
    const next = `${done}/${part}`;
    const target = targetOf(next);
    if (target === "missing") return { points: [...points, next], real: undefined };
    if (target === undefined) {
      done = next;
      continue;
    }
    if (points.length === LINKS_MAX) return { points, real: undefined };
    points.push(next);
    if (target.to.startsWith("/")) done = "";
    rest.push(...partsOf(target.to).toReversed());
  }
  const real = done === "" ? "/" : done;
  return { points: [...points, real], real };
}

/** Reads a link; undefined if the path is not a link. */
function targetOf(path: string): { readonly to: string } | "missing" | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return "missing";
    return stats.isSymbolicLink() ? { to: readlinkSync(path) } : undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return "missing";
    throw error;
  }
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
