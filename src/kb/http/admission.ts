import { Refusal } from "../resources/refusal.ts";

export type ServiceState = "starting" | "ready" | "draining";

/** Bounds of what is under way at once. */
export interface AdmissionLimits {
  /** Requests under way. */
  readonly requests: number;
  /** Bytes of bodies held in memory by the requests under way. */
  readonly bodyBytes: number;
  /** Requests under way that take a document in. Default: as many as requests. */
  readonly ingests?: number;
}

/** Lets requests in, and knows when none is left. */
export interface Admission {
  state(): ServiceState;
  become(state: ServiceState): void;
  /**
   * Lets a request in that will hold `bodyBytes` in memory, and returns what to call once when it is over. `ingests`:
   * it takes a document in. Throws `starting`, `draining` or `overloaded`.
   */
  enter(bodyBytes: number, ingests?: boolean): () => void;
  /** Requests that were let in and are not over. */
  underWay(): number;
  /** Resolves when nothing is under way, or after `timeoutMs`; says which. */
  empty(timeoutMs: number): Promise<"empty" | "timeout">;
}

/** Starts in state `starting`. */
export function openAdmission(limits: AdmissionLimits): Admission {
  let state: ServiceState = "starting";
  let requests = 0;
  let held = 0;
  let ingesting = 0;
  const ingestsMax = limits.ingests ?? limits.requests;
  let onEmpty: (() => void) | undefined;

  const refuse = (): void => {
    if (state === "starting") throw new Refusal("starting", "The service is starting.");
    if (state === "draining") throw new Refusal("draining", "The service is shutting down.");
    if (requests >= limits.requests) {
      throw new Refusal("overloaded", `More than ${limits.requests} requests are under way.`);
    }
  };

  return {
    state: () => state,
    become: (next) => {
      state = next;
    },
    enter: (bodyBytes, ingests = false) => {
      refuse();
      // Before the others: searches stay possible however much is being taken in.
      if (ingests && ingesting >= ingestsMax) {
        throw new Refusal("overloaded", `More than ${ingestsMax} documents are being taken in.`);
      }
      // One request is let in however large: its own limit bounds it, and it could never pass otherwise.
      if (held > 0 && held + bodyBytes > limits.bodyBytes) {
        throw new Refusal("overloaded", `Bodies of more than ${limits.bodyBytes} bytes are under way.`);
      }
      requests += 1;
      held += bodyBytes;
      if (ingests) ingesting += 1;
      let over = false;
      return () => {
        if (over) return;
        over = true;
        requests -= 1;
        held -= bodyBytes;
        if (ingests) ingesting -= 1;
        if (requests === 0) onEmpty?.();
      };
    },
    underWay: () => requests,
    empty: async (timeoutMs) => {
      if (requests === 0) return "empty";
      const { promise, resolve } = Promise.withResolvers<"empty" | "timeout">();
      onEmpty = () => resolve("empty");
      const timer = setTimeout(() => resolve("timeout"), timeoutMs);
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        onEmpty = undefined;
      }
    },
  };
}
