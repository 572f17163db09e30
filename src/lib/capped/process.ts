import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { isOutOfMemory, type CappedReply } from "./child.ts";
import { startChild, type HostedChild } from "./children.ts";
import { watchTime, type TimeLimits } from "./time-limits.ts";

/** Limits of one child process. */
export interface CappedLimits {
  /** Memory beyond what Node itself takes. */
  readonly memoryMb: number;
  /** Processor time of one request in milliseconds, and the most that a kind's `cpuMs` grants. The child is killed after it. */
  readonly cpuMs: number;
  /** Time of one request, which a busy machine reaches first. Default: ten times `cpuMs`, at least ten minutes. */
  readonly wallMs?: number;
  /**
   * Niceness that all threads of a child add to that of this process. Default 10: reading a document may be slow, a search
   * may not. Four busy threads on two processors delay others by 7 ms and more at the same priority, by less than 4 ms at
   * this one; at 19 a child hardly runs next to other work.
   */
  readonly nicer?: number;
}

/**
 * How a child ended without an answer. `memory`: exceeded its memory. `time`: used up its processor time. `hang`: did nothing.
 * `busy`: got too little processor time. `fall`: crashed, perhaps over the document. `unable`: could not start or receive
 * messages, or was stopped. `busy` and `unable` say nothing about the document; `fall` and `hang` do if they repeat.
 */
export type CappedEnd = "memory" | "time" | "hang" | "busy" | "fall" | "unable";

/** The module that a child runs, and its failures. */
export interface CappedKind<Request, Failure extends string> {
  /** Calls `answerRequests`. */
  readonly module: URL;
  /** Additional Node flags, such as `--allow-addons`. */
  readonly flags?: readonly string[];
  /** Processor time of a request in milliseconds, until the child allows more. Default: the limit `cpuMs`. */
  cpuMs?(this: void, request: Request): number | undefined;
  /** Creates the error for the caller. The `detail` of `time`, `hang` and `busy` states what was measured: `used 60 s of …`. */
  failure(code: Failure | CappedEnd, request: Request, detail: string): Error;
}

/** A child process that works on one request at a time. */
export interface CappedProcess<Request, Part> {
  /** Whether it can take another request: alive, and within its memory and processor budget. */
  fit(): boolean;
  /** Whether its last request deserves a try in another process, because it crashed or hung. */
  deservesRetry(): boolean;
  /**
   * Returns the parts in order. Rejects with the kind's `failure` or the signal's reason; the caller then kills it. Calls
   * `onUsed` at the end with the processor time of the request in milliseconds (`TimeWatch`).
   */
  ask(
    request: Request,
    signal: AbortSignal | undefined,
    onUsed: (usedMs: number) => void,
  ): Promise<readonly Part[]>;
  /** Ends it at once; a request in flight fails with `reason`. */
  kill(reason?: Error): void;
}

/** Signals by which Node ends a process that exceeds its memory: the kernel refuses it more, and does not end it. */
const MEMORY_SIGNALS: ReadonlySet<string> = new Set(["SIGABRT", "SIGTRAP", "SIGILL"]);

/** Signals by which a person, a shell or a machine that is out of memory stops a program and its children. */
const ENDING_SIGNALS: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGKILL"]);

/**
 * Processor time after which a child is not reused. The kernel's limit adds the time of a few requests: it ends a child
 * that loops after its parent died.
 */
const REUSE_CPU_MS = 60_000;
/** Share of the memory limit for the JavaScript heap; the rest is for buffers outside it. */
const HEAP_SHARE = 0.6;
/** Resident memory of Node and a library before the first request. */
const FRESH_RSS_BYTES = 110 * 1024 * 1024;
const NICER_BY = 10;
/** Longest start of an empty Node process, which takes 0.1 s unless the machine is busy. */
const MEASURE_MS = 60_000;
/** Default of `wallMs`: a machine that gives a child less than a tenth of a processor is busy. */
const WALL_FACTOR = 10;
const WALL_MS_MIN = 10 * 60_000;

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
 * Undefined where the system does not report it (not Linux), and on failure; then only the heap is limited.
 */
