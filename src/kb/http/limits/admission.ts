import { openShares, type Shares } from "../../../lib/shares.ts";
import { Refusal } from "../../resources/refusal.ts";

export type ServiceState = "starting" | "ready" | "draining";

/** Bounds of requests in flight. Each account has a share of each bound (`openShares`). */
export interface AdmissionLimits {
  /** Requests in flight. */
  readonly requests: number;
  /** Bytes of long bodies that requests in flight hold in memory. Short bodies have their own `SHORT_BYTES_MAX`. */
  readonly bodyBytes: number;
  /** Requests in flight that ingest a document. Default: `requests`. */
  readonly ingests?: number;
}

/**
 * The kind of a request by its body. `short`: a small one or none, such as a search or a delete. `document`: one to ingest,
 * such as a create or an upload. `long`: any other long body.
 */
export type RequestKind = "short" | "long" | "document";

/** An admitted request. */
export interface Admitted {
  /** Counts bytes of its body as they arrive, before they are stored in memory. Throws `overloaded`. */
  hold(this: void, bytes: number): void;
  /** Uncounts bytes that are no longer in memory. */
  release(this: void, bytes: number): void;
  /** Ends the request and releases all that it holds; may be called again. */
  leave(this: void): void;
}

/** Admits requests, and reports when none is in flight. */
export interface Admission {
  state(): ServiceState;
  become(state: ServiceState): void;
  /** Throws `starting` or `draining`. */
  refuseUnlessReady(): void;
  /** Admits a request of an account. Throws `starting`, `draining` or `overloaded`. */
  enter(account: string, kind: RequestKind): Admitted;
  /** Number of requests in flight. */
  inFlight(): number;
  /** Resolves when no request is in flight, or after `timeoutMs`; returns which. */
  empty(timeoutMs: number): Promise<"empty" | "timeout">;
}

/** Bytes of short bodies in memory: a reserve, so that searches are possible during any ingest. */
const SHORT_BYTES_MAX = 64 * 1024 * 1024;
/** Starts in state `starting`. */
export function openAdmission(limits: AdmissionLimits): Admission {
  let state: ServiceState = "starting";
  const slots = openSlots(limits);
  const longBytes = openShares(limits.bodyBytes);
  const shortBytes = openShares(SHORT_BYTES_MAX);
  let onEmpty: (() => void) | undefined;

  const refuseUnlessReady = (): void => {
    if (state === "starting") throw new Refusal("starting", "The service is starting.");
    if (state === "draining") throw new Refusal("draining", "The service is shutting down.");
  };

  return {
    state: () => state,
    become: (next) => {
      state = next;
    },
    refuseUnlessReady,
    enter: (account, kind) => {
      refuseUnlessReady();
      const free = slots.take(account, kind);
      const bytes = kind === "short" ? shortBytes : longBytes;
      const bytesMax = kind === "short" ? SHORT_BYTES_MAX : limits.bodyBytes;
      let held = 0;
      let isOver = false;
      return {
        hold: (more) => {
          // Bytes after the end pass uncounted.
          if (isOver) return;
          if (!bytes.take(account, more))
            throw overloaded(`Bodies of more than ${bytesMax} bytes are in flight`);
          held += more;
        },
        release: (fewer) => {
          const released = Math.min(held, fewer);
          held -= released;
          bytes.give(account, released);
        },
        leave: () => {
          if (isOver) return;
          isOver = true;
          free();
          bytes.give(account, held);
          held = 0;
          if (slots.inFlight() === 0) onEmpty?.();
        },
      };
    },
    inFlight: slots.inFlight,
    empty: async (timeoutMs) => {
      if (slots.inFlight() === 0) return "empty";
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

/** Opens the slots of requests in flight, of which each kind needs others. */
function openSlots(limits: AdmissionLimits) {
  const requests = openShares(limits.requests);
  const ingests = openShares(limits.ingests ?? limits.requests);
  /** Slots that a request of a kind needs, one of each, with the message if none is free. */
  const slotsOf = (kind: RequestKind): readonly (readonly [Shares, string])[] => {
    const any = [requests, `More than ${limits.requests} requests are in flight`] as const;
    switch (kind) {
      case "short":
      case "long":
        return [any];
      case "document":
        return [any, [ingests, `More than ${limits.ingests} documents are being ingested`]];
    }
  };
  return {
    inFlight: () => requests.held(),
    /** Takes the slots of a request, and returns a function that frees them. Throws `overloaded`. */
    take: (account: string, kind: RequestKind): (() => void) => {
      const taken: Shares[] = [];
      const free = (): void => {
        for (const each of taken) each.give(account, 1);
      };
      for (const [slots, message] of slotsOf(kind)) {
        if (slots.take(account, 1)) taken.push(slots);
        else {
          free();
          throw overloaded(message);
        }
      }
      return free;
    },
  };
}

function overloaded(message: string): Refusal {
  return new Refusal("overloaded", `${message}, or this account has its share of them.`);
}
