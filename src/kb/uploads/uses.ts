import type { FileStore } from "./file-store.ts";

/** Counts the uses of each file. A file in use is not removed, and a use waits for a removal in progress. */
export function openUses(removeFile: FileStore["remove"]): Pick<FileStore, "hold" | "remove"> {
  /** How many uses each file has. */
  const uses = new Map<string, number>();
  /** Removals in progress. */
  const removals = new Map<string, Promise<boolean>>();

  return {
    hold: async (token, work) => {
      // Counts first, so that a later removal sees the use.
      uses.set(token, (uses.get(token) ?? 0) + 1);
      try {
        // The work itself checks whether the file is gone.
        await removals.get(token)?.catch(() => undefined);
        return await work();
      } finally {
        const left = (uses.get(token) ?? 1) - 1;
        if (left === 0) uses.delete(token);
        else uses.set(token, left);
      }
    },
    remove: async (token, forget) => {
      if (uses.has(token) || removals.has(token)) return false;
      const removal = removeFile(token, forget);
      removals.set(token, removal);
      try {
        return await removal;
      } finally {
        removals.delete(token);
      }
    },
  };
}
