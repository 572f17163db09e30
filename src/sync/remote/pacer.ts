import type { PaceState } from "../../wire/daemon.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { delayMs, narrow, widen } from "../plan/retry.ts";
import type { Later } from "./answer.ts";

/** The service does not answer, or not as it should. */
type Outage = Extract<PaceState, { kind: "waiting" }>;

/** What keeps the gate closed, for a person, with what can be done where the service tells. */
export function outageWords({ reason, hint }: Pick<Outage, "reason" | "hint">): string {
  return `${outageOf({ hint })}: ${reason}${hint === undefined ? "" : ` ${hint.replace(/\.$/, "")}`}`;
}

function outageOf({ hint }: Pick<Outage, "hint">): string {
  return hint === undefined ? "the service does not answer" : "the service cannot work";
}

/** Which failure of the service a request left after: what an older one tells is old news. */
export type Ticket = number;

/** One gate that every request to the service passes: it closes when the service asks for it, for all. */
export interface Pacer {
  /**
   * Resolves when a request may leave. After a failure everybody waits; then one request goes ahead, and only its
   * success lets the others through. Throws the signal's reason, or, when patience is over, `service_unreachable` or
   * `key_refused`. Each `enter` must be followed by `succeeded`, `failed` or `left` with its ticket.
   */
  enter(signal: AbortSignal): Promise<Ticket>;
  /**
   * The service answered and meant it, be it a refusal. Opens the gate only for a request that left after it closed:
   * one that was on its way does not undo the service's wish to be left alone.
   */
  succeeded(ticket: Ticket): void;
  failed(ticket: Ticket, later: Later): void;
  /** The request ended without telling anything about the service. */
  left(ticket: Ticket): void;
  /** Lets nobody through any more: `enter` throws the reason. */
  close(reason: Error): void;
  /** Requests that may be on their way side by side. */
  width(): number;
  /** Failures since the last success. */
  failures(): number;
  state(): PaceState;
}

export interface PacerOptions {
  readonly widthMax: number;
  /** Give up when the service has not answered for so long. Infinity: never. */
  readonly patienceMs: () => number;
  /**
   * A monotonic clock: setting the time of day must neither end nor prolong a wait. Time in which the machine is
   * suspended does not count, as it does not for timers.
   */
  readonly elapsed?: () => number;
  /** The time of day, for `state`. */
  readonly timeOfDay?: () => number;
  readonly random: () => number;
  /** First wait after a failure. Default: `DELAY_MS_MIN`. */
  readonly retryMs?: number;
  readonly onWidth: (width: number) => void;
  /** The service stopped answering, or refuses the key: told once until it answers again. */
  readonly onTrouble: (error: KbsyncError) => void;
}

/** After so many failures in a row it is worth a warning; single ones are ordinary. */
const WARN_FAILURES = 3;
/**
 * Patience with an address where nobody is, where there is an end to it: a service that restarts is back within this
 * time, and a wrong address or a machine that is off does not become right by waiting.
 */
const UNREACHED_PATIENCE_MS = 10_000;
/** So many refusals of the key, one after another, are meant: a single one may be a proxy's that is just starting. */
const REFUSALS_MEANT = 2;

