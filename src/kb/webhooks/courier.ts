import { fitsShare } from "../../lib/shares.ts";
import type { Leases } from "../queue/leases.ts";
import type { LeasedJob, WaitingJob } from "../queue/queue.ts";
import { inTurns, openRunner } from "../queue/runner.ts";
import type { Store } from "../store/store.ts";
import { receiverOf, stateOf, type DeliveryBody, type DeliveryOutcome } from "../store/webhooks.ts";
import { openEndpointHealth, type Turn } from "./endpoint-health.ts";
import { nextWaitMs } from "./schedule.ts";
import { sendDelivery } from "./send.ts";
import type { Attempt, SendParts } from "./send.ts";

/** Attempts at once; each holds a socket for up to the timeout. No account has all of them (`openShares`). */
const ATTEMPTS_MAX = 32;
/** Of them those of one endpoint, or of one host of addresses given with messages: a slow one takes not all. */
const PER_ENDPOINT_MAX = 4;
/**
 * Attempts that an account must have room for, beside the next one, to begin another of an endpoint that has one under way:
 * endpoints that never answer leave them to those that have none. Of an account's 24 this keeps 20 for the rest, as many as it
 * may have endpoints.
 */
const SPARE_ATTEMPTS = 4;

/**
 * Carries the messages of the queue to their receivers: at least once each, under an id that stays. Whatever writes to the
 * queue wakes it; it knows nothing of what the messages say.
 */
export interface Courier {
  /** Looks for what is due; to be called at the start, and whenever a message was written. */
  wake(this: void): void;
  underWay(): number;
  /** Breaks off what is under way; it is sent again after the next start. */
  close(): Promise<void>;
}

/** What a courier is opened with. */
export interface CourierParts extends SendParts {
  readonly store: Pick<Store, "queue" | "endpoint" | "settleDelivery">;
  readonly leases: Leases;
  /** A clock that is never set back. */
  readonly steadyMs: () => number;
  /** In [0, 1), for the spread of waits. */
  readonly chance: () => number;
  readonly report: (report: CourierReport) => void;
  /** Notified of failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** What came of an attempt, with what is to be told of it. */
export interface CourierReport {
  readonly eventId: string;
  /** Attempts so far. */
  readonly attempts: number;
  /** The endpoint, or the host of an address of the message's own. */
  readonly line: string;
  /** Undefined: it arrived. */
  readonly problem: string | undefined;
  /** Undefined where the line fares as it did. */
  readonly turn: Turn | undefined;
}

/** Opens the courier; it does nothing before `wake`. The dispatcher belongs to the caller. */
export function openCourier(parts: CourierParts): Courier {
  const { store, nowMs, steadyMs } = parts;
  const health = openEndpointHealth();

  const carry = async (job: LeasedJob, signal: AbortSignal): Promise<void> => {
    const { accountId, line, name: eventId, attempts } = job;
    const { target, body } = JSON.parse(job.body) as DeliveryBody; // written by the store
    const endpoint = target === undefined ? await store.endpoint({ accountId, id: line }) : undefined;
    // An endpoint that was removed took its messages with it.
    if (target === undefined && endpoint === undefined) return;
    const to = target ?? { url: endpoint?.url ?? "", secrets: endpoint?.secrets ?? [], headers: {} };
    const attempt: Attempt =
      endpoint?.enabled === false
        ? { kind: "gone", problem: "the endpoint is disabled" }
        : await sendDelivery(parts, { eventId, body, target: to }, signal);
    // Aborted by the close: nobody knows whether it arrived, so it is sent again.
    if (signal.aborted) return;
    const clock = { nowMs: nowMs(), steadyMs: steadyMs() };
    const outcome = outcomeOf(attempts + 1, attempt, clock, parts.chance());
    const problem = outcome.kind === "delivered" ? undefined : outcome.problem;
    const receiver = receiverOf(line);
    const turn = health.note(receiver, outcome.kind);
    parts.report({ eventId, attempts: attempts + 1, line: receiver, problem, turn });
    await store.settleDelivery(job, { ...outcome, ...(endpoint && { endpointState: stateOf(endpoint) }) });
  };
  const runner = openRunner({
    store,
    queue: "webhook",
    leases: parts.leases,
    nowMs: steadyMs,
    perLine: PER_ENDPOINT_MAX,
    choose,
    work: async (job, signal) => {
      await carry(job, signal);
      return undefined;
    },
    onProblem: parts.onProblem,
  });
  return { wake: runner.wake, underWay: () => runner.running(), close: () => runner.close() };
}

/**
 * Chooses the messages that are sent now. Receivers with fewer attempts in flight go first, so that some that never answer
 * leave the others their turn. Pure.
 */
function choose(due: readonly WaitingJob[], running: readonly WaitingJob[]): readonly WaitingJob[] {
  const receiver = ({ line }: WaitingJob): string => receiverOf(line);
  const beside = [...running];
  const mayStart = (job: WaitingJob): boolean => {
    const toReceiver = beside.filter((each) => receiver(each) === receiver(job)).length;
    const own = beside.filter(({ accountId }) => accountId === job.accountId).length;
    const room = toReceiver === 0 ? 1 : 1 + SPARE_ATTEMPTS;
    return toReceiver < PER_ENDPOINT_MAX && fitsShare(ATTEMPTS_MAX, beside.length, own, room);
  };
  for (const job of inTurns(due, running, receiver)) {
    if (beside.length >= ATTEMPTS_MAX) break;
    if (mayStart(job)) beside.push(job);
  }
  return beside.slice(running.length);
}

/** What is to become of a delivery after so many attempts, the last of which ended so. Pure. */
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
      return { nowIso, kind: "dead", problem: attempt.problem, disable: true };
    case "failed": {
      const { problem, retryAfterMs: askedMs } = attempt;
      const waitMs = nextWaitMs({ attempts, askedMs, chance });
      return waitMs === undefined
        ? { nowIso, kind: "dead", problem, disable: false }
        : { nowIso, kind: "retry", dueMs: steadyMs + waitMs, nowMs: steadyMs, problem };
    }
  }
}
