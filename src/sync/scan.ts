import { statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { codeOf } from "../lib/failure.ts";
import type { RelativePath, RootIdentity, Scan } from "./plan/model.ts";
import type { Rules } from "./rules.ts";
import { rootIdentityOf } from "./scan/root-identity.ts";
import { isAbsence, openWalk } from "./scan/walk.ts";

export interface ScanOptions {
  /** Ends the scan: it throws the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told of each stretch of work, so that a long scan is not taken for one that hangs. */
  readonly onSlice?: () => void;
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
  { signal, onSlice }: ScanOptions,
): Promise<Scan> {
  const identity = identify(root);
  if (identity === undefined) return { ...NOTHING, scope };
  if ("code" in identity) return { ...NOTHING, unreadable: [{ path: "", code: identity.code }], scope };

  rules.reload();
  const walk = openWalk(root, rules);
  if (scope === undefined) walk.begin("");
  else for (const path of scope) walk.begin(path);
  while (walk.advance(SLICE_MS)) {
    onSlice?.();
    await nextTurn();
    signal?.throwIfAborted();
  }
  walk.end(scope);

  // A disk that is unmounted while we walk shows empty folders: what was seen then is no truth about this root.
  const after = identify(root);
  if (after === undefined) return { ...NOTHING, scope };
  const same = !("code" in after) && after.dev === identity.dev && after.ino === identity.ino;
  return same ? { root: identity, ...walk.found, scope } : { ...NOTHING, scope };
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
