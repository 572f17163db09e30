import { existsSync, readFileSync } from "node:fs";
import { KbsyncError } from "../../lib/failure.ts";
import { type Mount, parseMounts } from "../../lib/mount-table.ts";
import { lateMounts, movedMounts } from "../../system/moved-mounts.ts";
import { isCovered } from "../../system/unit.ts";
import { topFolders } from "./unit-checks.ts";

/** Set in the units that `kbsync service install` writes: they show the program its sources alone, each mounted by itself. */
export const UNIT_VARIABLE = "KBSYNC_UNIT";

/** The sources as a unit shows them. */
export interface UnitWatch {
  /** Aborted when a source is not what its path says any more. */
  readonly signal: AbortSignal;
  problem(): KbsyncError | undefined;
  stop(): void;
}

/** How often it is looked, in milliseconds. */
const LOOK_EVERY_MS = 10_000;

/**
 * A source that is mounted by itself is the folder that was at its path when the unit started. When that one is renamed or
 * removed outside, the mount follows it, and whatever takes its place is never seen: only another start shows it. So the
 * daemon ends then, with `source_replaced`, for the service manager to start it again. So it does when a disk is mounted at
 * a source or above it: where the folder was not there the unit does not show it, and where it was the mount comes into the
 * unit as it is outside, writable. Outside of such a unit nothing is looked at.
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
  const look = (): void => {
    const mounts = ownMounts() ?? before;
    const [first] = movedMounts(before, mounts, paths);
    const [late] = lateMounts(before, mounts, paths, missing);
    if (first !== undefined) problem = replaced(first.path, first.root);
    else if (late !== undefined) problem = mountedLate(late.path, late.mount);
    else return;
    moved.abort();
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return { signal: moved.signal, problem: () => problem, stop: () => clearInterval(timer) };
}

/** The sources, those with the unit's name of which it shows only what was there when it started. */
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

/** Undefined where the system does not tell. */
function ownMounts(): readonly Mount[] | undefined {
  try {
    return parseMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  } catch {
    return undefined; // Without /proc nothing can be compared, and the sources are synced as they are seen.
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
