import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { isOutOfMemory, type CappedReply } from "./child.ts";
import { startChild, type HostedChild } from "./children.ts";
import { startPatientTimer } from "./patient-timer.ts";

/** Limits of one child process. */
export interface CappedLimits {
  /** Memory it may take beyond what Node itself takes. */
  readonly memoryMb: number;
  /** Time for one request, in which waits for a processor do not count; the child is killed after it. */
  readonly timeoutMs: number;
}

/**
 * How a child ends that does not answer: it asked for too much memory, took too long, fell for another reason, which the
 * document may be, or could not be started or spoken to, or was ended by somebody, so that nothing is known of the document.
 */
export type CappedEnd = "memory" | "time" | "fall" | "unable";

/** What a child does and what its failures are for the caller. */
export interface CappedKind<Request, Failure extends string> {
  /** Calls `answerRequests`. */
  readonly module: URL;
  /** More of Node's flags, as `--allow-addons`. */
  readonly flags?: readonly string[];
  /**
   * Processor time that a request may take, in milliseconds, until the child allows more; after it the child is killed as after
   * `timeoutMs`. Default: as much as there is in that time. Where the system does not tell it (not Linux), that alone counts.
   */
  cpuMs?(this: void, request: Request): number | undefined;
  /** The error that a caller sees. */
  failure(code: Failure | CappedEnd, request: Request, detail: string): Error;
}

/** A child process that works on requests, one at a time. */
export interface CappedProcess<Request, Part> {
  /** Whether it may be given another request: alive, and neither grown nor used up. */
  fit(): boolean;
  /** Whether it fell at its last request. */
  fell(): boolean;
  /** The parts in order. Rejects with what `failure` makes, or with the signal's reason; it is to be killed then. */
  ask(request: Request, signal: AbortSignal | undefined): Promise<readonly Part[]>;
  /** Ends it at once; a request under way fails with `reason`. */
  kill(reason?: Error): void;
}

/** Signals by which Node or the kernel ends a process that asks for more memory than it may have. */
const MEMORY_SIGNALS: ReadonlySet<string> = new Set(["SIGABRT", "SIGTRAP", "SIGILL", "SIGKILL"]);

/** Signals by which a person or a shell ends what they started, and its children with it. */
const ENDING_SIGNALS: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE"]);

/**
 * Processor time after which a child is not used again. Its own limit is this and a few requests' time on top: should
 * the parent die while the child is caught in a loop, the kernel ends it.
 */
const REUSE_CPU_MS = 60_000;
/** Share of the memory limit for JavaScript's heap: the rest is for buffers, which V8 does not count. */
const HEAP_SHARE = 0.6;
/** Resident memory of Node and a library before any request. */
const FRESH_RSS_BYTES = 110 * 1024 * 1024;
/**
 * How much lower the priority of a child is than that of this process, for all of its threads: reading a document may take
 * longer, a search may not. Four busy threads on two processors delay others by 7 ms and more at the same priority, by
 * less than 4 ms at this one; at the lowest, 19, a child hardly runs beside other work.
 */
const NICER_BY = 10;

/**
 * Sets the limits and becomes the child. Refused limits (a stricter one is in force already) change nothing. The kernel kills the
 * child when the thread that started it ends (PR_SET_PDEATHSIG, prctl(2)), as after a SIGKILL of this process: caught in a loop
 * it does not notice. Where there is no `setpriv` that sets this (util-linux before 2.33, BusyBox), the limit on its processor
 * time ends it.
 */
const LIMITED = [
  'ulimit -c 0; ulimit -d "$1" 2>/dev/null; ulimit -t "$2" 2>/dev/null; nicer=$3; shift 3',
  'setpriv --pdeathsig KILL true 2>/dev/null && set -- setpriv --pdeathsig KILL "$@"',
  'exec nice -n "$nicer" "$@"',
].join("; ");

/** The child may read files: no writing, no processes, no native code, even if a document should take it over. */
const CONFINED = ["--no-warnings", "--permission", "--allow-fs-read=*"];

/**
 * Data segment that an empty Node process counts, in KB: V8 reserves some 500 MB of it for code without using it, and
 * how much depends on its version. Undefined where the system does not tell (not Linux); then only the heap is limited.
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
  let fell = false;
  child.on("message", (reply) => {
    const { kind: told } = reply as CappedReply<Part, Failure>; // the child calls answerRequests
    isReady ||= told === "ready";
  });
  child.on("exit", () => (fit = false)).on("error", () => (fit = false));
  let abandon: ((reason: Error) => void) | undefined;

  return {
    fit: () => fit,
    fell: () => fell,
    kill: (reason) => {
      fit = false;
      if (reason !== undefined) abandon?.(reason);
      child.kill();
    },
    ask: async (request, signal) => {
      child.hold(true);
      try {
        const failure = (end: Failure | CappedEnd, detail: string): Error => {
          // One that never said it is ready has not seen the document.
          const known = end === "fall" && !isReady ? "unable" : end;
          fell = known === "fall";
          return kind.failure(known, request, detail);
        };
        const budget = { timeoutMs: limits.timeoutMs, cpuMs: kind.cpuMs?.(request), isReady: () => isReady };
        const asked = askOnce<Part, Failure>(child, failure, request, budget, signal);
        abandon = asked.abandon;
        const { parts, rssBytes, cpuMs } = await asked.answer;
        fit &&= cpuMs < REUSE_CPU_MS && rssBytes < FRESH_RSS_BYTES + (limits.memoryMb * 1024 * 1024) / 2;
        return parts;
      } catch (error) {
        fit = false; // whatever a failed request left behind does not meet the next one
        throw error;
      } finally {
        abandon = undefined;
        child.hold(false);
      }
    },
  };
}

/** What one request may take. */
interface RequestBudget {
  readonly timeoutMs: number;
  readonly cpuMs: number | undefined;
  /** Whether the child has started: the time for that is not the request's. */
  isReady(this: void): boolean;
}

interface Answer<Part> {
  readonly parts: readonly Part[];
  readonly rssBytes: number;
  readonly cpuMs: number;
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it holds the reply to what the kind knows
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

/** How often a child's processor time is looked at. */
const CPU_CHECK_MS = 250;

/** Calls `onSpent`, once, when a child has used so much processor time since it was ready; more may be allowed from then on. */
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

/** Processor time of a process and its threads; undefined where the system does not tell. Times are in hundredths (proc(5)). */
function cpuMsOf(pid: number | undefined): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Behind the name, which may hold anything: state, and so on; the 12th and 13th are the times in user and kernel mode.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

/**
 * Time that the first thread of a process waited for a processor, since it began; 0 where the system does not tell. The second
 * number is in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
 */
function waitedMsOf(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

/** What the end of a child tells about the request it was working on. */
function endOf(code: number | null, killedBy: string | null, stderr: string): CappedEnd {
  if (killedBy === "SIGXCPU") return "time";
  if (killedBy !== null && ENDING_SIGNALS.has(killedBy)) return "unable";
  const memory = isOutOfMemory(stderr) || /heap limit/i.test(stderr);
  if (memory || code === 134 || (killedBy !== null && MEMORY_SIGNALS.has(killedBy))) return "memory";
  return "fall";
}
