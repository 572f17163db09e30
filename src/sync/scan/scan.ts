import { statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { codeOf } from "../../lib/failure.ts";
import type { RelativePath, RootIdentity, Scan, Unreadable } from "../plan/model.ts";
import { scopeTest } from "../plan/reconcile.ts";
import type { Rules } from "../rules/rules.ts";
import { MOUNTED_OVER, type SubMounts } from "../rules/sub-mounts.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";
import { isAbsence, openWalk } from "./walk.ts";

export interface ScanOptions {
  /** Ends the scan: it throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Notified of each stretch of work, so that a long scan is not taken for one that hangs. */
  readonly onSlice?: () => void;
  /** The caller judges mounts that are new, see `SubMounts.look`. */
  readonly judgesMounts?: boolean;
}

/**
 * Longest stretch of synchronous work. Calls into the file system are made synchronously because they cost a third of
 * the promised ones; this keeps the loop's lag below what a person notices.
 */
const SLICE_MS = 8;

const NOTHING = { root: undefined, entries: [], unreadable: [], refused: [], skipped: [] } as const;

/**
 * Looks at the whole source. Entries come in no order. Regular files alone are told: pipes, sockets and devices are
 * passed over, and so is what the rules leave out. A symbolic link is followed or told as `skipped`. What could not be looked at is `unreadable`; a file
 * that vanishes meanwhile is simply absent. Ignore files that changed are read again; no other file is opened.
 */
export async function scanSource(root: string, rules: Rules, options: ScanOptions = {}): Promise<Scan> {
  return await scan(root, rules, undefined, options);
}

/**
 * Looks at these files and folders only, a folder with all below it; otherwise as `scanSource`. The scan's `scope` is
 * `paths` without those that lie in another one. A path is absent if a folder above it is left out, gone, or none.
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
  rules.mounts?.look(judgesMounts);
  const walk = openWalk(root, rules);
  if (scope === undefined) walk.begin("");
  else for (const path of scope) walk.begin(path);
  while (walk.advance(SLICE_MS)) {
    onSlice?.();
    await nextTurn();
    signal?.throwIfAborted();
  }
  const failure = walk.rootFailure();
  if (failure !== undefined) return { ...NOTHING, unreadable: [{ path: "", code: failure }], scope };
  walk.end(scope);

  // A disk that is unmounted while we walk shows empty folders: what was seen then is no truth about this root.
  const after = identify(root);
  if (after === undefined) return { ...NOTHING, scope };
  const same = !("code" in after) && after.dev === identity.dev && after.ino === identity.ino;
  if (!same) return { ...NOTHING, scope };
  const found = { root: identity, ...walk.found, scope };
  return rules.mounts === undefined ? found : withoutMounts(found, closedMounts(rules, rules.mounts));
}

/** Paths at which the mounts are not as they were, before this scan or in its course, as far as the rules let them in. */
function closedMounts(rules: Rules, mounts: SubMounts): readonly Unreadable[] {
  const changed = mounts.changed().map((path) => ({ path, code: MOUNTED_OVER }));
  return [...mounts.closed(), ...changed].filter(
    ({ path }) => rules.entersFolder(path).wanted || rules.wants(path).wanted,
  );
}

/** Takes what lies at or below some paths out of a scan: of these nothing is known. */
export function withoutMounts(found: Scan, closed: readonly Unreadable[]): Scan {
  if (closed.length === 0) return found;
  const isClosed = scopeTest(closed.map(({ path }) => path));
  const isInScope = scopeTest(found.scope);
  // A folder that is gone with its disk is met by no walk, be it in the scope or above it.
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

/** The root's identity, undefined if it is missing or no folder. The root itself may be a symbolic link. */
function identify(root: string): RootIdentity | { readonly code: string } | undefined {
  try {
    const stats = statSync(root, { throwIfNoEntry: false });
    return stats?.isDirectory() === true ? rootIdentityOf(stats) : undefined;
  } catch (error) {
    return isAbsence(error) ? undefined : { code: codeOf(error) ?? "UNKNOWN" };
  }
}

/** The paths that lie in no other one, each once. */
function outermost(paths: readonly RelativePath[]): RelativePath[] {
  const all = new Set(paths);
  return [...all].filter((path) => {
    for (let slash = path.lastIndexOf("/"); slash !== -1; slash = path.lastIndexOf("/", slash - 1)) {
      if (all.has(path.slice(0, slash))) return false;
    }
    return true;
  });
}
