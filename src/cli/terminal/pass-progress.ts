import type { DaemonStatus } from "../../sync/daemon.ts";
import type { Context } from "../output/context.ts";
import { counted, duration, thousands } from "../output/progress.ts";
import { canRedraw } from "../output/terminal.ts";
import { styleOf } from "./style.ts";
import { wrapped } from "./wrap.ts";

/** The fields of a daemon's status that a bar shows. */
export type PassStatus = Pick<DaemonStatus, "progress" | "service"> & {
  readonly sources: readonly Pick<DaemonStatus["sources"][number], "files" | "waiting" | "compared">[];
};

/** The progress of a pass. */
export interface PassState {
  /** Files of this pass that are sent, or failed. */
  readonly done: number;
  readonly total: number;
  readonly failed: number;
  /** PDFs and images among the files that are left. */
  readonly documentsLeft: number;
  readonly deletesLeft: number;
  /** The folders are being compared: more may be found. */
  readonly isScanning: boolean;
  /** Nothing is sent until the service answers. */
  readonly isServiceAway: boolean;
  /** Undefined: not known yet. */
  readonly secondsLeft: number | undefined;
}

/** Shows the progress of a pass until `finish`. */
export interface PassProgress {
  update(status: PassStatus, nowMs: number): void;
  /** Removes the bar. */
  finish(): void;
}

/** Shortest interval between redraws of the bar, in milliseconds. */
const BAR_EVERY_MS = 100;
/** Interval between plain lines, in milliseconds: enough for a log to show progress. */
const LINE_EVERY_MS = 5000;

/**
 * Starts showing a pass, as a bar on a terminal, otherwise as plain lines. Shows nothing if there is nothing to do, or with
 * `--quiet`.
 */
export function startProgress(
  context: Pick<Context, "env" | "stdout" | "isQuiet">,
  startMs: number,
): PassProgress {
  const { stdout } = context;
  const hasBar = canRedraw(context.env, stdout.isTTY);
  const count = openPassCount(startMs);
  let lastMs = hasBar ? Number.NEGATIVE_INFINITY : startMs;
  return {
    update: (status, nowMs) => {
      const state = count(status, nowMs);
      if (context.isQuiet === true || state.total + state.deletesLeft === 0) return;
      if (nowMs - lastMs < (hasBar ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
      lastMs = nowMs;
      if (hasBar) {
        const { columns, symbols } = styleOf(context);
        stdout.bar(barLine(state, columns, symbols));
      } else stdout.write(`syncing: ${progressWords(state)}\n`);
    },
    finish: () => {
      if (hasBar) stdout.bar("");
    },
  };
}

/** Returns a function that turns each status into the state of the pass. */
export function openPassCount(startMs: number): (status: PassStatus, nowMs: number) => PassState {
  // Files that were in agreement before: the smallest number so far.
  let before = Infinity;
  const texts = openEstimate(startMs);
  const documents = openEstimate(startMs);
  return ({ sources, progress, service }, nowMs) => {
    const files = sources.reduce((sum, source) => sum + source.files, 0);
    const left = sources.reduce((sum, source) => sum + source.waiting, 0);
    before = Math.min(before, files - left);
    const documentsLeft = Math.max(0, progress.documents.total - progress.documents.done);
    const jobsLeft = Math.max(0, progress.total - progress.done);
    const others = Math.max(0, jobsLeft - documentsLeft);
    const forTexts = texts(progress.done - progress.documents.done, others, nowMs);
    const forDocuments = documents(progress.documents.done, documentsLeft, nowMs);
    // Texts and documents are sent in separate lines.
    const seconds = [...(others > 0 ? [forTexts] : []), ...(documentsLeft > 0 ? [forDocuments] : [])];
    const known = seconds.filter((each) => each !== undefined);
    return {
      done: files - left - before,
      total: files - before,
      failed: progress.failed,
      documentsLeft,
      deletesLeft: left === 0 ? jobsLeft : 0,
      isScanning: !sources.every(({ compared }) => compared),
      isServiceAway: service.kind === "waiting" || service.kind === "key_refused",
      secondsLeft: known.length === 0 || known.length < seconds.length ? undefined : Math.max(...known),
    };
  };
}

/** Length of the window of a rate: some PDFs take half a minute. */
const WINDOW_MS = 60_000;

/**
 * Returns the seconds that `left` more of a kind take, by the recent rate or the rate since the start. Counts down until more
 * is done, never up. Undefined: nothing is done yet, or less than expected.
 */
function openEstimate(startMs: number): (done: number, left: number, nowMs: number) => number | undefined {
  let samples = [{ done: 0, atMs: startMs }];
  return (done, left, nowMs) => {
    if (done !== samples.at(-1)?.done) {
      const from = samples.findLastIndex(({ atMs }) => nowMs - atMs >= WINDOW_MS);
      samples = [...samples.slice(Math.max(0, from)), { done, atMs: nowMs }];
    }
    const lastMs = samples.at(-1)?.atMs ?? startMs;
    const first = samples.find(({ atMs }) => lastMs - atMs < WINDOW_MS) ?? samples[0];
    const base = first === undefined || first.done === done ? samples[0] : first;
    if (base === undefined || base.done === done || lastMs <= base.atMs) return undefined;
    const seconds = ((lastMs - base.atMs) * left) / (done - base.done) / 1000 - (nowMs - lastMs) / 1000;
    return seconds > 0 ? seconds : undefined;
  };
}

const BAR_CELLS = 24;

/** `  ▰▰▰▱▱▱ 1,204 of 20,000 files, about 11 s left, 2 failed`, cut to the width. */
export function barLine(state: PassState, columns: number, symbols: boolean): string {
  const [full, empty] = symbols ? ["▰", "▱"] : ["#", "-"];
  const words = progressWords(state);
  const cells = Math.min(BAR_CELLS, columns - words.length - 4);
  const share = state.isScanning || state.total === 0 ? undefined : state.done / state.total;
  // Rounded down: a full bar means that all is done.
  const filled = Math.floor((share ?? 0) * cells);
  const bar =
    share === undefined || cells < 4 ? "" : `${full.repeat(filled)}${empty.repeat(cells - filled)} `;
  const [line = ""] = wrapped(words, columns - 3 - bar.length);
  return `  ${bar}${line}`;
}

/** `1,204 of 20,000 files, 12 PDFs and images left, about 40 s, 2 failed`. */
export function progressWords(state: PassState): string {
  const { done, total, failed, documentsLeft, deletesLeft, secondsLeft } = state;
  const parts: string[] = [];
  if (state.isScanning) {
    parts.push(`comparing the folders: ${thousands(done)} of ${counted(total, "file")} done so far`);
  } else if (total > 0) parts.push(`${thousands(done)} of ${counted(total, "file")}`);
  if (deletesLeft > 0) parts.push(`${counted(deletesLeft, "delete")} left`);
  if (state.isServiceAway) parts.push("waiting for the service");
  else {
    const waitsForDocuments = !state.isScanning && documentsLeft > 0;
    if (waitsForDocuments) parts.push(`${counted(documentsLeft, "PDF or image", "PDFs and images")} left`);
    const left = secondsLeft === undefined || state.isScanning ? undefined : `about ${duration(secondsLeft)}`;
    if (left !== undefined) parts.push(waitsForDocuments || deletesLeft > 0 ? left : `${left} left`);
  }
  if (failed > 0) parts.push(`${thousands(failed)} failed`);
  return parts.join(", ");
}
