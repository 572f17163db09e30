import { lstatSync, readdirSync, type Stats } from "node:fs";
import { codeOf, isAbsence } from "../../lib/failure.ts";
import { integerColumn } from "../../lib/integer-column.ts";
import type { Steps } from "../../lib/steps.ts";
import { refusalBySize } from "../../formats/bounds.ts";
import { kindOfName } from "../../formats/kinds.ts";
import type { FolderPath, RelativePath, ScanEntry, Skip, Unreadable } from "../plan/model.ts";
import { type FolderRules, linkReason, type Rules, type Verdict } from "./rules/rules.ts";

/** What a walk has found so far. */
export interface Found {
  readonly entries: ScanEntry[];
  readonly unreadable: Unreadable[];
  readonly refused: { readonly path: RelativePath; readonly reason: string }[];
  readonly skipped: Skip[];
  /** Why the root itself could not be listed; undefined if it could, or the walk does not list it. */
  rootFailure: string | undefined;
}

/** Returns empty findings, which a walk fills. */
export function nothingFound(): Found {
  return { entries: [], unreadable: [], refused: [], skipped: [], rootFailure: undefined };
}

/** Receives each path that the rules leave out; a folder stands for everything below it. */
export type OnLeftOut = (path: RelativePath, reason: string, what: "file" | "folder") => void;

/** A walk below a source's folder, and where its findings go. */
interface Walk {
  readonly root: string;
  readonly rules: Rules;
  readonly found: Found;
  readonly onLeftOut: OnLeftOut;
}

/** Files and folders between two steps. Each takes a few microseconds, and a thousand times as long on a slow network. */
const ITEMS_PER_STEP = 64;

/** The replacement character of Node for the bytes of a name that are not valid UTF-8. */
const REPLACEMENT = "\uFFFD";

/**
 * Walks through files and folders, a folder with all below it; "" is the root. Opens no file but those of the rules. A path
 * of the scope is found only if it is reached through wanted folders.
 */
export function* walk(
  root: string,
  rules: Rules,
  scope: readonly FolderPath[],
  found: Found,
  onLeftOut: OnLeftOut = () => undefined,
): Steps<void> {
  const walking: Walk = { root, rules, found, onLeftOut };
  const rulesAt = openReach(walking);
  let items = 0;
  for (const start of scope) {
    const folders = start === "" || takeStart(walking, start, rulesAt) ? [start] : [];
    if (++items % ITEMS_PER_STEP === 0) yield;
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      if (++items % ITEMS_PER_STEP === 0) yield;
      const listed = list(walking, folder);
      if (listed === undefined) continue;
      const { names, above } = listed;
      folders.push(...listed.folders);
      for (const name of names) {
        const path = childOf(folder, name);
        if (takes(walking, above.file(path, name), path, "file")) {
          const stats = statAt(walking, path);
          if (stats?.isFile() === true) addFile(walking, path, name, stats);
        }
        if (++items % ITEMS_PER_STEP === 0) yield;
      }
    }
  }
}

/** Adds a path that a walk starts with, if it is a file. Returns true for a folder to walk through. */
function takeStart(
  walking: Walk,
  path: RelativePath,
  rulesAt: (folder: FolderPath) => FolderRules | undefined,
): boolean {
  const [parent, name] = split(path);
  const above = rulesAt(parent);
  const stats = above && statAt(walking, path);
  if (above === undefined || stats === undefined) return false;
  if (stats.isSymbolicLink()) leaveLink(walking, above, path, name);
  else if (stats.isDirectory()) return takes(walking, above.folder(path, name), path, "folder");
  else if (stats.isFile() && takes(walking, above.file(path, name), path, "file"))
    addFile(walking, path, name, stats);
  return false;
}

/**
 * Returns a function that finds the rules in a folder; undefined if it does not exist, is not wanted, or is not reached
 * through folders only. It reports a folder of which nothing is known.
 */
function openReach(walking: Walk): (folder: FolderPath) => FolderRules | undefined {
  const known = new Map<FolderPath, FolderRules | undefined>();
  const isReached = (folder: FolderPath): boolean => {
    if (folder === "") return true;
    const [parent, name] = split(folder);
    return (
      rulesAt(parent)?.folder(folder, name).wanted === true && statAt(walking, folder)?.isDirectory() === true
    );
  };
  const rulesAt = (folder: FolderPath): FolderRules | undefined => {
    if (!known.has(folder)) known.set(folder, isReached(folder) ? rulesIn(walking, folder) : undefined);
    return known.get(folder);
  };
  return rulesAt;
}

