import { KbsyncError } from "../../../src/lib/failure.ts";
import type { Watch, WatchOptions } from "../../../src/sync/watch/watch.ts";
import type { Clock } from "../virtual/clock.ts";
import type { Random } from "../virtual/random.ts";
import type { SimulatedProcess } from "../virtual/stage.ts";
import { SECOND } from "../history.ts";
import { watchTargetOf } from "../../../src/sync/watch/watch-target.ts";
import { SOURCE_ROOT, type Disk } from "./disk.ts";

/** Turns what happens on the disk into hints, as badly as a real watcher at its worst. */
export interface Watching {
  /** Something happened at a path of a source; "" is the first one's root. */
  changed(path: string): void;
  /** From now on hints are lost. */
  deafen(): void;
  /** Hints come again. `reported`: the watcher noticed, and reports the whole source. */
  hearAgain(reported: boolean): void;
  /** Some folder cannot be watched (with a reason), or all can again. */
  degrade(reason: string | undefined): void;
  /** What the daemon of a process gets in place of `watchSource`. */
  watchFor(process: SimulatedProcess): (options: WatchOptions) => Promise<Watch>;
}

/** Longest time until the watches are in place. */
const READY_MS_MAX = 1500;
/** Longest time from a change to its hint. */
const HINT_MS_MAX = 40;
/** How long watching everything again takes. */
const RENEW_MS = 300;
/** So often the watcher compares what its watches belong to with what is there. */
const GROUND_CHECK_MS = 2000;
/** Of all hints so many come twice. */
const DOUBLED = 0.1;

/** Starts with a watcher that reports events. */
export function openWatching(
  clock: Clock,
  random: Random,
  disk: Pick<Disk, "mountAt" | "mountNumbers">,
  { isMounted, hasInner }: { readonly isMounted: boolean; readonly hasInner: () => boolean },
): Watching {
  const listeners = new Set<(path: string | undefined) => void>();
  let errors = new Set<(reason: string) => void>();
  let deaf = 0;
  let reason: string | undefined;
  const report = (path: string | undefined): void => {
    for (const listener of listeners) listener(path);
  };

  return {
    changed: (path) => {
      if (deaf > 0 || reason !== undefined) return;
      report(path === "" ? undefined : path);
      if (random.chance(DOUBLED)) report(path === "" ? undefined : path);
    },
    deafen: () => {
      deaf += 1;
    },
    hearAgain: (reported) => {
      deaf -= 1;
      if (reported) report(undefined);
    },
    degrade: (next) => {
      reason = next;
      if (next !== undefined) for (const error of errors) error(next);
    },
    watchFor:
      (process) =>
      async ({ root, rules, onDirty, onError, onReady }) => {
        const isSecond = root !== SOURCE_ROOT;
        let closed = false;
        let complained: string | undefined;
        const later = (ms: number, run: () => void): void => {
          clock.at(clock.nowMs() + ms, process, () => {
            if (!closed) run();
          });
        };
        /** Watches die with the mount that they were set on. */
        let watched = new Set<number>();
        let ground = "";
        const watchAll = (): void => {
          watched = new Set(disk.mountNumbers());
          if (isMounted) ground = watchTargetOf(root);
        };
        const renew = (): void => {
          later(RENEW_MS, () => {
            watchAll();
            if (reason === undefined) complained = undefined;
            onDirty(undefined);
          });
        };
        const checkGround = (): void => {
          if (watchTargetOf(root) !== ground) {
            ground = watchTargetOf(root);
            onDirty(undefined);
            renew();
          }
          later(GROUND_CHECK_MS, checkGround);
        };
        if (isMounted) later(GROUND_CHECK_MS, checkGround);
        const listener = (changed: string | undefined): void => {
          if (isMounted && changed !== undefined && !watched.has(disk.mountAt(changed))) return;
          if (changed !== undefined && (hasInner() && changed.startsWith(SECOND)) !== isSecond) return;
          const path = isSecond ? changed?.slice(SECOND.length) : changed;
          const whole = path === undefined || rules.isRulesFile(path);
          later(random.between(0, HINT_MS_MAX), () => onDirty(whole ? undefined : path));
        };
        const error = (words: string): void => {
          if (!process.alive || closed) return;
          complained = words;
          later(1, () => onError(watchFailure(words)));
        };
        errors = new Set([...errors, error]);
        later(random.between(1, READY_MS_MAX), () => {
          watchAll();
          listeners.add(listener);
          if (reason !== undefined) error(reason);
          onReady();
        });
        return await Promise.resolve({
          degraded: () => complained,
          renew,
          close: async () => {
            closed = true;
            listeners.delete(listener);
            errors.delete(error);
            await Promise.resolve();
          },
        });
      },
  };
}

function watchFailure(words: string): KbsyncError {
  return new KbsyncError(words, { code: "watch_limit", subject: "the simulation", retryable: true });
}
