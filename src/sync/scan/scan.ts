import { statSync } from "node:fs";
import { codeOf, isAbsence } from "../../lib/failure.ts";
import { inSlices } from "../../lib/steps.ts";
import type { RelativePath, RootIdentity, Scan, Unreadable } from "../plan/model.ts";
import { scopeTest } from "../plan/scope.ts";
import type { Rules } from "./rules/rules.ts";
import { MOUNTED_OVER, type SubMounts } from "./rules/sub-mounts.ts";
import { rootIdentityOf } from "./disk/root-identity.ts";
import { openReasons } from "./left-out.ts";
import { nothingFound, walk } from "./walk.ts";

export interface ScanOptions {
  /** Cancels the scan, which then throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Called after each slice of work, so that a long scan does not count as a hang. */
  readonly onSlice?: () => void;
  /** The caller judges new mounts, see `SubMounts.refresh`. */
  readonly judgesMounts?: boolean;
}

const NOTHING = { root: undefined, entries: [], unreadable: [], refused: [], skipped: [] } as const;

/**
 * Scans the whole source. Entries have no order and are regular files only: links, pipes, sockets, devices and excluded paths
 * are ignored. What cannot be accessed is `unreadable`; a file that disappears during the scan is absent. Reads changed ignore
 * files again, and opens no other file. Synchronous calls, a slice at a time, cost a third of asynchronous ones.
 */
export async function scanSource(root: string, rules: Rules, options: ScanOptions = {}): Promise<Scan> {
  return await scan(root, rules, undefined, options);
}

/**
 * Scans only these files and folders, a folder with all below it; otherwise like `scanSource`. The scan's `scope` is `paths`
 * without those inside another one. A path is absent if a folder above it is excluded, missing, or not a folder.
 */
export async function scanPaths(
  root: string,
  rules: Rules,
  paths: readonly RelativePath[],
  options: ScanOptions = {},
): Promise<Scan> {
  return await scan(root, rules, outermost(paths), options);
}

async function scan(
  root: string,
  rules: Rules,
  scope: readonly RelativePath[] | undefined,
  { signal, onSlice, judgesMounts = false }: ScanOptions,
): Promise<Scan> {
  const identity = identify(root);
  if (identity === undefined) return { ...NOTHING, scope };
  if ("code" in identity) return { ...NOTHING, unreadable: [{ path: "", code: identity.code }], scope };

  rules.reload();
  rules.mounts?.refresh(judgesMounts);
  const reasons = openReasons();
  const found = nothingFound();
  const isWhole = scope === undefined;
  await inSlices(walk(root, rules, scope ?? [""], found, isWhole ? reasons.add : undefined), signal, onSlice);
  if (found.rootFailure !== undefined)
    return { ...NOTHING, unreadable: [{ path: "", code: found.rootFailure }], scope };

  // A disk that is unmounted during the walk shows empty folders: then nothing of the walk is reliable.
  const after = identify(root);
  if (after === undefined) return { ...NOTHING, scope };
  const same = !("code" in after) && after.dev === identity.dev && after.ino === identity.ino;
  if (!same) return { ...NOTHING, scope };
  const { entries, unreadable, refused, skipped } = found;
  const leftOut = isWhole ? { leftOut: reasons.list() } : {};
  const result = { root: identity, entries, unreadable, refused, skipped, ...leftOut, scope };
  return rules.mounts === undefined ? result : withoutMounts(result, closedMounts(rules, rules.mounts));
}

/** Wanted paths whose mounts differ from the known ones, before or during this scan. */
function closedMounts(rules: Rules, mounts: SubMounts): readonly Unreadable[] {
  const changed = mounts.changed().map((path) => ({ path, code: MOUNTED_OVER }));
  return [...mounts.closed(), ...changed].filter(
    ({ path }) => rules.entersFolder(path).wanted || rules.wants(path).wanted,
  );
}

/** Removes what is at or below some paths from a scan, because nothing is known of it. */
export function withoutMounts(found: Scan, closed: readonly Unreadable[]): Scan {
  if (closed.length === 0) return found;
  const isClosed = scopeTest(closed.map(({ path }) => path));
  const isInScope = scopeTest(found.scope);
  // A walk does not meet a folder that disappeared with its disk, whether in the scope or above it.
  const isTouched = ({ path }: Unreadable): boolean =>
    isInScope(path) || (found.scope ?? []).some(scopeTest([path]));
  const reported = new Set(found.unreadable.map(({ path }) => path));
  const added = closed.filter((each) => !reported.has(each.path) && isTouched(each));
  return {
    ...found,
    entries: found.entries.filter(({ path }) => !isClosed(path)),
    refused: found.refused.filter(({ path }) => !isClosed(path)),
    skipped: found.skipped.filter(({ entry }) => !isClosed(entry.path)),
    unreadable: [...found.unreadable, ...added],
  };
}

/** The root's identity; undefined if it is missing or not a folder. The root itself may be a symbolic link. */
function identify(root: string): RootIdentity | { readonly code: string } | undefined {
  try {
    const stats = statSync(root, { throwIfNoEntry: false });
    return stats?.isDirectory() === true ? rootIdentityOf(stats) : undefined;
  } catch (error) {
    return isAbsence(error) ? undefined : { code: codeOf(error) ?? "UNKNOWN" };
  }
}

/** Removes duplicates and paths inside other ones. */
function outermost(paths: readonly RelativePath[]): RelativePath[] {
  const all = new Set(paths);
  return [...all].filter((path) => {
    for (let slash = path.lastIndexOf("/"); slash !== -1; slash = path.lastIndexOf("/", slash - 1)) {
      if (all.has(path.slice(0, slash))) return false;
    }
    return true;
  });
}
