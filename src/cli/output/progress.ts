/** Where a pass stands. Counts are of actions, `total` may grow while the pass goes on. */
export interface ProgressState {
  readonly done: number;
  readonly total: number;
  readonly failed: number;
}

/** What progress is written to; a terminal gets a bar that redraws itself, anything else plain lines. */
export interface ProgressOutput {
  /** Writes text of any origin: what a terminal would obey is escaped. */
  write(text: string): void;
  /** Writes the program's own control sequences; text of other origins must be escaped before (`visible`). */
  draw(text: string): void;
  readonly isTTY: boolean;
  readonly columns: number;
  /** Lines that a terminal has room for; undefined: it does not tell. */
  readonly rows?: number | undefined;
}

export interface Progress {
  update(state: ProgressState, nowMs: number): void;
  /** Removes the bar, so that other text can follow. */
  finish(): void;
}

/** A bar is redrawn at most this often, in milliseconds: faster cannot be read and costs CPU. */
const BAR_EVERY_MS = 100;
/** Plain lines come this often, in milliseconds: a log should tell that work goes on, not be full of it. */
const LINE_EVERY_MS = 5000;
const BAR_CHARS = 24;

/** Starts telling of a pass. Nothing is written before there is something to do. */
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

/** `20000` → `20,000`, whatever the locale: output is for scripts too. */
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

/** Date and time where the person is, in an order that sorts. */
export function localTime(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
