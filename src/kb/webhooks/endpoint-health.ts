import type { DeliveryOutcome } from "../store/webhooks.ts";

/**
 * A change of an endpoint's health that is worth a log line: it starts to fail, its messages are given up, or it works again.
 */
export type Transition = "failing" | "given up" | "recovered";

/** Tracks the endpoints that do not work. */
export interface EndpointHealth {
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