/** Opens the gate. */
export function openPacer(options: PacerOptions): Pacer {
  const { widthMax, patienceMs, random, retryMs, onWidth, onTrouble } = options;
  const { elapsed: now = () => performance.now(), timeOfDay = () => Date.now() } = options;
  let width = widthMax;
  let failures = 0;
  /** Refusals of the key, one after another. */
  let refusals = 0;
  /** Its times are by the monotonic clock. */
  let state: PaceState = { kind: "open" };
  let failingSinceMs = 0;
  /** The last failure found nobody there. */
  let unreached = false;
  /** Failures ever; while the gate is closed only the probe carries the newest. */
  let newest: Ticket = 0;
  let probing = false;
  let waiters: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  let closed: Error | undefined;

  const wake = (): void => {
    const woken = waiters;
    waiters = [];
    for (const resolve of woken) resolve();
  };
  const setWidth = (next: number): void => {
    const before = Math.floor(width);
    width = next;
    if (Math.floor(width) !== before) onWidth(Math.floor(width));
  };
  /** What stands between us and the service, in words; undefined while the gate is open. */
  const trouble = (): KbsyncError | undefined => {
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
  };
  /** When it is given up; infinite: never. */
  const givesUpMs = (): number => {
    const ms = patienceMs();
    return failingSinceMs + (unreached && ms !== Infinity ? Math.min(ms, UNREACHED_PATIENCE_MS) : ms);
  };
  /** The key was refused once, and is being tried again. */
  const isUnmeant = (): boolean => refusals > 0 && refusals < REFUSALS_MEANT;
  const giveUpIfHopeless = (): void => {
    const error = trouble();
    if (error === undefined || patienceMs() === Infinity || isUnmeant()) return;
    if (!error.retryable || now() >= givesUpMs()) throw error;
  };

  return {
    enter: async (signal) => {
      for (;;) {
        signal.throwIfAborted();
        if (closed !== undefined) throw closed;
        if (state.kind === "open") return newest;
        giveUpIfHopeless();
        const restMs = state.untilMs - now();
        if (restMs <= 0 && !probing) {
          probing = true;
          return newest;
        }
        const { promise, resolve } = Promise.withResolvers<void>();
        const proceed = (): void => resolve();
        waiters.push(proceed);
        signal.addEventListener("abort", proceed, { once: true });
        if (restMs > 0)
          timer ??= setTimeout(
            () => ((timer = undefined), wake()),
            // The end of patience may come before the next try.
            Math.max(0, Math.min(restMs, givesUpMs() - now(), 2 ** 31 - 1)),
          );
        await promise;
        signal.removeEventListener("abort", proceed);
      }
    },
    succeeded: (ticket) => {
      setWidth(widen(width, widthMax));
      if (state.kind === "open" || ticket !== newest) return;
      failures = 0;
      refusals = 0;
      probing = false;
      // The service wished to be left alone while the probe was on its way: the next one goes when that is over.
      if (state.untilMs > now()) {
        wake();
        return;
      }
      state = { kind: "open" };
      clearTimeout(timer);
      timer = undefined;
      wake();
    },
    failed: (ticket, { blame, reason, hint, retryAfterMs, unreached: nobody = false }) => {
      const nowMs = now();
      // Requests that left together fail together: that is one failure of the service, not one of each. But whichever
      // of them brings the service's wish, it holds.
      if (state.kind !== "open" && ticket !== newest) {
        const wishMs = nowMs + (retryAfterMs === undefined ? 0 : delayMs(1, retryAfterMs, 0, retryMs));
        if (wishMs > state.untilMs) state = { ...state, untilMs: wishMs };
        return;
      }
      newest += 1;
      unreached = nobody;
      if (state.kind === "open") failingSinceMs = nowMs;
      probing = false;
      failures += 1;
      setWidth(narrow(width));
      refusals = blame === "key" ? refusals + 1 : 0;
      // After a first refusal of the key one request goes at once. The key may be renewed: then it is tried ever less often.
      const delay = isUnmeant()
        ? 0
        : delayMs(refusals > 0 ? refusals : failures, retryAfterMs, random(), retryMs);
      // A wish that came while the probe was on its way holds, whatever became of the probe.
      const untilMs = Math.max(nowMs + delay, state.kind === "open" ? 0 : state.untilMs);
      const isNews =
        refusals === REFUSALS_MEANT ||
        (hint !== undefined && !(state.kind === "waiting" && state.hint === hint));
      state =
        refusals >= REFUSALS_MEANT
          ? { kind: "key_refused", untilMs, reason }
          : { kind: "waiting", untilMs, reason, hint };
      clearTimeout(timer);
      timer = undefined;
      const error = trouble();
      const isLong = failures === WARN_FAILURES && refusals === 0;
      if (error !== undefined && (isLong || isNews)) onTrouble(error);
      wake();
    },
    left: (ticket) => {
      if (!probing || ticket !== newest) return;
      probing = false;
      wake();
    },
    close: (reason) => {
      closed = reason;
      clearTimeout(timer);
      wake();
    },
    width: () => Math.max(1, Math.floor(width)),
    failures: () => failures,
    state: () => {
      if (state.kind === "open") return state;
      const toTimeOfDay = timeOfDay() - now();
      const shown = { ...state, untilMs: state.untilMs + toTimeOfDay };
      if (shown.kind !== "waiting" || givesUpMs() === Infinity) return shown;
      return { ...shown, givesUpMs: givesUpMs() + toTimeOfDay };
    },
  };
}
