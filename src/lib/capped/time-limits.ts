/** Interval of the checks of a request's time. */
const CHECK_MS = 250;
/**
 * Share of the second half of `wallMs` that a child spends on a processor, or waiting for one, unless it hangs. An idle
 * Node process needs far less; a child that reads from a thrashing disk needs more.
 */
const ACTIVE_SHARE = 0.001;

/** Limits of the time of one request. */
export interface TimeLimits {
  /** Processor time in milliseconds, of all threads of the child. */
  readonly cpuMs: number;
  /** Time in milliseconds, far beyond `cpuMs`: it only ends a request that gets no processor time. */
  readonly wallMs: number;
}

/** The clock of a child. */
export interface ChildClock {
  /** Whether the child has started. Its start does not count as processor time of a request. */
  isReady(this: void): boolean;
  /** Processor time since the child's start in milliseconds; undefined: unknown. */
  cpuMs(this: void): number | undefined;
  /** Time in milliseconds that its threads were ready to run and waited for a processor; undefined: unknown. */
  waitedMs(this: void): number | undefined;
}

/** Watches the time of one request. */
export interface TimeWatch {
  /** Processor time of the request in milliseconds; where it is unknown, the time since its start. */
  usedMs(this: void): number;
  /** Checks the limits now. Call it once the child is ready, where its processor time for the request starts. */
  check(this: void): void;
  /** Limits the processor time from now on. */
  allow(this: void, cpuMs: number): void;
  stop(this: void): void;
}

/**
 * Calls `onEnd` once when a request exceeds a limit: `time` after its processor time, which it also needs on an idle machine;
 * `hang` after `wallMs` if the child neither ran nor waited for a processor in the second half of it; `busy` after `wallMs`
 * otherwise, which says nothing about the document. Where the system does not report the processor time (not Linux), only
 * `wallMs` applies, and means `time`. `measured` completes a sentence that begins with the work.
 */
export function watchTime(
  limits: TimeLimits,
  { isReady, cpuMs, waitedMs }: ChildClock,
  onEnd: (end: "time" | "hang" | "busy", measured: string) => void,
): TimeWatch {
  const startMs = performance.now();
  let allowedMs = limits.cpuMs;
  /** The child's processor time at the start of the request, and at the last `allow`. */
  let firstMs: number | undefined;
  let fromMs = 0;
  let lastMs: number | undefined;
  /** Time on a processor and waiting for one until the middle of `wallMs`. */
  let halfway: number | undefined;

  const read = (): number | undefined => {
    // A child that has ended reports nothing any more.
    lastMs = (isReady() ? cpuMs() : undefined) ?? lastMs;
    if (firstMs === undefined && lastMs !== undefined) fromMs = firstMs = lastMs;
    return lastMs;
  };
  const elapsedMs = (): number => performance.now() - startMs;
  const usedMs = (): number => {
    const nowMs = read();
    return nowMs === undefined || firstMs === undefined ? elapsedMs() : nowMs - firstMs;
  };
  const activeMs = (): number | undefined => {
    const waited = waitedMs();
    return lastMs === undefined || waited === undefined ? undefined : lastMs + waited;
  };
  const hasHung = (): boolean => {
    const nowMs = activeMs();
    if (nowMs === undefined || halfway === undefined) return false;
    return nowMs - halfway < (ACTIVE_SHARE * limits.wallMs) / 2;
  };
  const check = (): void => {
    const nowMs = read();
    if (elapsedMs() >= limits.wallMs / 2) halfway ??= activeMs();
    if (nowMs !== undefined && nowMs - fromMs >= allowedMs) {
      clearInterval(timer);
      onEnd("time", `used ${seconds(allowedMs)} of processor time without finishing`);
    } else if (elapsedMs() >= limits.wallMs) {
      clearInterval(timer);
      if (nowMs === undefined && isReady()) onEnd("time", `took ${seconds(elapsedMs())} without finishing`);
      else if (hasHung())
        onEnd("hang", `used no processor for ${seconds(limits.wallMs / 2)}, and waited for none`);
      else
        onEnd(
          "busy",
          `got ${seconds(nowMs === undefined ? 0 : usedMs())} of processor time in ${seconds(elapsedMs())}`,
        );
    }
  };
  read();
  const timer = setInterval(check, CHECK_MS).unref();
  return {
    usedMs,
    check,
    allow: (ms) => {
      fromMs = read() ?? 0;
      allowedMs = ms;
    },
    stop: () => clearInterval(timer),
  };
}

/** Milliseconds in seconds, with a decimal below ten. */
function seconds(ms: number): string {
  return `${ms < 9950 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}
