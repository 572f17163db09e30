import { KbsyncError } from "../../../src/lib/failure.ts";
import type { Watch, WatchOptions } from "../../../src/sync/watch.ts";
import type { Clock } from "../virtual/clock.ts";
import type { Random } from "../virtual/random.ts";
import type { SimulatedProcess } from "../virtual/stage.ts";
import { SECOND } from "../history.ts";
import { SECOND_ROOT } from "./disk.ts";

/** Turns what happens on the disk into hints, as badly as a real watcher at its worst. */
export interface Watching {
  /** Something happened at a path of a source; "" is the first one's root. */
  changed(path: string): void;
  /** From now on hints are lost. */
  deafen(): void;
  /** Hints come again. `told`: the watcher noticed, and reports the whole source. */
  hearAgain(told: boolean): void;
  /** Some folder cannot be watched (with a reason), or all can again. */
  degrade(reason: string | undefined): void;
  /** What the daemon of a process gets in place of `watchSource`. */
  watchFor(process: SimulatedProcess): (options: WatchOptions) => Promise<Watch>;
}

/** Longest time until the watches are in place. */
const READY_MS_MAX = 1500;
/** Longest time from a change to its hint. */
const HINT_MS_MAX = 40;
/** How long watching everything anew takes. */
const RENEW_MS = 300;
/** Of all hints so many come twice. */
const DOUBLED = 0.1;

/** Starts with a watcher that hears. */
export function openWatching(clock: Clock, random: Random): Watching {
  const ears = new Set<(path: string | undefined) => void>();
  let errors = new Set<(reason: string) => void>();
  let deaf = 0;
  let reason: string | undefined;
  const tell = (path: string | undefined): void => {
    for (const ear of ears) ear(path);
  };

  return {
    changed: (path) => {
      if (deaf > 0 || reason !== undefined) return;
      tell(path === "" ? undefined : path);
      if (random.chance(DOUBLED)) tell(path === "" ? undefined : path);
    },
    deafen: () => {
      deaf += 1;
    },
    hearAgain: (told) => {
      deaf -= 1;
      if (told) tell(undefined);
    },
    degrade: (next) => {
      reason = next;
      if (next !== undefined) for (const error of errors) error(next);
    },
    watchFor:
      (process) =>
      async ({ root, rules, onDirty, onError, onReady }) => {
        const isSecond = root === SECOND_ROOT;
        let closed = false;
        let complained: string | undefined;
        const later = (ms: number, run: () => void): void => {
          clock.at(clock.nowMs() + ms, process, () => {
            if (!closed) run();
          });
        };
        const ear = (changed: string | undefined): void => {
          if (changed !== undefined && changed.startsWith(SECOND) !== isSecond) return;
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
          ears.add(ear);
          if (reason !== undefined) error(reason);
          onReady();
        });
        return await Promise.resolve({
          degraded: () => complained,
          renew: () => {
            later(RENEW_MS, () => {
              if (reason === undefined) complained = undefined;
              onDirty(undefined);
            });
          },
          close: async () => {
            closed = true;
            ears.delete(ear);
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
