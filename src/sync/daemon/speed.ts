/** How fast work goes, over the last seconds. */
export interface Speed {
  /** So much was done at that time. */
  sample(done: number, nowMs: number): void;
  /** Undefined when nothing was done lately, or it is too early to say. */
  perSecond(nowMs: number): number | undefined;
}

/** Over this time: long enough that a large file is no standstill, short enough to follow a change. */
const WINDOW_MS = 15_000;

/** Nothing is known of the speed. */
export function openSpeed(): Speed {
  let samples: { readonly done: number; readonly atMs: number }[] = [];
  return {
    sample: (done, atMs) => {
      // Of those before the window one is kept: what was done since then is what the window tells.
      const from = samples.findLastIndex((sample) => atMs - sample.atMs >= WINDOW_MS);
      samples = [...samples.slice(Math.max(0, from)), { done, atMs }];
    },
    perSecond: (nowMs) => {
      const inside = samples.filter(({ atMs }) => nowMs - atMs < WINDOW_MS);
      const first = inside[0];
      const last = inside.at(-1);
      if (first === undefined || last === undefined || last.done === first.done) return undefined;
      return (1000 * (last.done - first.done)) / (last.atMs - first.atMs);
    },
  };
}
