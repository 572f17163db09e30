import { fitsShare } from "../../lib/shares.ts";
import { openQueueWatch } from "../../lib/queue-watch.ts";
import type { Store } from "../store/store.ts";
import type { Delivery, DeliveryOutcome } from "../store/webhooks.ts";
import { openFortunes, type Turn } from "./fortunes.ts";
import { longestWaitsMs, nextWaitMs } from "./schedule.ts";
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
  readonly store: Pick<Store, "dueDeliveries" | "limitDeliveryWaits" | "nextDeliveryMs" | "settleDelivery">;
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
  readonly delivery: Delivery;
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
  const stop = new AbortController();
  const { signal } = stop;
  const fortunes = openFortunes();
  const running = new Map<
    number,
    { readonly accountId: string; readonly line: string; readonly work: Promise<void> }
  >();
  let isLimited = false;

  const carry = async (delivery: Delivery): Promise<void> => {
    const attempt: Attempt = delivery.enabled
      ? await sendDelivery(parts, delivery, signal)
      : { kind: "gone", problem: "the endpoint is disabled" };
    // Broken off by the close: nobody knows whether it arrived, so it is sent again.
    if (signal.aborted) return;
    const outcome = outcomeOf(delivery, attempt, { nowMs: nowMs(), steadyMs: steadyMs() }, parts.chance());
    const line = lineOf(delivery);
    const problem = outcome.kind === "delivered" ? undefined : outcome.problem;
    parts.report({ delivery, line, problem, turn: fortunes.note(line, outcome.kind) });
    await store.settleDelivery(outcome);
  };
  const start = (delivery: Delivery): void => {
    const work = carry(delivery)
      .catch(watch.fail)
      .finally(() => {
        running.delete(delivery.number);
        // After a failure of the store this waits: what was sent must not be sent again in a tight loop.
        watch.wake();
      });
    running.set(delivery.number, { accountId: delivery.accountId, line: lineOf(delivery), work });
  };
  const hasRoom = (accountId: string, attempts: number): boolean => {
    const own = [...running.values()].filter((each) => each.accountId === accountId).length;
    return fitsShare(ATTEMPTS_MAX, running.size, own, attempts);
  };
  /** Begins what is due and has room; whether there was anything. */
  const startDue = async (): Promise<boolean> => {
    const busy = new Map<string, number>();
    for (const { line } of running.values()) busy.set(line, (busy.get(line) ?? 0) + 1);
    const mayBegin = (line: string, accountId: string): boolean => {
      const ofLine = busy.get(line) ?? 0;
      return ofLine < PER_ENDPOINT_MAX && hasRoom(accountId, ofLine === 0 ? 1 : 1 + SPARE_ATTEMPTS);
    };
    const all = [...running.values()];
    const query = {
      nowMs: steadyMs(),
      perEndpoint: PER_ENDPOINT_MAX,
      underWay: [...running.keys()],
      fullHosts: all.flatMap(({ line, accountId }) => (mayBegin(line, accountId) ? [] : [line])),
      fullAccounts: all.flatMap(({ accountId }) => (hasRoom(accountId, 1) ? [] : [accountId])),
    };
    const due = await store.dueDeliveries(query);
    let begun = false;
    for (const delivery of inTurns(due, busy)) {
      if (signal.aborted || running.size >= ATTEMPTS_MAX) break;
      const line = lineOf(delivery);
      if (running.has(delivery.number) || !mayBegin(line, delivery.accountId)) continue;
      busy.set(line, (busy.get(line) ?? 0) + 1);
      start(delivery);
      begun = true;
    }
    return begun;
  };
  const look = async (): Promise<void> => {
    // The times of an earlier run: the clock may have been set back since.
    if (!isLimited) await store.limitDeliveryWaits(steadyMs(), longestWaitsMs());
    isLimited = true;
    // Again while something was begun: what stood behind messages of a host that is now full comes to light.
    while (await startDue()) if (signal.aborted || running.size >= ATTEMPTS_MAX) return;
    const nextMs = await store.nextDeliveryMs();
    // What is due and found no room is looked for when an attempt ends.
    const waitMs = (nextMs ?? Infinity) - steadyMs();
    if (waitMs < Infinity && (waitMs > 0 || running.size === 0)) watch.sleep(waitMs);
  };
  const watch = openQueueWatch({ look, onProblem: parts.onProblem });

  return {
    wake: watch.wake,
    underWay: () => running.size,
    close: async () => {
      stop.abort();
      await watch.close();
      await Promise.all([...running.values()].map(({ work }) => work));
    },
  };
}

/** What bounds its attempts: its endpoint, or the address it goes to. */
function lineOf({ endpointId, target }: Delivery): string {
  return endpointId ?? URL.parse(target.url)?.host ?? "";
}

/** Lines that have fewer attempts under way go first, so that some that never answer leave the others their turn. Pure. */
function inTurns(due: readonly Delivery[], busy: ReadonlyMap<string, number>): readonly Delivery[] {
  const places = new Map(busy);
  const placed = due.map((delivery) => {
    const place = places.get(lineOf(delivery)) ?? 0;
    places.set(lineOf(delivery), place + 1);
    return { delivery, place };
  });
  return placed.toSorted((a, b) => a.place - b.place).map(({ delivery }) => delivery);
}

/** What is to become of a delivery after an attempt. Pure. */
export function outcomeOf(
  delivery: Delivery,
  attempt: Attempt,
  { nowMs, steadyMs }: { readonly nowMs: number; readonly steadyMs: number },
  chance: number,
): DeliveryOutcome {
  const { number, endpointState } = delivery;
  const common = { number, endpointState, nowIso: new Date(nowMs).toISOString() };
  switch (attempt.kind) {
    case "arrived":
      return { ...common, kind: "delivered" };
    case "gone":
      return { ...common, kind: "dead", problem: attempt.problem, disable: true };
    case "failed": {
      const { problem } = attempt;
      const attempts = delivery.attempts + 1;
      const askedMs = attempt.retryAfterMs;
      const waitMs = nextWaitMs({ attempts, askedMs, chance });
      return waitMs === undefined
        ? { ...common, kind: "dead", problem, disable: false }
        : { ...common, kind: "retry", dueMs: steadyMs + waitMs, problem };
    }
  }
}

/** The same store; `wake` is notified of every write that may have put a message into the queue. */
export function noticeMessages(store: Store, wake: () => void): Store {
  const waking = async <T>(written: Promise<T>): Promise<T> => {
    const result = await written;
    wake();
    return result;
  };
  return {
    ...store,
    createResource: (...given) => waking(store.createResource(...given)),
    updateResource: (...given) => waking(store.updateResource(...given)),
    deleteResource: (...given) => waking(store.deleteResource(...given)),
    failJob: (...given) => waking(store.failJob(...given)),
    addDelivery: (...given) => waking(store.addDelivery(...given)),
    addTurn: (...given) => waking(store.addTurn(...given)),
    replayDeliveries: (...given) => waking(store.replayDeliveries(...given)),
  };
}
