import { fitsShare } from "../../lib/shares.ts";
import type { Leases } from "../queue/leases.ts";
import type { LeasedJob, Queue, WaitingJob } from "../queue/queue.ts";
import { inTurns, openRunner } from "../queue/runner.ts";
import type { Records } from "../store/records.ts";
import { receiverOf, stateOf, type DeliveryBody, type DeliveryOutcome } from "../store/webhooks.ts";
import { sendDelivery, type Attempt, type SendParts } from "./send.ts";

/** Most attempts in flight; each holds a socket for up to the timeout. No account gets all of them (`openShares`). */
const ATTEMPTS_MAX = 32;
/** Most attempts in flight to one endpoint, or to one host of addresses given with messages: a slow one must not take all. */
const PER_ENDPOINT_MAX = 4;
/**
 * Attempts that an account must have spare before it starts another one to an endpoint that already has one in flight.
 * Endpoints that never answer thereby leave attempts to endpoints without one. Of an account's 24 attempts, this reserves 20 for
 * first attempts, as many as the account may have endpoints.
 */
const SPARE_ATTEMPTS = 4;

/**
 * Delivers the queue's messages to their receivers: each at least once, under a stable id. Every write to the queue wakes it. It
 * does not interpret the messages.
 */
export interface DeliveryRunner {
  /** Checks for due messages. Call it at the start and whenever a message is written. */
  wake(this: void): void;
  inFlight(): number;
  /** Aborts attempts in flight; the next start repeats them. */
  close(): Promise<void>;
}

