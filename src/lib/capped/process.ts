import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { isOutOfMemory, type CappedReply } from "./child.ts";
import { startChild, type HostedChild } from "./children.ts";
import { startPatientTimer } from "./patient-timer.ts";

/** Limits of one child process. */
export interface CappedLimits {
  /** Memory beyond what Node itself takes. */
  readonly memoryMb: number;
  /** Time limit of one request, waits for a processor excluded. The child is killed after it. */
  readonly timeoutMs: number;
}

/**
 * How a child ended without an answer. `memory`: exceeded its memory. `time`: took too long. `fall`: crashed, perhaps over
 * the document. `unable`: could not start or receive messages, or was stopped, which says nothing about the document.
 */
export type CappedEnd = "memory" | "time" | "fall" | "unable";

/** The module that a child runs, and its failures. */
export interface CappedKind<Request, Failure extends string> {
  /** Calls `answerRequests`. */
  readonly module: URL;
  /** Additional Node flags, such as `--allow-addons`. */
  readonly flags?: readonly string[];
  /**
   * Processor time limit of a request in milliseconds, until the child allows more; the child is killed after it as after
   * `timeoutMs`. Default: none. Ignored where the system does not report processor time (not Linux).
   */
  cpuMs?(this: void, request: Request): number | undefined;
  /** Creates the error for the caller. */
  failure(code: Failure | CappedEnd, request: Request, detail: string): Error;
}

/** A child process that works on one request at a time. */
export interface CappedProcess<Request, Part> {
  /** Whether it can take another request: alive, and within its memory and processor budget. */
  fit(): boolean;
  /** Whether it crashed on its last request. */
  crashed(): boolean;
  /** Returns the parts in order. Rejects with the kind's `failure` or the signal's reason; the caller then kills it. */
  ask(request: Request, signal: AbortSignal | undefined): Promise<readonly Part[]>;
  /** Ends it at once; a request in flight fails with `reason`. */
  kill(reason?: Error): void;
}

/** Signals by which Node or the kernel ends a process that exceeds its memory. */
const MEMORY_SIGNALS: ReadonlySet<string> = new Set(["SIGABRT", "SIGTRAP", "SIGILL", "SIGKILL"]);

/** Signals by which a person or a shell stops a program and its children. */
const ENDING_SIGNALS: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE"]);

/**
 * Processor time after which a child is not reused. The kernel's limit adds the time of a few requests: it ends a child
 * that loops after its parent died.
 */
const REUSE_CPU_MS = 60_000;
/** Share of the memory limit for the JavaScript heap; the rest is for buffers outside it. */
const HEAP_SHARE = 0.6;
/** Resident memory of Node and a library before the first request. */
const FRESH_RSS_BYTES = 110 * 1024 * 1024;
/**
 * Niceness that all threads of a child add to that of this process: reading a document may be slow, a search may not. Four
 * busy threads on two processors delay others by 7 ms and more at the same priority, by less than 4 ms at this one; at 19
 * a child hardly runs next to other work.
 */
const NICER_BY = 10;

/**
 * Sets the limits and execs the child. A refused limit (a stricter one is in force) changes nothing. The kernel kills the
 * child when the thread that started it ends (PR_SET_PDEATHSIG, prctl(2)), as after a SIGKILL of this process, which a child
 * in a busy loop does not notice. Without a `setpriv` that sets this (util-linux before 2.33, BusyBox), the limit on its
 * processor time ends it.
 */
const LIMITED = [
  'ulimit -c 0; ulimit -d "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; nicer=$3; shift 3',
  'setpriv --pdeathsig KILL true 2>/dev/null && set -- setpriv --pdeathsig KILL "$@"',
  // A session of its own has an equal share of the processor with that of the service, whatever the niceness in it.
  'echo "$nicer" 2>/dev/null >/proc/self/autogroup || true',
  'exec nice -n "$nicer" "$@"',
].join("; ");

