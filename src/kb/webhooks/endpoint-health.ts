import type { DeliveryOutcome } from "../store/webhooks.ts";

/**
 * A change of how an endpoint fares that is worth a line: it begins to fail, messages for it come to be given up, it works
 * again. What comes between is more of the same.
 */
export type Turn = "failing" | "given up" | "back";

/** How the endpoints fare that do not work. */
export interface EndpointHealth {
  /** Notes what came of a message; undefined where that changes nothing. */
  note(endpoint: string, outcome: DeliveryOutcome["kind"]): Turn | undefined;
}

/** Failing endpoints that are remembered; beyond that the oldest is forgotten, and told once more. */
const REMEMBERED_MAX = 1000;

/** All endpoints work until something else is noted. */
export function openEndpointHealth(): EndpointHealth {
  const bad = new Map<string, "failing" | "given up">();
  const remember = (endpoint: string, state: "failing" | "given up"): Turn => {
    bad.set(endpoint, state);
    const [oldest] = bad.keys();
    if (bad.size > REMEMBERED_MAX && oldest !== undefined) bad.delete(oldest);
    return state;
  };
  return {
    note: (endpoint, outcome) => {
      const before = bad.get(endpoint);
      switch (outcome) {
        case "delivered":
          return bad.delete(endpoint) ? "back" : undefined;
        case "retry":
          return before === undefined ? remember(endpoint, "failing") : undefined;
        case "dead":
          return before === "given up" ? undefined : remember(endpoint, "given up");
      }
    },
  };
}
