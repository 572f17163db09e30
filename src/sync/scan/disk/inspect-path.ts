import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { codeOf } from "../../../lib/failure.ts";
import { integerColumn } from "../../../lib/integer-column.ts";
import type { OnDisk } from "../../../wire/daemon-files.ts";

/** Stats a path without following a link at its end. */
export function inspectPath(path: string): OnDisk {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return findMisnamed(path) ?? { kind: "absent" };
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

/** The replacement character of Node for the bytes of a name that are not valid UTF-8, in arguments and in listings. */
const REPLACEMENT = "\uFFFD";

/**
 * Finds the file that a person may mean by a path with replaced bytes: searches each folder for a name that looks the same.
 * Undefined if there is none.
 */
function findMisnamed(path: string): OnDisk | undefined {
  if (!path.includes(REPLACEMENT)) return undefined;
  let found = Buffer.from("/");
  let misnamed: string | undefined;
  for (const name of path.split("/").filter((each) => each !== "")) {
    let bytes = Buffer.from(name);
    if (name.includes(REPLACEMENT)) {
      const listed = readdirSync(found, { encoding: "buffer" });
      const meant = listed.find((each) => each.toString("utf8") === name);
      if (meant === undefined) return undefined;
      if (!meant.equals(bytes)) misnamed ??= name;
      bytes = meant;
    }
    found = Buffer.concat([found, Buffer.from("/"), bytes]);
  }
  const stats = lstatSync(found, { throwIfNoEntry: false });
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
