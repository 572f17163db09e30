import { existsSync, readFileSync } from "node:fs";
import { KbsyncError } from "../../lib/failure.ts";
import { type Mount, parseMounts } from "../../lib/mount-table.ts";
import { lateMounts, movedMounts } from "../../system/moved-mounts.ts";
import { isCovered } from "../../system/unit.ts";
import { topFolders } from "./unit-checks.ts";

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
