import { existsSync, readFileSync } from "node:fs";
import type { Logger } from "pino";
import { KbsyncError } from "../lib/failure.ts";
import { type Mount, parseMounts } from "../lib/mount-table.ts";
import { movedMounts } from "../system/moved-mounts.ts";

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
 * daemon ends then, with `source_replaced`, for the service manager to start it again. A source that was not there at the
 * start is told, for the same reason. Outside of such a unit nothing is looked at.
 */
export function watchUnit(
  sources: readonly { readonly absolutePath: string }[],
  env: NodeJS.ProcessEnv,
  log: Logger,
): UnitWatch {
  const unit = env[UNIT_VARIABLE];
  const moved = new AbortController();
  let problem: KbsyncError | undefined;
  const before = unit === undefined ? undefined : ownMounts();
  if (unit === undefined || before === undefined)
    return { signal: moved.signal, problem: () => undefined, stop: () => undefined };
  const paths = sources.map(({ absolutePath }) => absolutePath);
  for (const path of paths)
    if (!existsSync(path)) log.warn({ code: "source_unseen", subject: path }, unseen(path, unit));
  const look = (): void => {
    const [first] = movedMounts(before, ownMounts() ?? before, paths);
    if (first === undefined) return;
    problem = replaced(first.path, first.root);
    moved.abort();
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return { signal: moved.signal, problem: () => problem, stop: () => clearInterval(timer) };
}

/** Undefined where the system does not tell. */
function ownMounts(): readonly Mount[] | undefined {
  try {
    return parseMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  } catch {
    return undefined; // Without /proc nothing can be compared, and the sources are synced as they are seen.
  }
}

function unseen(path: string, unit: string): string {
  return `${path} is not there, or not shown to ${unit}: when it is there, \`kbsync service install\` lets the unit see it`;
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
