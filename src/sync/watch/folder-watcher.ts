import { readdirSync, type Dirent } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { FSWatcher } from "chokidar";
import type { FolderPath } from "../plan/model.ts";
import type { Rules } from "../scan/rules/rules.ts";

type ScanStream = ReturnType<FSWatcher["createScanStream"]>;
type ScanFilters = Parameters<FSWatcher["createScanStream"]>[1];

/**
 * A chokidar that handles folders only. One inotify watch on a folder reports every file in it, so chokidar needs no list
 * of files; but it builds one, with an lstat of every file in the tree at once. At 100,000 files in 1,000 folders that takes
 * 500 MB and 2 s, of which the event loop is blocked for 1 s; without it, 80 MB and 0.4 s. Chokidar's `raw` events report
 * files.
 *
 * If a later chokidar stops calling the overridden method, it works as before at the higher cost.
 */
export class FolderWatcher extends FSWatcher {
  override createScanStream(root: string, filters: ScanFilters = {}): ScanStream {
    const wanted = filters.directoryFilter;
    const folders: { path: string; fullPath: string; basename: string; stats: Dirent }[] = [];
    for (const stats of listFolders(root)) {
      const entry = { path: stats.name, fullPath: join(root, stats.name), basename: stats.name, stats };
      // chokidar asks an entry only whether it is a folder or a link. A Dirent answers that like Stats.
      if (typeof wanted !== "function" || wanted(entry as never)) folders.push(entry);
    }
    return Readable.from(folders) as unknown as ScanStream; // chokidar reads and destroys it like any Readable
  }
}

function listFolders(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  } catch {
    // As in chokidar's own listing: a missing or inaccessible folder has no children. The scan reports it.
    return [];
  }
}

export function watcherOf(
  pathOf: (absolutePath: string) => FolderPath | undefined,
  rules: Pick<Rules, "entersFolder">,
): FolderWatcher {
  return new FolderWatcher({
    ignoreInitial: true,
    followSymlinks: false,
    atomic: false,
    // The scan reports what we cannot read.
    ignorePermissionErrors: true,
    ignored: (absolutePath, stats) => {
      if (stats === undefined) return false;
      const path = pathOf(absolutePath);
      if (path === undefined || path === "") return false;
      return !stats.isDirectory() || !rules.entersFolder(path).wanted;
    },
  });
}