export async function measureBaseKb(): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const script = "require('node:fs').readFileSync('/proc/self/status', 'utf8')";
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ["-p", script], {
      env: {},
      timeout: MEASURE_MS,
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
  const cpuSeconds = String(Math.ceil((REUSE_CPU_MS + 2 * limits.cpuMs) / 1000));
  const wallMs = limits.wallMs ?? Math.max(WALL_MS_MIN, WALL_FACTOR * limits.cpuMs);
  const heap = `--max-old-space-size=${Math.floor(limits.memoryMb * HEAP_SHARE)}`;
  const flags = [heap, ...CONFINED, ...(kind.flags ?? [])];
  const bounds = [dataKb, cpuSeconds, String(limits.nicer ?? NICER_BY)];
  const program = [process.execPath, ...flags, fileURLToPath(kind.module)];
  const child = startChild("/bin/sh", ["-c", LIMITED, "sh", ...bounds, ...program]);
  let fit = true;
  let isReady = false;
  let deservesRetry = false;
  child.on("message", (reply) => {
    const { kind: replyKind } = reply as CappedReply<Part, Failure>; // the child calls answerRequests
    isReady ||= replyKind === "ready";
  });
  child.on("exit", () => (fit = false)).on("error", () => (fit = false));
  let abandon: ((reason: Error) => void) | undefined;

  return {
    fit: () => fit,
    deservesRetry: () => deservesRetry,
    kill: (reason) => {
      fit = false;
      if (reason !== undefined) abandon?.(reason);
      child.kill();
    },
    ask: async (request, signal, onUsed) => {
      child.hold(true);
      let usedMs: (() => number) | undefined;
      try {
        const failure = (end: Failure | CappedEnd, detail: string): Error => {
          // A child that never reported `ready` has not seen the document.
          const actual = end === "fall" && !isReady ? "unable" : end;
          deservesRetry = actual === "fall" || actual === "hang";
          return kind.failure(actual, request, detail);
        };
        const cpuMs = Math.min(kind.cpuMs?.(request) ?? Infinity, limits.cpuMs);
        const budget = { cpuMs, wallMs, isReady: () => isReady };
        const asked = askOnce<Part, Failure>(child, failure, request, budget, signal);
        ({ abandon, usedMs } = asked);
        const { parts, rssBytes, totalCpuMs } = await asked.answer;
        fit &&= totalCpuMs < REUSE_CPU_MS && rssBytes < FRESH_RSS_BYTES + (limits.memoryMb * 1024 * 1024) / 2;
        return parts;
      } catch (error) {
        fit = false; // leftovers of a failed request must not affect the next one
        throw error;
      } finally {
        abandon = undefined;
        child.hold(false);
        onUsed(usedMs?.() ?? 0);
      }
    },
  };
}

/** Limits of one request. */
interface RequestBudget extends TimeLimits {
  isReady(this: void): boolean;
}

interface Answer<Part> {
  readonly parts: readonly Part[];
  readonly rssBytes: number;
  /** Processor time of the child since its start. */
  readonly totalCpuMs: number;
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- types the reply by the kind
function askOnce<Part, Failure extends string>(
  child: HostedChild,
  failure: (end: Failure | CappedEnd, detail: string) => Error,
  request: object,
  budget: RequestBudget,
  signal: AbortSignal | undefined,
): {
  readonly answer: Promise<Answer<Part>>;
  readonly abandon: (reason: Error) => void;
  readonly usedMs: () => number;
} {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Answer<Part>>();
  const parts: Part[] = [];
  const onMessage = (message: unknown): void => {
    const reply = message as CappedReply<Part, Failure>; // as above
    if (reply.kind === "ready") watch.check();
    if (reply.kind === "allow") watch.allow(reply.cpuMs);
    if (reply.kind === "part") parts.push(reply.part);
    if (reply.kind === "failed") settle(failure(reply.code, reply.detail));
    if (reply.kind === "done")
      settle(undefined, { parts, rssBytes: reply.rssBytes, totalCpuMs: reply.cpuMs });
  };
  const onExit = (code: number | null, killedBy: string | null, stderr: string): void => {
    const end = endOf(code, killedBy, stderr);
    const detail = `the child process ended: ${killedBy ?? `exit code ${code}`}\n${stderr}`;
    settle(
      failure(end, end === "time" ? "used all processor time of its process without finishing" : detail),
    );
  };
  const onError = (error: Error): void => settle(failure("unable", error.message));
  const onAbort = (): void => settle(signal?.reason);
  const { isReady } = budget;
  const clock = { isReady, cpuMs: () => cpuMsOf(child.pid()), waitedMs: () => waitedMsOf(child.pid()) };
  const watch = watchTime(budget, clock, (end, measured) => settle(failure(end, measured)));

  const settle = (error: unknown, result?: Answer<Part>): void => {
    watch.stop();
    child.off("message", onMessage).off("exit", onExit).off("error", onError);
    signal?.removeEventListener("abort", onAbort);
    if (result === undefined) reject(error);
    else resolve(result);
  };
  child.on("message", onMessage).on("exit", onExit).on("error", onError);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  child.send(request);
  return { answer, abandon: settle, usedMs: watch.usedMs };
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
 * Returns how long the threads of a process were ready to run and waited for a processor, or undefined. The second field is in
 * nanoseconds (Documentation/scheduler/sched-stats.rst).
 */
function waitedMsOf(pid: number | undefined): number | undefined {
  try {
    let waitedNs = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`))
      waitedNs += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[1]);
    return waitedNs / 1e6;
  } catch {
    return undefined;
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