/** The child may only read files. Even a document that takes it over cannot write, start processes or load native code. */
const CONFINED = ["--no-warnings", "--permission", "--allow-fs-read=*"];

/**
 * Measures the data segment of an empty Node process, in KB: V8 reserves some 500 MB for code, depending on its version.
 * Undefined where the system does not report it (not Linux); then only the heap is limited.
 */
export async function measureBaseKb(): Promise<number | undefined> {
  const script = "require('node:fs').readFileSync('/proc/self/status', 'utf8')";
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["-p", script], {
      env: {},
      timeout: 10_000,
    });
    const found = /^VmData:\s+(\d+) kB$/m.exec(stdout);
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}

/**
 * Starts a child under its limits. The kernel's limit on the data segment (RLIMIT_DATA, since Linux 4.7 for every
 * private writable mapping) covers array buffers too, which `--max-old-space-size` and worker limits do not.
 */
export function startCappedProcess<Request extends object, Part, Failure extends string>(
  kind: CappedKind<Request, Failure>,
  baseKb: number | undefined,
  limits: CappedLimits,
): CappedProcess<Request, Part> {
  const dataKb = baseKb === undefined ? "unlimited" : String(baseKb + limits.memoryMb * 1024);
  const cpuSeconds = String(Math.ceil((REUSE_CPU_MS + 4 * limits.timeoutMs) / 1000));
  const heap = `--max-old-space-size=${Math.floor(limits.memoryMb * HEAP_SHARE)}`;
  const flags = [heap, ...CONFINED, ...(kind.flags ?? [])];
  const bounds = [dataKb, cpuSeconds, String(NICER_BY)];
  const program = [process.execPath, ...flags, fileURLToPath(kind.module)];
  const child = startChild("/bin/sh", ["-c", LIMITED, "sh", ...bounds, ...program]);
  let fit = true;
  let isReady = false;
  let crashed = false;
  child.on("message", (reply) => {
    const { kind: replyKind } = reply as CappedReply<Part, Failure>; // the child calls answerRequests
    isReady ||= replyKind === "ready";
  });
  child.on("exit", () => (fit = false)).on("error", () => (fit = false));
  let abandon: ((reason: Error) => void) | undefined;

  return {
    fit: () => fit,
    crashed: () => crashed,
    kill: (reason) => {
      fit = false;
      if (reason !== undefined) abandon?.(reason);
      child.kill();
    },
    ask: async (request, signal) => {
      child.hold(true);
      try {
        const failure = (end: Failure | CappedEnd, detail: string): Error => {
          // A child that never reported `ready` has not seen the document.
          const actual = end === "fall" && !isReady ? "unable" : end;
          crashed = actual === "fall";
          return kind.failure(actual, request, detail);
        };
        const budget = { timeoutMs: limits.timeoutMs, cpuMs: kind.cpuMs?.(request), isReady: () => isReady };
        const asked = askOnce<Part, Failure>(child, failure, request, budget, signal);
        abandon = asked.abandon;
        const { parts, rssBytes, cpuMs } = await asked.answer;
        fit &&= cpuMs < REUSE_CPU_MS && rssBytes < FRESH_RSS_BYTES + (limits.memoryMb * 1024 * 1024) / 2;
        return parts;
      } catch (error) {
        fit = false; // leftovers of a failed request must not affect the next one
        throw error;
      } finally {
        abandon = undefined;
        child.hold(false);
      }
    },
  };
}

/** Limits of one request. */
interface RequestBudget {
  readonly timeoutMs: number;
  readonly cpuMs: number | undefined;
  /** Whether the child has started; startup does not count towards the request. */
  isReady(this: void): boolean;
}

