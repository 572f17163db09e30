import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ResolvedSource } from "../../config/load.ts";
import { codeOf } from "../../lib/failure.ts";
import type { FolderWarning } from "../../wire/daemon-status.ts";
import { ignoreProblems } from "../../sync/scan/rules/ignore-problems.ts";
import { openRules } from "../../sync/scan/rules/rules.ts";

/** The parts of a source that this user can and cannot read. */
export interface SeenFolders {
  /** Undefined: the folder can be listed. */
  readonly problem: { readonly code: string } | undefined;
  /** Files that are wanted by name. */
  readonly files: number;
  readonly unreadable: number;
  /** The first of those, below the source. */
  readonly unreadablePaths: readonly string[];
  /** Problems of ignore files. */
  readonly warnings: readonly FolderWarning[];
  /** The walk stopped at `FOLDERS_MAX`. */
  readonly cut: boolean;
}

/** Folders visited per source: far more than inotify can watch. */
const FOLDERS_MAX = 2_000_000;
const NAMED_MAX = 5;
/** Folders between two checks of the signal. */
const FOLDERS_A_TURN = 200;

/** Walks a source like the watcher and checks whether each file is readable. Throws the signal's reason. */
export async function seeFolders(source: ResolvedSource, signal: AbortSignal): Promise<SeenFolders> {
  const root = source.absolutePath;
  const nothing = { files: 0, unreadable: 0, unreadablePaths: [], warnings: [], cut: false };
  const problem = problemOf(root);
  if (problem !== undefined) return { problem, ...nothing };
  const rules = openRules(source);
  const unreadablePaths: string[] = [];
  let folders = 0;
  let files = 0;
  let unreadable = 0;
  const cannot = (path: string): void => {
    unreadable += 1;
    if (unreadablePaths.length < NAMED_MAX) unreadablePaths.push(path);
  };
  const left = [""];
  for (let inside = left.pop(); inside !== undefined && folders < FOLDERS_MAX; inside = left.pop()) {
    folders += 1;
    if (folders % FOLDERS_A_TURN === 0) {
      await nextTurn();
      signal.throwIfAborted();
    }
    const allowed = rules.inFolder(inside);
    try {
      for (const entry of readdirSync(join(root, inside), { withFileTypes: true })) {
        if (allowed.unreadable !== undefined) break;
        const path = inside === "" ? entry.name : `${inside}/${entry.name}`;
        if (entry.isDirectory() && allowed.folder(path, entry.name).wanted) left.push(path);
        if (!entry.isFile() || !allowed.file(path, entry.name).wanted) continue;
        files += 1;
        if (!isReadable(join(root, path))) cannot(path);
      }
    } catch (error) {
      // A folder that vanished meanwhile is no problem.
      if (codeOf(error) !== "ENOENT") cannot(inside);
    }
  }
  const warnings = ignoreProblems(rules);
  const cut = folders >= FOLDERS_MAX;
  return { problem: undefined, files, unreadable, unreadablePaths, warnings, cut };
}

/** Returns why the source's folder cannot be read, or undefined. */
export function problemOf(root: string): { readonly code: string } | undefined {
  try {
    if (!statSync(root).isDirectory()) return { code: "ENOTDIR" };
    accessSync(root, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return { code: codeOf(error) ?? "UNKNOWN" };
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    return codeOf(error) === "ENOENT";
  }
}