/** The dependencies of a delivery runner. */
export interface DeliveryRunnerParts extends SendParts {
  readonly records: Pick<Records, "endpoint" | "settleDelivery">;
  readonly queue: Queue;
  readonly leases: Leases;
  /** A clock that is never set back. */
  readonly steadyMs: () => number;
  /** Returns a random number in [0, 1), for jitter. */
  readonly chance: () => number;
  readonly report: (report: DeliveryReport) => void;
  /** Reports failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** The result of an attempt, for the log and the metrics. */
export interface DeliveryReport {
  readonly eventId: string;
  /** Attempts so far. */
  readonly attempts: number;
  /** The endpoint, or the host if the address was given with the message. */
  readonly line: string;
  /** Undefined: the message arrived. */
  readonly problem: string | undefined;
  /** Undefined when the health of the endpoint did not change. */
  readonly transition: Transition | undefined;
}

/** Opens the runner. It does nothing before `wake`. The caller owns the dispatcher. */
export function openDeliveryRunner(parts: DeliveryRunnerParts): DeliveryRunner {
  const { records, nowMs, steadyMs } = parts;
  const health = openEndpointHealth();

  const deliver = async (job: LeasedJob, signal: AbortSignal): Promise<void> => {
    const { accountId, line, name: eventId, attempts } = job;
    const { target, body } = JSON.parse(job.body) as DeliveryBody; // written by the store
    const endpoint = target === undefined ? await records.endpoint({ accountId, id: line }) : undefined;
    // The messages of a removed endpoint are removed too.
    if (target === undefined && endpoint === undefined) return;
    const to = target ?? { url: endpoint?.url ?? "", secret: endpoint?.secret, headers: {} };
    const attempt: Attempt =
      endpoint?.enabled === false
        ? { kind: "gone", problem: "the endpoint is disabled" }
        : await sendDelivery(parts, { eventId, body, target: to }, signal);
    // The close aborted it. Whether the message arrived is unknown, so it is sent again.
    if (signal.aborted) return;
    const clock = { nowMs: nowMs(), steadyMs: steadyMs() };
    const outcome = outcomeOf(attempts + 1, attempt, clock, parts.chance());
    const problem = outcome.kind === "delivered" ? undefined : outcome.problem;
    const receiver = receiverOf(line);
    const transition = health.note(receiver, outcome.kind);
    parts.report({ eventId, attempts: attempts + 1, line: receiver, problem, transition });
    await records.settleDelivery(job, { ...outcome, ...(endpoint && { endpointState: stateOf(endpoint) }) });
  };
  const runner = openRunner({
    queue: parts.queue,
    name: "webhook",
    leases: parts.leases,
    nowMs: steadyMs,
    perLine: PER_ENDPOINT_MAX,
    choose,
    work: async (job, signal) => {
      await deliver(job, signal);
      return undefined;
    },
    onProblem: parts.onProblem,
  });
  return { wake: runner.wake, inFlight: () => runner.running(), close: () => runner.close() };
}

/**
 * Chooses the messages to send now. Receivers with fewer attempts in flight go first, so that receivers that never answer do not
 * delay the others. Pure.
 */
function choose(due: readonly WaitingJob[], running: readonly WaitingJob[]): readonly WaitingJob[] {
  const receiver = ({ line }: WaitingJob): string => receiverOf(line);
  const inFlight = [...running];
  const mayStart = (job: WaitingJob): boolean => {
    const toReceiver = inFlight.filter((each) => receiver(each) === receiver(job)).length;
    const own = inFlight.filter(({ accountId }) => accountId === job.accountId).length;
    const needed = toReceiver === 0 ? 1 : 1 + SPARE_ATTEMPTS;
    return toReceiver < PER_ENDPOINT_MAX && fitsShare(ATTEMPTS_MAX, inFlight.length, own, needed);
  };
  for (const job of inTurns(due, running, receiver)) {
    if (inFlight.length >= ATTEMPTS_MAX) break;
    if (mayStart(job)) inFlight.push(job);
  }
  return inFlight.slice(running.length);
}

/** Decides what happens to a delivery after its `attempts`-th attempt. Pure. */
export function outcomeOf(
  attempts: number,
  attempt: Attempt,
  { nowMs, steadyMs }: { readonly nowMs: number; readonly steadyMs: number },
  chance: number,
): DeliveryOutcome {
  const nowIso = new Date(nowMs).toISOString();
  switch (attempt.kind) {
    case "arrived":
      return { nowIso, kind: "delivered" };
    case "gone":
      return { nowIso, kind: "failed", problem: attempt.problem, disable: true };
    case "failed": {
      const { problem, retryAfterMs: requestedMs } = attempt;
      const waitMs = nextWaitMs({ attempts, requestedMs, chance });
      return waitMs === undefined
        ? { nowIso, kind: "failed", problem, disable: false }
        : { nowIso, kind: "retry", dueMs: steadyMs + waitMs, nowMs: steadyMs, problem };
    }
  }
}

/**
 * A change of an endpoint's health that is worth a log line: it starts to fail, its messages are given up, or it works again.
 */
type Transition = "failing" | "given up" | "recovered";

/** Tracks the endpoints that do not work. */
interface EndpointHealth {
  /** Records the outcome of a message; returns the transition that it causes, if any. */
  note(endpoint: string, outcome: DeliveryOutcome["kind"]): Transition | undefined;
}

/** Most failing endpoints in memory. Beyond that the oldest is evicted, and its next failure is reported again. */
const TRACKED_MAX = 1000;

/** Opens the health of all endpoints. Each works until a failure is recorded. */
export function openEndpointHealth(): EndpointHealth {
  const failing = new Map<string, "failing" | "given up">();
  const track = (endpoint: string, state: "failing" | "given up"): Transition => {
    failing.set(endpoint, state);
    const [oldest] = failing.keys();
    if (failing.size > TRACKED_MAX && oldest !== undefined) failing.delete(oldest);
    return state;
  };
  return {
    note: (endpoint, outcome) => {
      const before = failing.get(endpoint);
      switch (outcome) {
        case "delivered":
          return failing.delete(endpoint) ? "recovered" : undefined;
        case "retry":
          return before === undefined ? track(endpoint, "failing") : undefined;
        case "failed":
          return before === "given up" ? undefined : track(endpoint, "given up");
      }
    },
  };
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Waits after the first, second, … failed attempt, 24 hours in total. A message that fails once more is given up. The
 * schedule counts attempts, because a difference of two wall-clock times is wrong after the clock was set.
 */
const DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  5 * HOUR_MS,
  5 * HOUR_MS,
  6 * HOUR_MS + 17 * MINUTE_MS + 25 * SECOND_MS,
];
/** Longest wait that a receiver may request. */
const REQUESTED_MS_MAX = 6 * HOUR_MS;

/** Jitter: the share by which a wait is shortened or lengthened, so that messages that failed together do not retry together. */
const JITTER = 0.1;

/** A message after a failed attempt. */
interface FailedAttempt {
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** The receiver's `Retry-After`, if any. */
  readonly requestedMs: number | undefined;
  /** A random number in [0, 1). */
  readonly chance: number;
}

/** Returns the backoff before the next attempt, or the wait that the receiver requested if longer. Undefined: give up. Pure. */
export function nextWaitMs({ attempts, requestedMs, chance }: FailedAttempt): number | undefined {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return undefined;
  const spread = delay * (1 + JITTER * (2 * chance - 1));
  return Math.round(Math.max(spread, Math.min(requestedMs ?? 0, REQUESTED_MS_MAX)));
}