interface Answer<Part> {
  readonly parts: readonly Part[];
  readonly rssBytes: number;
  readonly cpuMs: number;
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- types the reply by the kind
function askOnce<Part, Failure extends string>(
  child: HostedChild,
  failure: (end: Failure | CappedEnd, detail: string) => Error,
  request: object,
  budget: RequestBudget,
  signal: AbortSignal | undefined,
): { readonly answer: Promise<Answer<Part>>; readonly abandon: (reason: Error) => void } {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer<Part>>();
  const parts: Part[] = [];
  const cpu =
    budget.cpuMs === undefined
      ? undefined
      : watchCpu(child, budget.cpuMs, budget.isReady, (cpuMs) => {
          settle(failure("time", `used ${cpuMs} ms of processor time`));
        });
  const onMessage = (message: unknown): void => {
    const reply = message as CappedReply<Part, Failure>; // as above
    if (reply.kind === "allow") cpu?.allow(reply.cpuMs);
    if (reply.kind === "part") parts.push(reply.part);
    if (reply.kind === "failed") settle(failure(reply.code, reply.detail));
    if (reply.kind === "done") settle(undefined, { parts, rssBytes: reply.rssBytes, cpuMs: reply.cpuMs });
  };
  const onExit = (code: number | null, killedBy: string | null, stderr: string): void => {
    const detail = `the child process ended: ${killedBy ?? `exit code ${code}`}\n${stderr}`;
    settle(failure(endOf(code, killedBy, stderr), detail));
  };
  const onError = (error: Error): void => settle(failure("unable", error.message));
  const onAbort = (): void => settle(signal?.reason);
  const timer = startPatientTimer(
    budget.timeoutMs,
    () => waitedMsOf(child.pid()),
    () => settle(failure("time", `still busy after ${budget.timeoutMs} ms`)),
  );

  const settle = (error: unknown, result?: Answer<Part>): void => {
    timer.stop();
    cpu?.stop();
    child.off("message", onMessage).off("exit", onExit).off("error", onError);
    signal?.removeEventListener("abort", onAbort);
    if (result === undefined) reject(error);
    else resolve(result);
  };
  child.on("message", onMessage).on("exit", onExit).on("error", onError);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  child.send(request);
  return { answer, abandon: settle };
}

/** Interval of the checks of a child's processor time. */
const CPU_CHECK_MS = 250;

/** Calls `onSpent` once when a child has used the allowed processor time since `ready`, or since the last `allow`. */
function watchCpu(
  child: HostedChild,
  firstMs: number,
  isReady: () => boolean,
  onSpent: (cpuMs: number) => void,
): { allow(cpuMs: number): void; stop(): void } {
  let allowedMs = firstMs;
  let fromMs: number | undefined;
  const timer = setInterval(() => {
    const usedMs = isReady() ? cpuMsOf(child.pid()) : undefined;
    if (usedMs === undefined) return;
    fromMs ??= usedMs;
    if (usedMs - fromMs < allowedMs) return;
    clearInterval(timer);
    onSpent(usedMs - fromMs);
  }, CPU_CHECK_MS).unref();
  return {
    allow: (cpuMs) => {
      const usedMs = cpuMsOf(child.pid());
      if (usedMs !== undefined) fromMs = usedMs;
      allowedMs = cpuMs;
    },
    stop: () => clearInterval(timer),
  };
}

/** Returns the processor time of a process and its threads, or undefined. /proc counts in hundredths of a second (proc(5)). */
function cpuMsOf(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name may contain any character, so counts behind it: fields 12 and 13 are the times in user and kernel mode.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

/**
 * Returns the time that the main thread of a process has waited for a processor; 0 if unknown. The second number is in
 * nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
 */
function waitedMsOf(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

/** Classifies the end of a child during a request. */
function endOf(code: number | null, killedBy: string | null, stderr: string): CappedEnd {
  if (killedBy === "SIGXCPU") return "time";
  if (killedBy !== null && ENDING_SIGNALS.has(killedBy)) return "unable";
  const memory = isOutOfMemory(stderr) || /heap limit/i.test(stderr);
  if (memory || code === 134 || (killedBy !== null && MEMORY_SIGNALS.has(killedBy))) return "memory";
  return "fall";
}
