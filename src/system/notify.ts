import { KbsyncError } from "../lib/failure.ts";
import { oneLine } from "../lib/one-line.ts";
import { openDatagrams, type SendDatagram } from "./datagram.ts";

/** What a service manager is told, as sd_notify(3) defines it. Each call is one message. */
export interface Notifier {
  /** Whether anybody listens. Without a listener every other call does nothing. */
  readonly hasListener: boolean;
  /** How often a sign of life is expected, in milliseconds; undefined: never. */
  readonly watchdogMs: number | undefined;
  ready(): void;
  /** The configuration is read again; `ready` ends it. */
  reloading(): void;
  stopping(): void;
  /** One line for a person. Only the newest counts, and one that says what was said already is not sent. */
  status(words: string): void;
  alive(): void;
  /** Asks that a start or a stop may take this much longer than it was given, from now on. */
  extend(ms: number): void;
  /** Sends what found no room before. To be called now and then. */
  retry(): void;
}

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** CLOCK_MONOTONIC in microseconds. */
  readonly monotonicUs: () => bigint;
  /** Reported once, why nothing is told to anybody. */
  readonly onSilent: (reason: string) => void;
  /** Reported once, when a message is refused. */
  readonly onProblem: (error: unknown) => void;
  /** Default: through the C library. */
  readonly open?: () => SendDatagram;
}

/** Changes of state that wait for room: more than a start, a reload and a stop bring never come before it. */
const WAITING_MAX = 8;
/** Longest status line: what fits a terminal's line twice is cut by nobody, and a message stays small. */
const STATUS_CHARS_MAX = 400;

const SILENT = { hasListener: false, watchdogMs: undefined } as const;

/**
 * Opens the way to the service manager that `NOTIFY_SOCKET` names. Where there is none, or the package for it is missing,
 * nothing is ever told, and that is said once.
 */
export function openNotifier(options: NotifierOptions): Notifier {
  const { env, onSilent, onProblem } = options;
  const socket = env["NOTIFY_SOCKET"] ?? "";
  // Only paths and abstract names can be written to; a service manager names vsock addresses to virtual machines alone.
  if (!/^[/@]./.test(socket)) {
    onSilent(socket === "" ? "no service manager asked for it" : `${socket} is no Unix socket`);
    return silent();
  }
  let send: SendDatagram;
  try {
    send = (options.open ?? openDatagrams)();
  } catch (error) {
    if (!(error instanceof KbsyncError)) throw error;
    onSilent(`${error.message} ${error.hint ?? ""}`.trim());
    return silent();
  }

  let waiting: string[] = [];
  let said: string | undefined;
  let isBroken = false;
  const attempt = (text: string): boolean => {
    try {
      return send(socket, text);
    } catch (error) {
      // A manager that is gone asks for nothing any more; the program goes on, and says it once.
      if (!isBroken) onProblem(error);
      isBroken = true;
      return true;
    }
  };
  const retry = (): void => {
    while (waiting[0] !== undefined && attempt(waiting[0])) waiting.shift();
  };
  /** In their order: a READY before the RELOADING that it ends would leave the manager waiting for ever. */
  const enqueue = (text: string): void => {
    waiting = [...waiting, text].slice(-WAITING_MAX);
    retry();
  };
  /** What comes again by itself need not wait. */
  const sendNow = (text: string): boolean => {
    retry();
    return waiting.length === 0 && attempt(text);
  };

  return {
    hasListener: true,
    watchdogMs: watchdogMs(env, options.pid),
    ready: () => enqueue("READY=1"),
    reloading: () => enqueue(`RELOADING=1\nMONOTONIC_USEC=${options.monotonicUs()}`),
    stopping: () => enqueue("STOPPING=1"),
    status: (words) => {
      // A line break would begin another assignment.
      const line = oneLine(words).slice(0, STATUS_CHARS_MAX);
      if (line !== said && sendNow(`STATUS=${line}`)) said = line;
    },
    alive: () => void sendNow("WATCHDOG=1"),
    extend: (ms) => void sendNow(`EXTEND_TIMEOUT_USEC=${Math.round(ms * 1000)}`),
    retry,
  };
}

/** How often a sign of life is expected of this process, in milliseconds (sd_watchdog_enabled(3)). Pure. */
export function watchdogMs(
  env: Readonly<Record<string, string | undefined>>,
  pid: number,
): number | undefined {
  const { WATCHDOG_USEC: usec = "", WATCHDOG_PID: expected } = env;
  if (!/^[1-9]\d{0,15}$/.test(usec)) return undefined;
  if (expected !== undefined && expected !== String(pid)) return undefined;
  return Number(usec) / 1000;
}

function silent(): Notifier {
  const nothing = (): void => undefined;
  return {
    ...SILENT,
    ready: nothing,
    reloading: nothing,
    stopping: nothing,
    status: nothing,
    alive: nothing,
    extend: nothing,
    retry: nothing,
  };
}
