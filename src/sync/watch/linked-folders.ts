import { watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** Folders that links lead to and that the rules leave out at their own place, so that nothing else watches them. */
export interface LinkedFolders {
  /** Watches just these, by absolute paths. One that is not there is watched once an event tells of it. */
  set(folders: ReadonlySet<string>): void;
  /** Another folder may stand at this path, or none: what is at or below it is watched anew. */
  exchanged(path: string): void;
  close(): void;
}

/**
 * Opens the watches of linked folders: one of the system's own for each, and none for what is below it. `onEvent` is
 * called with what may have changed; for a folder itself as soon as it is watched, for what is in it may be new.
 */
export function openLinkedFolders(
  onEvent: (absolutePath: string) => void,
  onError: (error: unknown) => void,
): LinkedFolders {
  let wanted: ReadonlySet<string> = new Set();
  const watches = new Map<string, FSWatcher>();

  const begin = (folder: string): void => {
    try {
      const opened = watch(folder, { persistent: false }, (kind, name) => {
        const path = name === null ? folder : join(folder, name);
        if (kind === "rename") exchanged(path);
        // The end of a folder is told as an event of its own name in itself.
        if (kind === "rename" && path.slice(folder.length) === folder.slice(folder.lastIndexOf("/"))) {
          exchanged(folder);
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
      // What is not there, or closed to us, the scan finds; the folder above tells when that changes.
      if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "EACCES") onError(error);
    }
  };
  const end = (folder: string): void => {
    watches.get(folder)?.close();
    watches.delete(folder);
  };
  const exchanged = (path: string): void => {
    for (const folder of wanted) {
      if (folder !== path && !folder.startsWith(`${path}/`)) continue;
      end(folder);
      begin(folder);
    }
  };

  return {
    set: (folders) => {
      wanted = folders;
      for (const folder of watches.keys()) if (!folders.has(folder)) end(folder);
      for (const folder of folders) if (!watches.has(folder)) begin(folder);
    },
    exchanged,
    close: () => {
      wanted = new Set();
      for (const folder of watches.keys()) end(folder);
    },
  };
}
