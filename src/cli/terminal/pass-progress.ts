import type { DaemonStatus } from "../../sync/daemon.ts";
import type { Pending } from "../../wire/search.ts";
import type { Context } from "../output/context.ts";
import { countWords } from "../../wire/file-state.ts";
import { counted, thousands } from "../../lib/counted.ts";
import { duration } from "../output/progress.ts";
import { canRedraw } from "../output/terminal.ts";
import { styleOf } from "./style.ts";
import { wrapped } from "./wrap.ts";

/** The fields of a daemon's status that a bar shows. */
export type PassStatus = Pick<DaemonStatus, "progress" | "service" | "secondsLeft"> & {
  readonly sources: readonly Pick<
    DaemonStatus["sources"][number],
    "files" | "searchable" | "reading" | "waiting" | "failed" | "compared"
  >[];
};

/** Shows the progress of a pass until `finish`. */
export interface PassProgress {
  update(status: PassStatus, nowMs: number): void;
  /** Removes the bar. */
  finish(): void;
}

/** Shortest interval between redraws of the bar, in milliseconds. */
const BAR_EVERY_MS = 100;
/** Shortest interval between plain lines, in milliseconds; a long pass has a line per tenth of its time. */
const LINE_EVERY_MS = 5000;
/** Interval at which the service is asked how many documents have no vectors, in milliseconds. */
const VECTORS_EVERY_MS = 5000;

/**
 * Starts showing a pass, as a bar on a terminal, otherwise as plain lines, of which none repeats the last one. Shows nothing if
 * there is nothing to do, or with `--quiet`. `askPending` asks the service how many documents are not found by meaning
 * yet; undefined: it does not say, or none needs vectors.
 */
export function startProgress(
  context: Pick<Context, "env" | "stdout" | "isQuiet">,
  startMs: number,
  askPending?: () => Promise<Pending | undefined>,
): PassProgress {
  const { stdout } = context;
  const hasBar = canRedraw(context.env, stdout.isTTY);
  const { columns, symbols } = styleOf(context);
  let lastMs = hasBar ? Number.NEGATIVE_INFINITY : startMs;
  let lastWords = "";
  let askedMs = Number.NEGATIVE_INFINITY;
  let embedded: Embedded | undefined;
  const ask = (status: PassStatus, nowMs: number): void => {
    if (askPending === undefined || nowMs - askedMs < VECTORS_EVERY_MS) return;
    askedMs = nowMs;
    // A service that does not answer now shows no figure.
    askPending().then(
      (pending) => (embedded = pending && embeddedOf(pending, status)),
      () => (embedded = undefined),
    );
  };
  return {
    update: (status, nowMs) => {
      if (context.isQuiet === true || isDone(status)) return;
      ask(status, nowMs);
      const everyMs = hasBar ? BAR_EVERY_MS : Math.max(LINE_EVERY_MS, (nowMs - startMs) / 10);
      if (nowMs - lastMs < everyMs) return;
      const words = progressWords(status, embedded, symbols);
      if (hasBar) stdout.bar(barLine(status, words, columns, symbols));
      else if (words !== lastWords) stdout.write(`${words}${timeWords(status, symbols)}\n`);
      lastWords = words;
      lastMs = nowMs;
    },
    finish: () => {
      if (hasBar) stdout.bar("");
    },
  };
}

const BAR_CELLS = 24;

/** `  ▰▰▰▱▱▱ searchable: 680 of 811 · embedded: 34 % · 9 being read · about 4 min left`, cut to the width. */
export function barLine(status: PassStatus, counts: string, columns: number, symbols: boolean): string {
  const [full, empty] = symbols ? ["▰", "▱"] : ["#", "-"];
  const words = `${counts}${timeWords(status, symbols)}`;
  const cells = Math.min(BAR_CELLS, columns - words.length - 4);
  const files = sum(status, "files");
  const isKnown = files > 0 && status.sources.every(({ compared }) => compared);
  // Rounded down: a full bar means that all is done.
  const filled = isKnown ? Math.floor((sum(status, "searchable") / files) * cells) : 0;
  const bar = isKnown && cells >= 4 ? `${full.repeat(filled)}${empty.repeat(cells - filled)} ` : "";
  const [line = ""] = wrapped(words, columns - 3 - bar.length);
  return `  ${bar}${line}`;
}

/** `searchable: 680 of 811 · embedded: 34 % · 9 being read · 2 failed`. */
export function progressWords(status: PassStatus, embedded: Embedded | undefined, symbols: boolean): string {
  const { progress, service } = status;
  const files = sum(status, "files");
  const searchable = sum(status, "searchable");
  const isCompared = status.sources.every(({ compared }) => compared);
  const parts: string[] = [];
  if (!isCompared) parts.push("comparing the folders", `searchable: ${thousands(searchable)} so far`);
  else if (files > 0) parts.push(`searchable: ${thousands(searchable)} of ${thousands(files)}`);
  if (isCompared && files > 0 && embedded !== undefined) parts.push(`embedded: ${shareOf(embedded, files)}`);
  const deletesLeft = areSent(status) ? progress.total - progress.done : 0;
  if (deletesLeft > 0) parts.push(`${counted(deletesLeft, "delete")} left`);
  if (isAway(service)) parts.push("waiting for the service");
  parts.push(...countWords({ reading: sum(status, "reading"), failed: sum(status, "failed") }));
  return parts.join(separator(symbols));
}

/** How many files are found by meaning. */
export interface Embedded {
  readonly files: number;
  /** More passages wait than the service counts: the files are fewer. */
  readonly isFewer: boolean;
}

/** The files of a status that are found by meaning, by what waited at the service at that time. */
export function embeddedOf({ embed, more }: Pending, status: Pick<PassStatus, "sources">): Embedded {
  return { files: Math.max(0, sum(status, "searchable") - embed), isFewer: more === true };
}

/** `34 %`, or `under 35 %`. Rounded down: 100 % means that all is done. */
export function shareOf(embedded: Embedded, files: number): string {
  const percent = (100 * embedded.files) / files;
  return embedded.isFewer ? `under ${Math.floor(percent) + 1} %` : `${Math.floor(percent)} %`;
}

/** ` · about 4 min left`; empty while it is not known. */
function timeWords({ secondsLeft }: PassStatus, symbols: boolean): string {
  return secondsLeft === null ? "" : `${separator(symbols)}about ${duration(secondsLeft)} left`;
}

function separator(symbols: boolean): string {
  return symbols ? " · " : ", ";
}

function isAway({ kind }: PassStatus["service"]): boolean {
  return kind === "waiting" || kind === "key_refused";
}

function isDone(status: PassStatus): boolean {
  return areSent(status) && status.progress.done >= status.progress.total;
}

function areSent(status: PassStatus): boolean {
  return sum(status, "waiting") + sum(status, "reading") === 0;
}

function sum(
  { sources }: Pick<PassStatus, "sources">,
  key: "files" | "searchable" | "reading" | "waiting" | "failed",
): number {
  return sources.reduce((total, source) => total + source[key], 0);
}
