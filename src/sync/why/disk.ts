import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";

/** What is at a path. */
export interface OnDisk {
  readonly kind: "file" | "folder" | "link" | "other" | "absent" | "unreadable";
  readonly sizeBytes?: number;
  readonly mtimeMs?: number;
  readonly ctimeMs?: number;
  readonly ino?: number;
  /** Where a link leads. */
  readonly target?: string;
  /** What kind of thing it is, in words, of one that is none of the others. */
  readonly what?: string;
  /** The first name on the way to it whose bytes are no UTF-8: by such a one no path leads to it. */
  readonly misnamed?: string;
  /** Why it cannot be looked at: the system's error code. */
  readonly error?: string;
}

/** Looks at a path, without following a link at its end. */
export function lookAt(path: string): OnDisk {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return lookAtStrange(path) ?? { kind: "absent" };
    const facts = factsOf(stats);
    return facts.kind === "link" ? { ...facts, target: readlinkSync(path) } : facts;
  } catch (error) {
    const code = codeOf(error) ?? "UNKNOWN";
    return code === "ENOTDIR" ? { kind: "absent" } : { kind: "unreadable", error: code };
  }
}

function factsOf(stats: Stats): OnDisk {
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  const ino = integerColumn(stats.ino);
  const kind = kindOf(stats);
  return { kind, sizeBytes, mtimeMs, ctimeMs, ino, ...(kind === "other" && { what: whatOf(stats) }) };
}

/** What Node puts for the bytes of a name that are no UTF-8, in arguments as well as in lists. */
const REPLACEMENT = "\uFFFD";

/**
 * Looks for what a person may have meant by a path with replaced bytes in it: each name is sought in its folder by what
 * it looks like. Undefined where there is nothing like it.
 */
function lookAtStrange(path: string): OnDisk | undefined {
  if (!path.includes(REPLACEMENT)) return undefined;
  let place = Buffer.from("/");
  let misnamed: string | undefined;
  for (const name of path.split("/").filter((each) => each !== "")) {
    let bytes = Buffer.from(name);
    if (name.includes(REPLACEMENT)) {
      const listed = readdirSync(place, { encoding: "buffer" });
      const meant = listed.find((each) => each.toString("utf8") === name);
      if (meant === undefined) return undefined;
      if (!meant.equals(bytes)) misnamed ??= name;
      bytes = meant;
    }
    place = Buffer.concat([place, Buffer.from("/"), bytes]);
  }
  const stats = lstatSync(place, { throwIfNoEntry: false });
  return stats === undefined || misnamed === undefined ? undefined : { ...factsOf(stats), misnamed };
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