/** Returns the rules in a folder. If they are unknown, reports the folder. */
function rulesIn({ rules, found }: Walk, folder: FolderPath): FolderRules | undefined {
  const above = rules.inFolder(folder);
  if (above.unreadable === undefined) return above;
  found.unreadable.push(above.unreadable);
  return undefined;
}

/** Lists a wanted folder: its files, and the folders in it that are wanted. Undefined if nothing is known of it. */
function list(
  walking: Walk,
  folder: FolderPath,
):
  | {
      readonly above: FolderRules;
      readonly names: readonly string[];
      readonly folders: readonly FolderPath[];
    }
  | undefined {
  try {
    // Before its ignore file: in a folder that cannot be entered, that would be the first to fail.
    const listed = readdirSync(absolute(walking.root, folder), { withFileTypes: true });
    const above = rulesIn(walking, folder);
    if (above === undefined) return undefined;
    const names: string[] = [];
    const folders: FolderPath[] = [];
    let hasReplacement = false;
    for (const entry of listed) {
      const { name } = entry;
      const path = childOf(folder, name);
      if (name.includes(REPLACEMENT)) hasReplacement = true;
      if (entry.isFile()) names.push(name);
      else if (entry.isSymbolicLink()) leaveLink(walking, above, path, name);
      else if (entry.isDirectory() && takes(walking, above.folder(path, name), path, "folder"))
        folders.push(path);
    }
    if (hasReplacement) refuseMisnamed(walking, folder, above);
    return { above, names: names.sort(), folders };
  } catch (error) {
    addFailure(walking, folder, error);
    if (folder === "" && !isAbsence(error)) walking.found.rootFailure = codeOf(error) ?? "UNKNOWN";
    return undefined;
  }
}

/** Reports the names in a folder that are not valid UTF-8. Nothing exists at the path that Node gives them. */
function refuseMisnamed({ root, found }: Walk, folder: FolderPath, above: FolderRules): void {
  for (const entry of readdirSync(absolute(root, folder), { withFileTypes: true, encoding: "buffer" })) {
    const name = entry.name.toString("utf8");
    if (Buffer.from(name, "utf8").equals(entry.name)) continue;
    const path = childOf(folder, name);
    if (entry.isFile() && above.file(path, name).wanted)
      found.refused.push({ path, reason: "its name is not valid UTF-8: rename it" });
    else if (entry.isDirectory() && above.folder(path, name).wanted)
      found.refused.push({
        path,
        reason: "the folder's name is not valid UTF-8: rename it to sync what is in it",
      });
  }
}

/** Whether a path is wanted. Reports one that is not. */
function takes({ onLeftOut }: Walk, verdict: Verdict, path: RelativePath, what: "file" | "folder"): boolean {
  if (!verdict.wanted) onLeftOut(path, verdict.reason, what);
  return verdict.wanted;
}

function leaveLink({ onLeftOut }: Walk, above: FolderRules, path: RelativePath, name: string): void {
  onLeftOut(path, linkReason(above.file(path, name), above.folder(path, name)), "file");
}

/** Adds a wanted file by its name and size. */
function addFile({ rules, found }: Walk, path: RelativePath, name: string, stats: Stats): void {
  const { size: sizeBytes, mtimeMs, ctimeMs } = stats;
  const entry = { path, sizeBytes, mtimeMs, ctimeMs, ino: integerColumn(stats.ino) };
  const named = kindOfName(name);
  if (named.kind === "skipped") {
    found.skipped.push({ entry, reason: named.reason });
    return;
  }
  const reason = refusalBySize(named, sizeBytes, rules.source.maxFileBytes);
  if (reason === undefined) found.entries.push(entry);
  else found.refused.push({ path, reason });
}

/** Returns the facts of a path; undefined if nothing is there or it is unreadable, which it reports. */
function statAt(walking: Walk, path: RelativePath): Stats | undefined {
  try {
    return lstatSync(absolute(walking.root, path), { throwIfNoEntry: false });
  } catch (error) {
    addFailure(walking, path, error);
    return undefined;
  }
}

function addFailure({ found }: Walk, path: FolderPath, error: unknown): void {
  if (!isAbsence(error)) found.unreadable.push({ path, code: codeOf(error) ?? "UNKNOWN" });
}

function absolute(root: string, path: FolderPath): string {
  return path === "" ? root : `${root}/${path}`;
}

function childOf(folder: FolderPath, name: string): RelativePath {
  return folder === "" ? name : `${folder}/${name}`;
}

function split(path: RelativePath): [parent: FolderPath, name: string] {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? ["", path] : [path.slice(0, slash), path.slice(slash + 1)];
}
