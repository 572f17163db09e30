import { openFairLine } from "./fair-line.ts";

/**
 * A time slice of each turn of the event loop for short tasks of many tenants, which take turns. A task may continue in
 * promises: what it does before the loop continues counts.
 */
export interface LoopTurns {
  /** Runs a task in this turn of the loop or a later one, in order within its path. */
  run(this: void, path: readonly string[], task: () => void): void;
}

export interface LoopTurnsOptions {
  /** Longest time of tasks in one turn, beyond which no other one begins. */
  readonly sliceMs: number;
  /** Monotonic clock. */
  readonly nowMs?: () => number;
}

/** Opens turns. A burst of tasks of one path delays the task of another by one turn. */
export function openLoopTurns({ sliceMs, nowMs = () => performance.now() }: LoopTurnsOptions): LoopTurns {
  const line = openFairLine<{ readonly path: readonly string[]; readonly task: () => void }>();
  /** End of the slice of this turn; undefined: it has not begun. */
  let endMs: number | undefined;

  const endTurn = (): void => {
    endMs = undefined;
  };
  // One immediate for each task: promises continue between two of them.
  const step = (): void => {
    if (endMs === undefined) {
      endMs = nowMs() + sliceMs;
      // Runs in the next turn before the tasks that wait for it, because it is queued before them.
      setImmediate(endTurn);
    } else if (nowMs() >= endMs) {
      setImmediate(step);
      return;
    }
    const next = line.shift();
    if (next === undefined) return;
    line.charge(next.path, 1);
    next.task();
  };

  return {
    run: (path, task) => {
      line.push(path, { path, task });
      setImmediate(step);
    },
  };
}
