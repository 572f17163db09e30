import { codeOf, type FailureFacts, messageOf } from "../../lib/failure.ts";
import type { RelativePath, FolderPath } from "../plan/model.ts";

/** What the watch of a source reports. */
export type Hint =
  /** Paths that may have changed, each a file or a folder with all below it; undefined is the whole source. */
  | { readonly kind: "dirty"; readonly paths: readonly RelativePath[] | undefined }
  /**
   * Every folder is watched: at the start and after each renewal. The whole source must be scanned then. `complete` is false if
   * some folder could not be watched.
   */
  | { readonly kind: "ready"; readonly complete: boolean }
  /**
   * A folder cannot be watched, so some changes go unnoticed from now on. Reported once per cause, by the parts of an error: an
   * Error loses its own fields between threads.
   */
  | { readonly kind: "failed"; readonly message: string; readonly facts: FailureFacts };

/** Reports each kind of problem once until `reset`: a limit affects every folder. */
export function openProblems(report: (hint: Hint) => void, path: string) {
  let reported = new Set<string>();
  return {
    report: (error: unknown): void => {
      const code = codeOf(error) ?? "UNKNOWN";
      if (reported.has(code)) return;
      reported.add(code);
      report(explain(error, code, path));
    },
    has: (): boolean => reported.size > 0,
    reset: (): void => {
      reported = new Set();
    },
  };
}

/** Collects what arrives in one turn of the event loop, and sends it at the end of the turn. */
export function openDirtyPaths(report: (hint: Hint) => void): (path: FolderPath) => void {
  let dirty = new Set<RelativePath>();
  let allDirty = false;
  let flushing: NodeJS.Immediate | undefined;
  const flush = (): void => {
    flushing = undefined;
    report({ kind: "dirty", paths: allDirty ? undefined : [...dirty] });
    allDirty = false;
    dirty = new Set();
  };
  return (path) => {
    if (path === "") allDirty = true;
    else dirty.add(path);
    flushing ??= setImmediate(flush);
  };
}

function explain(error: unknown, code: string, path: string): Hint {
  const failed = (message: string, facts: Pick<FailureFacts, "code" | "hint">): Hint => ({
    kind: "failed",
    message,
    facts: { ...facts, subject: path, retryable: true },
  });
  if (code === "ENOSPC")
    return failed(`not every folder below ${path} can be watched: the system's limit of watches is reached`, {
      code: "watch_limit",
      hint: "Raise it with `sysctl fs.inotify.max_user_watches=524288`, for good in /etc/sysctl.d.",
    });
  if (code === "EMFILE" || code === "ENFILE")
    return failed(`${path} cannot be watched: too many open files or watchers`, {
      code: "watch_limit",
      hint: "Raise it with `sysctl fs.inotify.max_user_instances=512`, and `ulimit -n`.",
    });
  return failed(`watching ${path} failed: ${messageOf(error)}`, { code: "watch_failed" });
}
