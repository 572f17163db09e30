import type { GateState, PaceState } from "../../../wire/daemon-status.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { DELAY_MS_MAX, delayMs, narrow, widen } from "../../plan/retry.ts";
import type { Later } from "./answer.ts";
import { openRequestLimit, type RequestKind } from "./request-limit.ts";
import { openWaiters } from "./waiters.ts";

/** State of a service that does not answer, or fails. */
type Outage = Extract<GateState, { kind: "waiting" }>;

/** Describes to a person why the gate is closed, with the service's hint if it gave one. */
export function outageWords({ reason, hint }: Pick<Outage, "reason" | "hint">): string {
  return `${outageOf({ hint })}: ${reason}${hint === undefined ? "" : ` ${hint.replace(/\.$/, "")}`}`;
}

/** Says why requests do not leave; undefined: they do. */
export function paceTrouble(state: PaceState): string | undefined {
  if (state.kind === "waiting") return outageWords(state);
  return state.kind === "key_refused"
    ? `the service refuses the key: ${state.reason.replace(/\.$/, "")}`
    : undefined;
}

function outageOf({ hint }: Pick<Outage, "hint">): string {
  return hint === undefined ? "the service does not answer" : "the service cannot work";
}

/** Number of the last failure when a request left. Results of requests with an older ticket are stale. */
export type Ticket = number;

/**
 * The gate that every request to the service passes. It closes for all of them when the service fails or asks for a
 * delay, and holds the configured number of requests per minute.
 */
export type Pacer = ReturnType<typeof openPacer>;

export interface PacerOptions {
  readonly widthMax: number;
  /** Default: no limit. */
  readonly requestsPerMinute?: number | undefined;
  /** Time without an answer after which `enter` throws. Infinity: never. */
  readonly patienceMs: () => number;
  /**
   * A monotonic clock: setting the system time must neither end nor prolong a wait. Time in which the machine is suspended
   * does not count, as with timers.
   */
  readonly elapsed?: () => number;
  /** The time of day, for `state`. */
  readonly timeOfDay?: () => number;
  readonly random: () => number;
  /** First wait after a failure. Default: `DELAY_MS_MIN`. */
  readonly retryMs?: number;
  readonly onWidth: (width: number) => void;
  /** Called once when the service stops answering, asks for a long wait or refuses the key, until it answers again. */
  readonly onTrouble: (error: KbsyncError) => void;
}

/** Failures in a row that cause a warning; single ones are ordinary. */
const WARN_FAILURES = 3;
/** Wait that the service asks for that causes a warning at once, in milliseconds: the longest of the daemon's own. */
const LONG_MS = DELAY_MS_MAX;
/**
 * Patience with an unreachable address, if patience is bounded: a restarting service is back within this time, and waiting
 * corrects neither a wrong address nor a machine that is off.
 */
const UNREACHED_PATIENCE_MS = 10_000;
/** Refusals of the key in a row that count as final: a single one may come from a proxy that is starting. */
const REFUSALS_FINAL = 2;

