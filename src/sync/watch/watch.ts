import type { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Rules } from "../scan/rules/rules.ts";
import { remoteFileSystem } from "./network.ts";
import { watchInThread } from "./thread.ts";

export interface WatchOptions {
  readonly root: string;
  readonly rules: Rules;
  /** A path that may have changed, a file or a folder with all below it; undefined is the whole source. */
  readonly onDirty: (path: RelativePath | undefined) => void;
  /** Something cannot be watched; `degraded` then returns the reason. */
  readonly onError: (error: KbsyncError) => void;
  /** Called once, when every folder is watched. Earlier changes may go unnoticed: scan the whole source after it. */
  readonly onReady: () => void;
}

/** A watched source. */
export type Watch = Awaited<ReturnType<typeof watchSource>>;

/**
 * Watches the wanted folders of a source, with chokidar in a separate thread. Hints are unreliable: they may be excessive,
 * duplicate or late, and name paths that are unchanged or unwanted. Only a scan shows the truth. After a flood that may have lost
 * events, and after a change of an ignore file, the watch restarts and the whole source is reported. Waits for a
 * missing root.
 */
export async function watchSource({ root, rules, onDirty, onError, onReady }: WatchOptions) {
  const remote = remoteFileSystem(root);
  const always =
    remote === undefined ? undefined : `it is on ${remote}, where changes made elsewhere give no event here`;
  let reason = always;
  let announced = false;
  let closed = false;
  let closing: Promise<void> | undefined;

  const watch = watchInThread(
    { ...rules.source, absolutePath: root },
    {
      onDirty: (paths) => {
        if (closed) return;
        if (paths === undefined) onDirty(undefined);
        else for (const path of paths) onDirty(path);
      },
      onError: (error) => {
        if (closed) return;
        reason = error.message;
        onError(error);
      },
      onReady: (complete) => {
        if (closed) return;
        if (complete) reason = always;
        if (announced) onDirty(undefined);
        else onReady();
        announced = true;
      },
    },
  );
  return {
    /** Why some changes go unnoticed, for a person, so that the source must be scanned often; undefined if none do. */
    degraded: (): string | undefined => reason,
    /**
     * Restarts the watch of every folder and then reports the whole source. For changes that a scan found without a hint: some folder
     * may have no watch. Takes effect at most once in 5 s.
     */
    renew: (): void => {
      if (!closed) watch.renew();
    },
    /** Stops all callbacks at once. May be called again. */
    close: async (): Promise<void> => {
      closed = true;
      closing ??= watch.close();
      await closing;
    },
  };
}
