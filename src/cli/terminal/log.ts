import { styleText } from "node:util";
import { type DestinationStream, type Logger, pino } from "pino";
import { KbsyncError } from "../../lib/failure.ts";
import { KEY_HEADER } from "../../wire/routes.ts";
import { isJournal, PRIORITY, type Priority, withPriority } from "../output/journal.ts";
import { localTime } from "../output/progress.ts";
import { unbroken, wrappedProse } from "./prose.ts";
import { completeCommands, type Invocation } from "../output/hint.ts";
import { hasColours, terminal } from "../output/terminal.ts";
import { visibleLine } from "../output/visible.ts";

const LEVELS = ["debug", "info", "warn", "error", "silent"];
const FORMATS = ["text", "json"];

/** The log level from the environment. Throws `usage` for an unknown one; every command checks it, whether it logs or not. */
export function logLevel(env: NodeJS.ProcessEnv): string {
  return oneOf(LEVELS, "KBSYNC_LOG", env["KBSYNC_LOG"] ?? "info");
}

/** The format of log lines from the environment. Throws as `logLevel`. */
export function logFormat(env: NodeJS.ProcessEnv): string {
  return oneOf(FORMATS, "KBSYNC_LOG_FORMAT", env["KBSYNC_LOG_FORMAT"] ?? "text");
}

function oneOf(words: readonly string[], name: string, word: string): string {
  if (words.includes(word)) return word;
  throw new KbsyncError(`${name}: expected one of ${words.join(", ")}, got ${JSON.stringify(word)}`, {
    code: "usage",
  });
}

/** The style of log lines. */
export interface LogStyle {
  readonly target: "terminal" | "file" | "journal";
  readonly isColoured: boolean;
  /** Width of the terminal. */
  readonly cells?: number;
  /** Completes the commands in hints. */
  readonly invocation?: Invocation | undefined;
}

/**
 * Opens the logger of a command. It writes lines of text, or of JSON if `KBSYNC_LOG_FORMAT` says so, to standard error. In the
 * journal each line starts with a priority. `KBSYNC_LOG` sets the level (default `info`). Fields that may contain the key are
 * removed. `invocation` completes the commands in hints.
 */
export function openLog(env: NodeJS.ProcessEnv, isTTY: boolean, invocation?: Invocation): Logger {
  const options = {
    level: logLevel(env),
    base: null,
    redact: [KEY_HEADER, `*.${KEY_HEADER}`, `req.headers.${KEY_HEADER}`, `*.*.${KEY_HEADER}`],
  };
  const isText = logFormat(env) === "text";
  const target = isTTY ? "terminal" : isJournal(env, 2) ? "journal" : "file";
  const isColoured = hasColours(env, isTTY);
  const cells = (): number => process.stderr.columns ?? 80;
  // Lines on a terminal stay in order with the bar and other output.
  const output = isTTY
    ? { write: (text: string) => terminal.err(text), flush: (done?: () => void) => done?.() }
    : pino.destination({ fd: 2, sync: false });
  const stream: DestinationStream & { lastLevel: number; flush: (done?: () => void) => void } = {
    // Set by pino before each line, because the stream has this symbol.
    lastLevel: pino.levels.values["info"] ?? 30,
    write: (line) => {
      const text = isText ? logText(line, { target, isColoured, cells: cells(), invocation }) : line;
      output.write(target === "journal" ? withPriority(text, priorityOf(stream.lastLevel)) : text);
    },
    flush: (done) => output.flush(done),
  };
  return pino(options, Object.assign(stream, { [pino.symbols.needsMetadataGsym]: true }));
}

/** The journal's priority for a level of pino. */
function priorityOf(level: number): Priority {
  if (level >= 50) return PRIORITY.error;
  if (level >= 40) return PRIORITY.warning;
  return level >= 30 ? PRIORITY.info : PRIORITY.debug;
}

/** The shown fields of a log line of pino. */
interface LogRecord {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly hint?: string;
  readonly path?: unknown;
  readonly err?: { readonly message?: string; readonly stack?: string; readonly code?: string };
}

/**
 * Formats a line of JSON: `2026-11-22T13:12:19Z WARN papers/x.pdf was refused: …`. Omits time and level for the journal, which
 * records them itself. A terminal gets the local time, and lines wrapped to its width. Only unexpected errors have a stack.
 * Pure.
 */
export function logText(
  line: string,
  { target, isColoured, cells = Infinity, invocation }: LogStyle,
): string {
  const { level, time, msg = "", hint, path, err } = JSON.parse(line) as LogRecord; // pino wrote it
  const cause = err?.message === undefined || msg.includes(err.message) ? "" : `: ${err.message}`;
  const advice = hint === undefined || msg.includes(hint) ? "" : ` (${hint})`;
  // A message names files, and a file name may contain control sequences, or a line that looks like one of the log.
  const words = visibleLine(completeCommands(`${msg}${cause}${advice}`, invocation));
  const isDefect = level >= 50 && err?.stack !== undefined && err.code === undefined;
  const stack = isDefect ? (err.stack ?? "").split("\n").slice(1) : [];
  const after = stack.map((each) => `${visibleLine(each)}\n`).join("");
  if (target === "journal") return `${words}\n${after}`;
  const name = (pino.levels.labels[level] ?? "info").toUpperCase().padEnd(5);
  const isTerminal = target === "terminal";
  const at = isTerminal ? localTime(time).slice(-8) : `${new Date(time).toISOString().slice(0, 19)}Z`;
  const head = `${at} ${name} `;
  const shown = isTerminal ? hanging(words, cells, head.length, path) : words;
  return `${at} ${isColoured ? coloured(name, level) : name} ${shown}\n${after}`;
}

/** Wraps a message with its lines indented to the end of its head. */
function hanging(words: string, cells: number, indent: number, path: unknown): string {
  const whole = typeof path === "string" ? words.replaceAll(path, unbroken(path)) : words;
  return wrappedProse(whole, Math.max(1, cells - indent)).replaceAll("\n", `\n${" ".repeat(indent)}`);
}

function coloured(name: string, level: number): string {
  const colour = level >= 50 ? "red" : level >= 40 ? "yellow" : level >= 30 ? "green" : "gray";
  return styleText(colour, name, { validateStream: false });
}
