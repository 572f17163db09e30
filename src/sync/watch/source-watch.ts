import { existsSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { pathBelow } from "../../lib/path-below.ts";
import { isFolderAt } from "../scan/rules/ignore-files.ts";
import { openRules, type WatchedSource } from "../scan/rules/rules.ts";
import type { FloodGauge } from "./flood.ts";
import { FolderWatcher, watcherOf } from "./folder-watcher.ts";
import { watchTargetOf } from "./watch-target.ts";
import { type Hint, openDirtyPaths, openProblems } from "./hints.ts";

/** The watcher of one source, in the thread that runs it. */
export interface SourceWatch {
  /** Restarts the watch of every folder, then reports that it is ready. */
  renew(): void;
  close(): Promise<void>;
}

/**
 * Delay before a removed folder is checked: if it exists again, its watch may belong to the old folder and be dead. chokidar
 * 6.0 lost about one folder in fifty this way when `mkdir` quickly followed `rm -r`.
 */
const RETURN_CHECK_MS = 400;

/** Interval at which the folder, the mounts at and below it, and the files of rules elsewhere are compared with the watched ones. */
const TARGET_CHECK_MS = 2000;

/** Minimum time between two renewals under steady floods. */
const RENEW_PAUSE_MS = 5_000;

/**
 * Watches a source's folders with chokidar. Restarts the watch when the root is another folder, or something was mounted or
 * unmounted. Decides nothing: a hint is only a path to check. The hint for a folder follows the start of its watch, so a
 * scan after the hint misses nothing in it.
 */
export function openSourceWatch(
  source: WatchedSource,
  onHint: (hint: Hint) => void,
  flood: FloodGauge,
): SourceWatch {
  const rules = openRules(source);
  let root = realRoot(source.absolutePath);
  /** Identifies what the watches are attached to, and the rules that they do not see. */
  const targetNow = (): string => `${watchTargetOf(source.absolutePath)} ${rules.outsideMark()}`;
  let target = "";
  let watcher: FolderWatcher | undefined;
  let closed = false;
  const report = (hint: Hint): void => {
    if (!closed) onHint(hint);
  };
  const mark = openDirtyPaths(report);

  const watchAgain = (): void => {
    rules.reload();
    mark("");
    renew();
  };
  const onRaw = (name: unknown, details: unknown): void => {
    flood.count();
    const watched = watchedPathOf(details);
    // inotify reports the removal of a watched folder as an event with the folder's own name inside it.
    if (name === basename(watched)) checkReturn(watched);
    const absolutePath = typeof name === "string" ? join(watched, name) : watched;
    const path = pathBelow(root, absolutePath);
    // If the root is missing, chokidar waits for it in a folder above.
    if (path === undefined && pathBelow(absolutePath, root) !== undefined) mark("");
    if (path === undefined) return;
    if (rules.isRulesFile(path)) watchAgain();
    else if (path === "" || rules.wants(path).wanted || rules.entersFolder(path).wanted) mark(path);
  };

  const onFolder = (absolutePath: string): void => {
    const path = pathBelow(root, absolutePath);
    if (path === undefined) return;
    rules.reload(); // a folder that is moved here brings its ignore file without a separate event
    mark(path);
  };

  const problems = openProblems(report, source.absolutePath);

  const open = (): void => {
    problems.reset();
    root = realRoot(source.absolutePath);
    target = targetNow();
    watcher = watcherOf((absolutePath) => pathBelow(root, absolutePath), rules);
    watcher.on("raw", (_event, name, details) => onRaw(name, details));
    watcher.on("addDir", onFolder);
    watcher.on("unlinkDir", onFolder);
    watcher.on("error", problems.report);
    watcher.on("ready", () => report({ kind: "ready", complete: !problems.has() }));
    watcher.add(root);
  };

  let isRenewing = false;
  let isStale = false;
  /** Restarts the watch as long as it is stale, with a pause after each time. */
  const renewStale = async (): Promise<void> => {
    isRenewing = true;
    while (isStale) {
      isStale = false;
      await watcher?.close();
      if (closed) return;
      rules.reload();
      open();
      await new Promise((resolve) => {
        setTimeout(resolve, RENEW_PAUSE_MS).unref();
      });
    }
    isRenewing = false;
  };
  const renew = (): void => {
    isStale = true;
    if (!isRenewing && !closed) void renewStale();
  };
  const checkReturn = openReturnCheck(renew);

  const checks = setInterval(() => {
    const now = targetNow();
    if (now === target) return;
    target = now;
    watchAgain();
  }, TARGET_CHECK_MS).unref();
  const stopListening = flood.listen(renew);
  open();
  return {
    renew,
    close: async () => {
      closed = true;
      clearInterval(checks);
      stopListening();
      await watcher?.close();
    },
  };
}

/** Calls `onReturned` if one of the removed folders exists again after a moment. */
function openReturnCheck(onReturned: () => void): (absolutePath: string) => void {
  const removed = new Set<string>();
  return (absolutePath) => {
    removed.add(absolutePath);
    if (removed.size > 1) return;
    setTimeout(() => {
      const returned = [...removed].some(
        (path) => isFolderAt(path) && !existsSync(join(path, basename(path))),
      );
      removed.clear();
      if (returned) onReturned();
    }, RETURN_CHECK_MS).unref();
  };
}

/** Resolves the root, because chokidar does not go through a link. */
function realRoot(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // missing: chokidar waits for it in the nearest existing folder above
  }
}

/** The folder of an event. chokidar does not document these details, so they are validated. */
function watchedPathOf(details: unknown): string {
  const known = typeof details === "object" && details !== null && "watchedPath" in details;
  return known && typeof details.watchedPath === "string" ? details.watchedPath : "";
}
