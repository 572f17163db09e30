import { KbsyncError } from "../lib/failure.ts";
import { oneLine } from "../lib/one-line.ts";
import { openDatagrams, type SendDatagram } from "./datagram.ts";

/** Messages to the service manager, as sd_notify(3) defines them. Each call sends one. */
export interface Notifier {
  /** Whether a service manager listens. Without one every other call does nothing. */
  readonly hasListener: boolean;
  /** Interval in which the watchdog expects a keep-alive, in milliseconds; undefined: no watchdog. */
  readonly watchdogMs: number | undefined;
  ready(): void;
  /** The configuration is being reloaded; `ready` ends the reload. */
  reloading(): void;
  stopping(): void;
  /** Status line for people. Only the newest counts; a repeated one is not sent. */
  status(words: string): void;
  alive(): void;
  /** Extends the time limit of the current start or stop by so much from now. */
  extend(ms: number): void;
  /** Sends queued messages. Call it periodically. */
  retry(): void;
}

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  /** CLOCK_MONOTONIC in microseconds. */
  readonly monotonicUs: () => bigint;
  /** Called once with the reason when no messages can be sent. */
  readonly onSilent: (reason: string) => void;
  /** Called once, when a message is refused. */
  readonly onProblem: (error: unknown) => void;
  /** Default: calls the C library. */
  readonly open?: () => SendDatagram;
}

/** Bound of queued state changes. A start, a reload and a stop together produce fewer. */
const WAITING_MAX = 8;
/** Longest status line: about two lines of a terminal, so that messages stay small. */
const STATUS_CHARS_MAX = 400;

const SILENT = { hasListener: false, watchdogMs: undefined } as const;

/**
 * Opens a notifier for the service manager that `NOTIFY_SOCKET` names. Without one, or without the package that sends
 * datagrams, the notifier reports that once and sends nothing.
 */
export function openNotifier(options: NotifierOptions): Notifier {
  const { env, onSilent, onProblem } = options;
  const socket = env["NOTIFY_SOCKET"] ?? "";
  // Only paths and abstract names are Unix sockets; service managers give vsock addresses to virtual machines.
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
      // The manager is gone. The program carries on and reports it once.
      if (!isBroken) onProblem(error);
      isBroken = true;
      return true;
    }
  };
  const retry = (): void => {
    while (waiting[0] !== undefined && attempt(waiting[0])) waiting.shift();
  };
  /** Keeps messages in order: a READY before its RELOADING would leave the manager waiting for ever. */
  const enqueue = (text: string): void => {
    waiting = [...waiting, text].slice(-WAITING_MAX);
    retry();
  };
  /** For messages that repeat: dropped instead of queued. */
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

/** Watchdog interval of this process in milliseconds (sd_watchdog_enabled(3)). Pure. */
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
