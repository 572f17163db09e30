import { watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** Targets of links that the rules exclude at their own paths, so that no other watch covers them. */
export type LinkedFolders = ReturnType<typeof openLinkedFolders>;

/**
 * Opens the watches of linked folders: a system watch per folder, not recursive. Calls `onEvent` with paths that may have
 * changed. Also calls it with a folder when its watch starts, because its contents may be new.
 */
export function openLinkedFolders(
  onEvent: (absolutePath: string) => void,
  onError: (error: unknown) => void,
) {
  let wanted: ReadonlySet<string> = new Set();
  const watches = new Map<string, FSWatcher>();

  const start = (folder: string): void => {
    try {
      const opened = watch(folder, { persistent: false }, (kind, name) => {
        const path = name === null ? folder : join(folder, name);
        if (kind === "rename") replaced(path);
        // The system reports the end of a folder as an event with the folder's own name inside it.
        if (kind === "rename" && path.slice(folder.length) === folder.slice(folder.lastIndexOf("/"))) {
          replaced(folder);
        }
        onEvent(path);
      });
      opened.on("error", (error) => {
        end(folder);
        onError(error);
      });
      watches.set(folder, opened);
      onEvent(folder);
    } catch (error) {
      const code = codeOf(error);
      // The scan finds missing and inaccessible folders. The folder above reports when that changes.
      if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES") onError(error);
    }
  };
  const end = (folder: string): void => {
    watches.get(folder)?.close();
    watches.delete(folder);
  };
  /** Another folder, or none, may be at this path. Restarts the watch at and below it. */
  const replaced = (path: string): void => {
    for (const folder of wanted) {
      if (folder !== path && !folder.startsWith(`${path}/`)) continue;
      end(folder);
      start(folder);
    }
  };

  return {
    /** Replaces the watched folders, given as absolute paths. A missing one is watched once an event reports it. */
    set: (folders: ReadonlySet<string>): void => {
      wanted = folders;
      for (const folder of watches.keys()) if (!folders.has(folder)) end(folder);
      for (const folder of folders) if (!watches.has(folder)) start(folder);
    },
    replaced,
    close: (): void => {
      wanted = new Set();
      for (const folder of watches.keys()) end(folder);
    },
  };
}
