import { existsSync, readFileSync } from "node:fs";
import { KbsyncError } from "../../lib/failure.ts";
import { type Mount, parseMounts } from "../../lib/mount-table.ts";
import { isCovered } from "../../system/unit.ts";
import { topFolders } from "./unit-checks.ts";
import { join } from "node:path/posix";

/** Variable in the units of `kbsync service install`, which show the program only its sources, each as a mount. */
const UNIT_VARIABLE = "KBSYNC_UNIT";

/** The sources as a unit shows them. */
export interface UnitWatch {
  /** Aborts when a source is no longer the folder at its path. */
  readonly signal: AbortSignal;
  problem(): KbsyncError | undefined;
  stop(): void;
}

/** Interval of the checks, in milliseconds. */
const CHECK_EVERY_MS = 10_000;

/**
 * Watches the mounts of a unit's sources. A unit mounts the folder that was at the source's path at its start. If that
 * folder is renamed or removed outside, the mount follows it, and only a restart shows its successor: the daemon ends with
 * `source_replaced` for the service manager to restart it. It also ends when a disk is mounted at or above a source: the
 * unit does not show the mount of a folder that was missing, and shows any other one writable. Does nothing outside a unit.
 */
export function watchUnit(
  sources: readonly { readonly absolutePath: string }[],
  env: NodeJS.ProcessEnv,
): UnitWatch {
  const unit = env[UNIT_VARIABLE];
  const moved = new AbortController();
  let problem: KbsyncError | undefined;
  const before = unit === undefined ? undefined : ownMounts();
  if (unit === undefined || before === undefined)
    return { signal: moved.signal, problem: () => undefined, stop: () => undefined };
  const paths = sources.map(({ absolutePath }) => absolutePath);
  const missing = new Set(paths.filter((path) => !existsSync(path)));
  const check = (): void => {
    const mounts = ownMounts() ?? before;
    const [first] = movedMounts(before, mounts, paths);
    const [late] = lateMounts(before, mounts, paths, missing);
    if (first !== undefined) problem = replaced(first.path, first.root);
    else if (late !== undefined) problem = mountedLate(late.path, late.mount);
    else return;
    moved.abort();
  };
  const timer = setInterval(check, CHECK_EVERY_MS).unref();
  return { signal: moved.signal, problem: () => problem, stop: () => clearInterval(timer) };
}

/** Marks the sources of which the unit shows only the state at its start with the unit's name. */
export function sourcesInUnit<T extends { readonly absolutePath: string }>(
  sources: readonly T[],
  env: NodeJS.ProcessEnv,
): readonly (T & { readonly unit?: string })[] {
  const unit = env[UNIT_VARIABLE];
  if (unit === undefined || unit === "") return sources;
  const top = topFolders();
  const paths = sources.map(({ absolutePath }) => absolutePath);
  return sources.map((source) => (isCovered(source.absolutePath, top, paths) ? { ...source, unit } : source));
}

/** Returns the mounts of this process, or undefined if unknown. */
function ownMounts(): readonly Mount[] | undefined {
  try {
    return parseMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  } catch {
    return undefined; // Without /proc there is nothing to compare.
  }
}

function replaced(path: string, root: string): KbsyncError {
  const what = root.endsWith("//deleted")
    ? "was removed"
    : `was renamed (it is ${root} now, within its disk)`;
  return new KbsyncError(
    `the folder that was at ${path} ${what}: only another start sees what is there now`,
    {
      code: "source_replaced",
      subject: path,
      retryable: true,
    },
  );
}

function mountedLate(path: string, mount: string): KbsyncError {
  return new KbsyncError(
    `something was mounted at ${mount}: only another start sees what is at ${path} now`,
    {
      code: "source_replaced",
      subject: path,
      retryable: true,
    },
  );
}

/**
 * Lists the mount points among `paths` that show a different folder than before, each with its new root. Leaves out a path
 * that is no longer a mount point. Pure.
 */
export function movedMounts(
  before: readonly Mount[],
  now: readonly Mount[],
  paths: readonly string[],
): { readonly path: string; readonly root: string }[] {
  return paths.flatMap((path) => {
    const was = uppermost(before, path);
    const is = uppermost(now, path);
    if (was === undefined || is === undefined || was.device !== is.device || was.root === is.root) return [];
    return [{ path, root: is.root }];
  });
}

/**
 * Lists the folders at or above which a mount has appeared since `before`, with the path of that mount. A unit does not
 * see such a mount's content, or sees it writable. `missing` names folders that did not exist. Leaves out a mount that
 * shows what the unit shows there anyway (autofs), and a folder that the unit shows without a mount of its own. Pure.
 */
export function lateMounts(
  before: readonly Mount[],
  now: readonly Mount[],
  paths: readonly string[],
  missing: ReadonlySet<string>,
): { readonly path: string; readonly mount: string }[] {
  const known = new Set(before.map(keyOf));
  const added = now.filter((mount) => !known.has(keyOf(mount)));
  return paths.flatMap((path) => {
    const shown = uppermost(before, path);
    if (shown === undefined && !missing.has(path)) return [];
    const late = added.findLast(
      (mount) => (path === mount.path || path.startsWith(`${mount.path}/`)) && !shows(mount, path, shown),
    );
    return late === undefined ? [] : [{ path, mount: late.path }];
  });
}

/** Whether a mount shows the same folder at a path as another mount does. */
function shows({ path: at, root, device }: Mount, path: string, other: Mount | undefined): boolean {
  return other?.device === device && join(root, path.slice(at.length)) === other.root;
}

/** The kernel reuses mount ids, so the id alone does not identify a mount. */
function keyOf({ id, device, root, path }: Mount): string {
  return JSON.stringify([id, device, root, path]);
}

/** The last mount at a path covers the others. */
function uppermost(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => mount.path === path);
}
