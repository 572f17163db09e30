import { readFileSync, statSync } from "node:fs";
import { isAbsence } from "../../../lib/failure.ts";
import type { FolderPath } from "../../plan/model.ts";

/** Name of the file that describes its folder to people and programs that search in it. */
export const DESCRIPTION_FILE = ".kbsync.md";

/** A larger file is no description of a folder. */
const DESCRIPTION_BYTES_MAX = 64 * 1024;

/** The descriptions of a source's folders. */
export type FolderDescriptions = ReturnType<typeof openFolderDescriptions>;

/** Opens the descriptions below `root`. Reads nothing yet. */
export function openFolderDescriptions(root: string) {
  /** The last text of each folder's own file, for a file that cannot be read for a moment. */
  const own = new Map<FolderPath, string | undefined>();
  let known = new Map<FolderPath, string | undefined>();

  const lookUp = (folder: FolderPath): string | undefined => {
    if (known.has(folder)) return known.get(folder);
    const above = folder === "" ? undefined : lookUp(folder.slice(0, Math.max(0, folder.lastIndexOf("/"))));
    const read = readIn(`${root}/${folder === "" ? "" : `${folder}/`}${DESCRIPTION_FILE}`);
    if (read !== "unreadable") own.set(folder, read.text);
    const text = own.get(folder);
    const found = text === undefined ? above : above === undefined ? text : `${above}\n\n${text}`;
    known.set(folder, found);
    return found;
  };

  return {
    /** The descriptions that apply in a folder: its own and those of the folders above, outermost first. Undefined: none. */
    in: lookUp,
    /** Reads each file again when it is next needed. */
    refresh: (): void => {
      known = new Map();
    },
  };
}

/** Reads a description. An absent, empty or large file is none. */
function readIn(file: string): { readonly text: string | undefined } | "unreadable" {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isFile() !== true || stats.size > DESCRIPTION_BYTES_MAX) return { text: undefined };
    const text = readFileSync(file, "utf8")
      .replace(/^\uFEFF/, "")
      .trim();
    return { text: text === "" ? undefined : text };
  } catch (error) {
    return isAbsence(error) ? { text: undefined } : "unreadable";
  }
}
