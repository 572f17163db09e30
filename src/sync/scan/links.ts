import { lstatSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** Where a link leads, by absolute paths. */
export interface Resolved {
  /** Links passed on the way, and its end or the place where nothing was found. */
  readonly points: readonly string[];
  /** The end, free of links; undefined: it leads nowhere. */
  readonly real: string | undefined;
}

/** The kernel's own limit (path_resolution(7)): more links than this are a ring. */
const LINKS_MAX = 40;

/**
 * Follows a path through its links, as realpath(3) does, and keeps the way. Throws what the system answers where it may
 * not look.
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

/** What a link holds; undefined: the path is no link. */
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
