import type { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { remoteFileSystem } from "./network.ts";
import { watchInThread } from "./thread.ts";

export interface WatchOptions {
  readonly root: string;
  readonly rules: Rules;
  /** A path that may have changed, a file or a folder with all below it; undefined is the whole source. */
  readonly onDirty: (path: RelativePath | undefined) => void;
  /** Something cannot be watched; `degraded` then says so too. */
  readonly onError: (error: KbsyncError) => void;
  /** Once, when every folder is watched. Changes before it may go unseen: scan the whole source after it. */
  readonly onReady: () => void;
}

/** A watched source. */
export interface Watch {
  /** Why some changes go unseen, in words, so that the source must be scanned often; undefined while all are seen. */
  degraded(): string | undefined;
  /**
   * Watches every folder anew and then reports the whole source. For changes that a scan found and no hint told:
   * there may be a folder without a watch. Done once in 5 s at most, however often it is asked for.
   */
  renew(): void;
  /** From the call on no callback is called. May be called again. */
  close(): Promise<void>;
}

/**
 * Watches the folders of a source that the rules let in, with chokidar in a thread of its own. Hints are only hints:
 * too many, doubled, late, of paths that did not change or that are not wanted; the truth is what a scan finds. What a
 * scan found links to lead to is watched as well, and a change there is told of the links' paths too. After a
 * flood that may have cost events, and when an ignore file changed, the folders are watched anew and the whole source
 * is reported. A root that is missing is waited for.
 */
export async function watchSource({ root, rules, onDirty, onError, onReady }: WatchOptions): Promise<Watch> {
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
        else {
          for (const path of paths) {
            onDirty(path);
            for (const link of rules.links.touchedBy(path)) onDirty(link);
          }
        }
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
  const follow = (): void => {
    if (!closed) watch.follow(rules.links.watches());
  };
  rules.links.listen(follow);
  follow(); // a scan may have been before
  return {
    degraded: () => reason,
    renew: () => {
      if (!closed) watch.renew();
    },
    close: async () => {
      closed = true;
      rules.links.listen(undefined);
      closing ??= watch.close();
      await closing;
    },
  };
}
