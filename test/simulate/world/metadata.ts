import { SECOND } from "../history.ts";
import type { Disk } from "./disk.ts";

/** Name of the file that describes its folder. */
export const DESCRIPTION_FILE = ".kbsync.md";

/**
 * What a file's metadata should be, without its times. The rules are stated here once more, without the daemon's own code,
 * for the few forms that histories have. `team`: what the configuration sets.
 */
export function metadataAt(
  disk: Disk,
  path: string,
  team: string | undefined,
  hasInner: boolean,
): Readonly<Record<string, unknown>> {
  const root = hasInner && path.startsWith(SECOND) ? SECOND : "";
  const below = path.slice(root.length);
  const parts = below.split("/");
  const name = parts.at(-1) ?? "";
  const folder = parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join("/"));
  const descriptions = ["", ...folder]
    .map(
      (each) =>
        disk
          .bytes(`${root}${each === "" ? "" : `${each}/`}${DESCRIPTION_FILE}`)
          ?.toString()
          .trim() ?? "",
    )
    .filter((text) => text !== "");
  const bytes = disk.bytes(path) ?? Buffer.alloc(0);
  const { tags, status, ...fields } = frontMatterOf(name, bytes.toString());
  return {
    path: below,
    name,
    kind: name.split(".").at(-1),
    size: bytes.length,
    ...(folder.length > 0 && { folder }),
    ...(descriptions.length > 0 && { folderDescription: descriptions.join("\n\n") }),
    ...(tags !== undefined && { tags: tags.split(", ") }),
    ...fields,
    ...(team !== undefined && { team }),
    // The service has a status of its own.
    ...(status !== undefined && { fm: { status } }),
  };
}

/** The lines of front matter, `name: value` each. */
function frontMatterOf(name: string, text: string): Readonly<Record<string, string>> {
  const block = name.endsWith(".md") ? /^---\n([^]*?)\n---\n/.exec(text)?.[1] : undefined;
  const lines = (block ?? "").split("\n").filter((line) => line.includes(": "));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]),
  );
}
