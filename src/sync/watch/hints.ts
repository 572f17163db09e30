import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { RelativePath, FolderPath } from "../plan/model.ts";

/** Callbacks for what a source's watcher sees. They must not throw. */
export interface Hints {
  /** Paths that may have changed, each a file or a folder with all below it; undefined is the whole source. */
  readonly onDirty: (paths: readonly RelativePath[] | undefined) => void;
  /** A folder cannot be watched, so some changes go unnoticed from now on. Called once per cause. */
  readonly onError: (error: KbsyncError) => void;
  /**
   * Every folder is watched. Called at the start and after each renewal; the whole source must be scanned then. `complete` is
   * false if some folder could not be watched.
   */
  readonly onReady: (complete: boolean) => void;
}

/** Reports each kind of problem once until `reset`: a limit affects every folder. */
export function openProblems(onError: Hints["onError"], path: string, isClosed: () => boolean) {
  let reported = new Set<string>();
  return {
    report: (error: unknown): void => {
      const code = codeOf(error) ?? "UNKNOWN";
      if (isClosed() || reported.has(code)) return;
      reported.add(code);
      onError(explain(error, code, path));
    },
    has: (): boolean => reported.size > 0,
    reset: (): void => {
      reported = new Set();
    },
  };
}

/** Collects what arrives in one turn of the event loop, and sends it at the end of the turn. */
export function openDirtyPaths(
  { onDirty }: Pick<Hints, "onDirty">,
  isClosed: () => boolean,
): (path: FolderPath) => void {
  let dirty = new Set<RelativePath>();
  let allDirty = false;
  let flushing: NodeJS.Immediate | undefined;
  const flush = (): void => {
    flushing = undefined;
    if (isClosed()) return;
    if (allDirty) onDirty(undefined);
    else if (dirty.size > 0) onDirty([...dirty]);
    allDirty = false;
    dirty = new Set();
  };
  return (path) => {
    if (path === "") allDirty = true;
    else dirty.add(path);
    flushing ??= setImmediate(flush);
  };
}

function explain(error: unknown, code: string, path: string): KbsyncError {
  const facts = { subject: path, retryable: true, cause: error };
  if (code === "ENOSPC") {
    return new KbsyncError(
      `not every folder below ${path} can be watched: the system's limit of watches is reached`,
      {
        ...facts,
        code: "watch_limit",
        hint: "Raise it with `sysctl fs.inotify.max_user_watches=524288`, for good in /etc/sysctl.d.",
      },
    );
  }
  if (code === "EMFILE" || code === "ENFILE") {
    return new KbsyncError(`${path} cannot be watched: too many open files or watchers`, {
      ...facts,
      code: "watch_limit",
      hint: "Raise it with `sysctl fs.inotify.max_user_instances=512`, and `ulimit -n`.",
    });
  }
  return new KbsyncError(`watching ${path} failed: ${messageOf(error)}`, { ...facts, code: "watch_failed" });
}
