import { readFileSync, statSync } from "node:fs";
import { codeOf } from "../../../lib/failure.ts";
import type { FolderPath } from "../../plan/model.ts";
import { type IgnoreRest, openIgnoreSettling } from "./ignore-settling.ts";

/** Name of the file that describes its folder to people and programs that search in it. */
export const DESCRIPTION_FILE = ".kbsync.md";

/** A larger file is no description of a folder. */
const DESCRIPTION_BYTES_MAX = 64 * 1024;

/** The descriptions of a source's folders. */
export type FolderDescriptions = ReturnType<typeof openFolderDescriptions>;

/** When a changed file comes into force. */
export interface DescriptionSettling {
  /** Time for which a changed file must be unchanged; 0: none. */
  readonly settleMs: number;
  readonly now: () => number;
}

/**
 * Opens the descriptions below `root`. Reads nothing yet. A changed file comes into force once it has settled; until then the
 * former version applies. A file that is met for the first time applies as it is: half a description costs one more update and
 * discloses nothing.
 */
export function openFolderDescriptions(root: string, when?: DescriptionSettling) {
  const inForce = new Map<FolderPath, string | undefined>();
  const settling =
    when &&
    openIgnoreSettling({ ...when, looserRulesMs: when.settleMs, inForce: new Map<FolderPath, string>() });
  let known = new Map<FolderPath, string | undefined>();

  const ownOf = (folder: FolderPath): string | undefined => {
    const found = readIn(`${root}/${folder === "" ? "" : `${folder}/`}${DESCRIPTION_FILE}`);
    if (found === "unreadable") return inForce.get(folder);
    const { text } = found;
    const isChanged = inForce.has(folder) && inForce.get(folder) !== text;
    const version = { hash: text ?? "", patterns: [], stamp: "", isFresh: false };
    if (isChanged && settling?.counts(folder, version) === false) return inForce.get(folder);
    settling?.forget(folder);
    inForce.set(folder, text);
    return text;
  };
  const lookUp = (folder: FolderPath): string | undefined => {
    if (known.has(folder)) return known.get(folder);
    const above = folder === "" ? undefined : lookUp(folder.slice(0, Math.max(0, folder.lastIndexOf("/"))));
    const own = ownOf(folder);
    const found = own === undefined ? above : above === undefined ? own : `${above}\n\n${own}`;
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
    /** The time at which the changed files that were met since the last call will have settled; undefined: there are none. */
    takeRest: (): IgnoreRest | undefined => settling?.takeRest(),
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
    const code = codeOf(error);
    return code === "ENOENT" || code === "ENOTDIR" ? { text: undefined } : "unreadable";
  }
}
