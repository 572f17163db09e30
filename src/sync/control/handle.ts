import { KbsyncError } from "../../lib/failure.ts";
import type { Daemon, DaemonActivity } from "../daemon.ts";
import type { ControlHandler } from "./server.ts";
import { type CommandName, type EventOf, LOG_LINES_MAX, type Request, type ResultOf } from "./protocol.ts";

/** What is told of the daemon that the daemon does not know itself. */
export interface DaemonFacts {
  readonly version: string;
  readonly startedMs: number;
}

/** Answers requests with a daemon. */
export function handleWith(daemon: Daemon, facts: DaemonFacts): ControlHandler {
  return async (request, { signal, emit, drained }) => {
    switch (request.command) {
      case "status":
        return result("status", statusOf(daemon, facts));
      case "pause":
        return result("pause", { sources: [...(await daemon.pause(request.folder))] });
      case "resume":
        return result("resume", { sources: [...(await daemon.resume(request.folder))] });
      case "rescan":
        return result("rescan", { sources: [...daemon.rescan(request.folder)] });
      case "approve":
        return result("approve", { approved: [...(await daemon.approve(request.folder, request.token))] });
      case "retry":
        return result("retry", { sources: [...(await daemon.retry(request.path))] });
      case "verify": {
        const { folder, repair } = request;
        const { sources, findings, ...report } = await daemon.audit({
          folder,
          repair,
          byPerson: repair,
          signal,
        });
        return result("verify", { ...report, sources: [...sources], findings: [...findings] });
      }
      case "about":
        return result("about", { ...daemon.about(request.path), service: daemon.status().service });
      case "log":
        return tellLog(daemon, request, { signal, emit, drained });
      case "wait":
        return wait(daemon, request, signal, emit);
    }
  };
}

function statusOf(daemon: Daemon, facts: DaemonFacts): ResultOf<"status"> {
  const { service, sources, progress, filesPerSecond, idle } = daemon.status();
  const left = progress.total - progress.done;
  return {
    pid: process.pid,
    ...facts,
    service,
    sources: [...sources],
    progress,
    filesPerSecond: filesPerSecond ?? null,
    secondsLeft: filesPerSecond === undefined || left <= 0 ? null : left / filesPerSecond,
    idle,
  };
}

/** What was done lately; with `follow` all that is done until the client goes. Throws `control_slow`. */
async function tellLog(
  daemon: Daemon,
  { limit, path, follow }: Extract<Request, { command: "log" }>,
  { signal, emit, drained }: Parameters<ControlHandler>[1],
): Promise<ResultOf<"log">> {
  const isAsked = (activity: DaemonActivity): boolean =>
    path === undefined ||
    [activity.path, activity.from]
      .map((each) => (each === undefined ? undefined : `${activity.source}/${each}`))
      .some((each) => each === path || each?.startsWith(`${path}/`) === true || path === activity.source);
  // Both in one turn of the loop, so that nothing comes in between and nothing twice.
  const left = [...daemon.recent({ limit, path })];
  let isCaughtUp = false;
  const stop = follow
    ? daemon.follow((activity) => {
        if (!isAsked(activity)) return;
        if (isCaughtUp) emit(activity);
        else if (left.length <= LATE_MAX) left.push(activity);
      })
    : () => undefined;
  try {
    for (const activity of left) {
      emit(activity);
      await drained();
      signal.throwIfAborted();
    }
    if (left.length > LATE_MAX) throw tooSlow();
    isCaughtUp = true;
    if (follow) await aborted(signal);
  } finally {
    stop();
  }
  return {};
}

/** Activities that are kept for a client which has not read the earlier ones yet. */
const LATE_MAX = 2 * LOG_LINES_MAX;

function tooSlow(): KbsyncError {
  return new KbsyncError("more is done than the reader of the log takes", {
    code: "control_slow",
    retryable: true,
  });
}

async function wait(
  daemon: Daemon,
  { path, timeoutSeconds }: Extract<Request, { command: "wait" }>,
  signal: AbortSignal,
  emit: (event: EventOf<"wait">) => void,
): Promise<ResultOf<"wait">> {
  const late = new AbortController();
  const timer =
    timeoutSeconds === undefined ? undefined : setTimeout(() => late.abort(), timeoutSeconds * 1000);
  let waiting = 0;
  const still = setInterval(() => emit({ waiting, service: daemon.status().service }), STILL_MS);
  try {
    const { agreed, reasons, troubled, unknown } = await daemon.wait({
      path,
      signal: AbortSignal.any([signal, late.signal]),
      onWaiting: (files) => emit({ waiting: (waiting = files) }),
    });
    const { service } = daemon.status();
    const end = agreed ? "agreed" : "troubled";
    return { end, troubled, reasons: [...reasons], service, ...(unknown && { unknown }) };
  } catch (error) {
    if (!late.signal.aborted || signal.aborted) throw error;
    return { end: "timeout", troubled: waiting, reasons: [], service: daemon.status().service };
  } finally {
    clearTimeout(timer);
    clearInterval(still);
  }
}

/** How often one who waits is told that it goes on. */
const STILL_MS = 5000;

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Holds a result against its command's type. */
function result<C extends CommandName>(_command: C, value: ResultOf<C>): ResultOf<C> {
  return value;
}
