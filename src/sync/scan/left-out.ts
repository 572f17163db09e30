import { setImmediate as nextTurn } from "node:timers/promises";
import type { ListedFile } from "../../wire/daemon-files.ts";
import type { LeftOut } from "../../wire/daemon-folders.ts";
import type { RelativePath } from "../plan/model.ts";
import type { FolderRules, Rules, Verdict } from "./rules/rules.ts";
import { openWalk } from "./walk.ts";

/** Rules in a result. More would be no overview. */
const REASONS_MAX = 20;
/** Rules that are counted apart. A configuration may have thousands, and an ignore file any number. */
const REASONS_COUNTED = 1000;
/** Longest slice of synchronous work of a list. */
const SLICE_MS = 8;

export type AddReason = (path: RelativePath, reason: string, what: "file" | "folder") => void;

/** Returns the same rules, which report each path that they leave out. */
export function countingRules(rules: Rules, add: AddReason): Rules {
  // A walk tests a symbolic link as a file and as a folder, one after the other.
  let last = "";
  const counted = (path: RelativePath, verdict: Verdict, what: "file" | "folder"): Verdict => {
    if (!verdict.wanted && path !== last) add(path, verdict.reason, what);
    last = path;
    return verdict;
  };
  const counting = (inner: FolderRules): FolderRules => ({
    unreadable: inner.unreadable,
    file: (path, name) => counted(path, inner.file(path, name), "file"),
    folder: (path, name) => counted(path, inner.folder(path, name), "folder"),
  });
  return { ...rules, inFolder: (path) => counting(rules.inFolder(path)) };
}

/** Counts paths by the reason why they are left out. */
export function openReasons(): { readonly add: AddReason; readonly list: () => LeftOut[] } {
  const byReason = new Map<string, { -readonly [K in keyof LeftOut]: LeftOut[K] }>();
  const others = { reason: "other rules", files: 0, folders: 0, example: "" };
  const sizeOf = ({ files, folders }: LeftOut): number => files + folders;
  return {
    add: (path, reason, what) => {
      let sum = byReason.get(reason);
      if (sum === undefined && byReason.size < REASONS_COUNTED) {
        sum = { reason, files: 0, folders: 0, example: path };
        byReason.set(reason, sum);
      }
      const counted = sum ?? others;
      if (counted.example === "") counted.example = path;
      if (what === "file") counted.files += 1;
      else counted.folders += 1;
    },
    list: () => {
      const sorted = [...byReason.values()].toSorted((a, b) => sizeOf(b) - sizeOf(a));
      for (const { files, folders, example } of sorted.splice(REASONS_MAX)) {
        others.files += files;
        others.folders += folders;
        if (others.example === "") others.example = example;
      }
      return sizeOf(others) === 0 ? sorted : [...sorted, others];
    },
  };
}

/** Lists files and folders at or below a path that the rules leave out, each with the rule. */
export async function listLeftOut(
  rules: Rules,
  below: RelativePath | undefined,
  limit: number,
  signal: AbortSignal,
): Promise<readonly ListedFile[]> {
  const found = new Map<RelativePath, ListedFile>();
  const source = rules.source.absolutePath;
  const add: AddReason = (path, reason, what) => {
    const shown = what === "folder" ? `${path}/` : path;
    found.set(path, {
      source,
      path: shown,
      state: "skipped",
      docId: null,
      code: "left_out",
      message: reason,
      sinceMs: null,
      hasOlder: false,
    });
  };
  const walk = openWalk(source, countingRules(rules, add));
  walk.begin(below ?? "");
  while (found.size < limit && walk.advance(SLICE_MS)) {
    await nextTurn();
    signal.throwIfAborted();
  }
  return [...found.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1)).slice(0, limit);
}
