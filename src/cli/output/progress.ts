/** Progress of a pass, in actions. `total` may grow during the pass. */
export interface ProgressState {
  readonly done: number;
  readonly total: number;
  readonly failed: number;
}

/** Output of the progress: a redrawn bar on a terminal, plain lines otherwise. */
export interface ProgressOutput {
  /** Writes text of any origin and escapes control characters. */
  write(text: string): void;
  /** Writes control sequences. The caller escapes text of other origins (`visible`). */
  draw(text: string): void;
  readonly isTTY: boolean;
  readonly columns: number;
  /** Height of the terminal in lines; undefined if unknown. */
  readonly rows?: number | undefined;
}

export interface Progress {
  update(state: ProgressState, nowMs: number): void;
  /** Removes the bar, so that other text can follow. */
  finish(): void;
}

/** Shortest interval between redraws of the bar, in milliseconds. */
const BAR_EVERY_MS = 100;
/** Interval between plain lines, in milliseconds: enough for a log to show progress. */
const LINE_EVERY_MS = 5000;
const BAR_CHARS = 24;

/** Starts reporting a pass. Writes nothing while `total` is 0. */
export function startProgress(output: ProgressOutput, startMs: number): Progress {
  let lastMs = output.isTTY ? Number.NEGATIVE_INFINITY : startMs;
  let drawn = false;
  return {
    update: (state, nowMs) => {
      if (state.total === 0 || nowMs - lastMs < (output.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
      lastMs = nowMs;
      const line = progressLine(state, nowMs - startMs, output.isTTY);
      drawn = output.isTTY;
      if (output.isTTY) output.draw(`\r\u001b[K${line.slice(0, output.columns - 1)}`);
      else output.write(`${line}\n`);
    },
    finish: () => {
      if (drawn) output.draw("\r\u001b[K");
      drawn = false;
    },
  };
}

/** `  [######------] 1,204 of 20,000 files, 1,712/s, 11 s left, 2 failed`. */
export function progressLine(state: ProgressState, elapsedMs: number, bar: boolean): string {
  const { done, total, failed } = state;
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const perSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  const parts = [`${thousands(done)} of ${thousands(total)} files`];
  if (perSecond >= 1) parts.push(`${thousands(Math.round(perSecond))}/s`);
  if (perSecond > 0 && done < total) parts.push(`${duration((total - done) / perSecond)} left`);
  if (failed > 0) parts.push(`${thousands(failed)} failed`);
  const text = parts.join(", ");
  if (!bar) return `syncing: ${text}`;
  const filled = Math.round(share * BAR_CHARS);
  return `  [${"#".repeat(filled)}${"-".repeat(BAR_CHARS - filled)}] ${text}`;
}

/** `20000` → `20,000` in any locale, because scripts read the output too. */
export function thousands(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 delete`, `2,000 deletes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${thousands(count)} ${count === 1 ? one : many}`;
}

/** Seconds in words: `11 s`, `4 min`, `2 h 5 min`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats local date and time sortably. */
export function localTime(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
