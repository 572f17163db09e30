import type { Progress } from "../../wire/daemon-status.ts";

/**
 * Time constants of the average speed, in milliseconds. A document that the service reads may take a minute, and the next one
 * a second, so their average needs longer.
 */
const TEXTS_MS = 120_000;
const DOCUMENTS_MS = 900_000;
/** Files and time that an average needs before it is shown: fewer would let the estimate jump. */
const FILES_MIN = 10;
const MEASURED_MS = 10_000;
/** An estimate is good for no more than this. */
const STEP_SECONDS = 10;

/** Opens an estimate. Texts and documents are measured apart, because they are sent side by side and differ a thousandfold. */
export function openTimeLeft() {
  const texts = openRate(TEXTS_MS);
  const documents = openRate(DOCUMENTS_MS);
  return {
    /** Records the progress at a time. `isRunning`: all work is known, and nothing holds it up. */
    sample: (
      progress: Pick<Progress, "done" | "total" | "documents">,
      isRunning: boolean,
      nowMs: number,
    ): void => {
      texts.sample(
        progress.done - progress.documents.done,
        progress.total - progress.documents.total,
        isRunning,
        nowMs,
      );
      documents.sample(progress.documents.done, progress.documents.total, isRunning, nowMs);
    },
    /** In rounded seconds. Null: nothing is left, or the speed is not steady yet. */
    seconds: (): number | null => {
      const seconds = Math.max(texts.seconds(), documents.seconds());
      return seconds === 0 || !Number.isFinite(seconds)
        ? null
        : STEP_SECONDS * Math.ceil(seconds / STEP_SECONDS);
    },
  };
}

/** The average speed of one kind of work. */
export type Rate = ReturnType<typeof openRate>;

/** Opens an average with a time constant in milliseconds. */
export function openRate(memoryMs: number) {
  // Exponentially weighted: what was done, and the time that it took.
  let files = 0;
  let ms = 0;
  let last = { done: 0, left: 0, atMs: 0, isRunning: false };
  return {
    sample: (done: number, total: number, isRunning: boolean, atMs: number): void => {
      if (last.isRunning && last.left > 0) {
        const tookMs = Math.max(0, atMs - last.atMs);
        const share = Math.exp(-tookMs / memoryMs);
        files = files * share + done - last.done;
        ms = ms * share + tookMs;
      }
      last = { done, left: Math.max(0, total - done), atMs, isRunning };
    },
    /** Null: nothing is left, or nothing was done. */
    perSecond: (): number | null => (last.left === 0 || files === 0 ? null : (1000 * files) / ms),
    /** 0: nothing is left; Infinity: not known. */
    seconds: (): number => {
      if (last.left === 0) return 0;
      const isSteady = last.isRunning && files >= FILES_MIN && ms >= MEASURED_MS;
      return isSteady ? (last.left * ms) / files / 1000 : Infinity;
    },
  };
}