/** Opens the gate. */
export function openPacer(options: PacerOptions) {
  const { widthMax, requestsPerMinute, patienceMs, random, retryMs, onWidth, onTrouble } = options;
  const { elapsed: now = () => performance.now(), timeOfDay = () => Date.now() } = options;
  const width = openWidth(widthMax, onWidth);
  const waiters = openWaiters();
  const admit = requestsPerMinute === undefined ? () => 0 : openRequestLimit(requestsPerMinute, now);
  let failures = 0;
  /** Refusals of the key in a row. */
  let refusals = 0;
  /** Times are by the monotonic clock. */
  let state: GateState = { kind: "open" };
  let failingSinceMs = 0;
  /** Whether the last failure was an unreachable address. */
  let unreached = false;
  /** Whether a long wait was reported since the gate closed. */
  let isAskReported = false;
  /** Number of failures so far. While the gate is closed, only the probe carries the newest. */
  let newest: Ticket = 0;
  let probing = false;
  let closed: Error | undefined;

  /** End of patience; may be infinite. */
  const givesUpMs = (): number => {
    const ms = patienceMs();
    return failingSinceMs + (unreached && ms !== Infinity ? Math.min(ms, UNREACHED_PATIENCE_MS) : ms);
  };
  /** Whether the service refused the key only once so far: the next try decides. */
  const isUnconfirmed = (): boolean => refusals > 0 && refusals < REFUSALS_FINAL;
  const giveUpIfHopeless = (): void => {
    const error = troubleOf(state);
    if (state.kind === "open" || error === undefined || patienceMs() === Infinity) return;
    // A delay that the service asked for meanwhile may outlast the patience.
    if (isUnconfirmed() && state.untilMs <= now()) return;
    if (!error.retryable || now() >= givesUpMs()) throw error;
  };

  const noteAsked = (retryAfterMs = 0): void => {
    if (state.kind !== "waiting" || retryAfterMs < LONG_MS) return;
    state = { ...state, isAsked: true };
    if (!isAskReported) onTrouble(askedWait(state, retryAfterMs, state.untilMs - now()));
    isAskReported = true;
  };

  return {
    /**
     * Resolves when a request may leave. After a failure all requests wait; then one of them probes the service, and only
     * its success opens the gate for the others. Throws the signal's reason, or, after the end of patience,
     * `service_unreachable` or `key_refused`. Each `enter` must be followed by `succeeded`, `failed` or `left` with its
     * ticket.
     */
    enter: async (signal: AbortSignal, kind: RequestKind = "control"): Promise<Ticket> => {
      for (;;) {
        signal.throwIfAborted();
        if (closed !== undefined) throw closed;
        if (state.kind !== "open") giveUpIfHopeless();
        const restMs = state.kind === "open" ? 0 : state.untilMs - now();
        if (restMs > 0 || (state.kind !== "open" && probing)) {
          // Patience may end before the next attempt.
          await waiters.wait(restMs > 0 ? Math.min(restMs, givesUpMs() - now()) : undefined, signal);
          continue;
        }
        const limitedMs = admit(kind);
        if (limitedMs > 0) {
          await waiters.wait(limitedMs, signal);
          continue;
        }
        probing = state.kind !== "open";
        return newest;
      }
    },
    /**
     * The service answered, be it with a refusal. Opens the gate only for a request that left after it closed: one that was
     * already in flight does not cancel a delay that the service asked for.
     */
    succeeded: (ticket: Ticket): void => {
      width.widen();
      if (state.kind === "open" || ticket !== newest) return;
      failures = 0;
      refusals = 0;
      isAskReported = false;
      probing = false;
      // The service asked for a delay while the probe was in flight: the next probe leaves after it.
      if (state.untilMs > now()) {
        waiters.wake();
        return;
      }
      state = { kind: "open" };
      waiters.wake();
    },
    failed: (
      ticket: Ticket,
      { blame, reason, hint, retryAfterMs, unreached: isUnreached = false }: Later,
    ): void => {
      const nowMs = now();
      // Requests that left together fail together: they count as one failure of the service. A delay that any of them brings
      // applies nevertheless.
      if (state.kind !== "open" && ticket !== newest) {
        const wishMs = nowMs + (retryAfterMs === undefined ? 0 : delayMs(1, retryAfterMs, 0, retryMs));
        if (wishMs <= state.untilMs) return;
        state = { ...state, untilMs: wishMs };
        noteAsked(retryAfterMs);
        return;
      }
      newest += 1;
      unreached = isUnreached;
      if (state.kind === "open") failingSinceMs = nowMs;
      probing = false;
      failures += 1;
      width.narrow();
      refusals = blame === "key" ? refusals + 1 : 0;
      // After the first refusal of the key, one request leaves at once. Later attempts become rarer; the key may be renewed.
      const delay = isUnconfirmed()
        ? 0
        : delayMs(refusals > 0 ? refusals : failures, retryAfterMs, random(), retryMs);
      // A delay that arrived while the probe was in flight applies, whatever the result of the probe.
      const untilMs = Math.max(nowMs + delay, state.kind === "open" ? 0 : state.untilMs);
      const isNews =
        refusals === REFUSALS_FINAL ||
        (hint !== undefined && !(state.kind === "waiting" && state.hint === hint));
      state =
        refusals >= REFUSALS_FINAL
          ? { kind: "key_refused", untilMs, reason }
          : { kind: "waiting", untilMs, reason, hint };
      const error = troubleOf(state);
      const isLong = failures === WARN_FAILURES && refusals === 0;
      if (error !== undefined && (isLong || isNews)) onTrouble(error);
      noteAsked(retryAfterMs);
      waiters.wake();
    },
    /** The request ended without information about the service. */
    left: (ticket: Ticket): void => {
      if (!probing || ticket !== newest) return;
      probing = false;
      waiters.wake();
    },
    /** Ends the wait, also one that the service asked for: one request leaves now and decides. */
    retry: (): void => {
      if (state.kind === "open") return;
      state = { ...state, untilMs: now() };
      waiters.wake();
    },
    /** Closes the gate for good: `enter` throws the reason. */
    close: (reason: Error): void => {
      closed = reason;
      waiters.wake();
    },
    /** Requests that may be in flight at once. */
    width: width.whole,
    state: (): PaceState => {
      if (state.kind === "open")
        return requestsPerMinute === undefined ? state : { kind: "limited", requestsPerMinute };
      const toTimeOfDay = timeOfDay() - now();
      const shown = { ...state, untilMs: state.untilMs + toTimeOfDay };
      if (shown.kind !== "waiting" || givesUpMs() === Infinity) return shown;
      return { ...shown, givesUpMs: givesUpMs() + toTimeOfDay };
    },
  };
}

/** Describes to a person why the gate is closed; undefined while it is open. */
function troubleOf(state: GateState): KbsyncError | undefined {
  if (state.kind === "open") return undefined;
  return state.kind === "key_refused"
    ? new KbsyncError(`the service refuses the key: ${state.reason}`, {
        code: "key_refused",
        hint: "check pauthkeyFile or KBSYNC_PAUTHKEY",
      })
    : new KbsyncError(`${outageOf(state)}: ${state.reason}`, {
        code: "service_unreachable",
        retryable: state.hint === undefined,
        hint: state.hint ?? "check that the service runs and its address is right",
      });
}

/** Describes a long wait that the service asked for, and how much of it is observed. */
function askedWait({ reason }: Outage, askedMs: number, waitMs: number): KbsyncError {
  const minutes = (ms: number): string => `${Math.ceil(ms / 60_000)} min`;
  return new KbsyncError(
    `the service asks to wait for ${minutes(askedMs)}, the next try is in ${minutes(waitMs)}: ${reason}`,
    { code: "service_unreachable", retryable: true, hint: "`kbsync retry` tries now." },
  );
}

/** The number of requests that may be in flight. `onWidth` receives it when its whole part changes. */
function openWidth(
  widthMax: number,
  onWidth: (width: number) => void,
): { widen: () => void; narrow: () => void; whole: () => number } {
  let width = widthMax;
  const set = (next: number): void => {
    const before = Math.floor(width);
    width = next;
    if (Math.floor(width) !== before) onWidth(Math.floor(width));
  };
  return {
    widen: () => set(widen(width, widthMax)),
    narrow: () => set(narrow(width)),
    whole: () => Math.max(1, Math.floor(width)),
  };
}
