import { openShares, type Shares } from "../../lib/shares.ts";
import { Refusal } from "../resources/refusal.ts";

export type ServiceState = "starting" | "ready" | "draining";

/** Bounds of what is under way at once. Each account has a share of each (`openShares`). */
export interface AdmissionLimits {
  /** Requests under way. */
  readonly requests: number;
  /** Bytes of long bodies held in memory by the requests under way. Short ones have `SHORT_BYTES_MAX` of their own. */
  readonly bodyBytes: number;
  /** Requests under way that take a document in. Default: as many as requests. */
  readonly ingests?: number;
}

/**
 * What a request may bring. `short`: a small body or none, as a search or a delete. `document`: one that is taken in, as a
 * create or an upload. `documents`: a stream of them. `long`: another long body.
 */
export type RequestKind = "short" | "long" | "document" | "documents";

/** A request that was let in. */
export interface Admitted {
  /** Counts bytes of its body as they arrive, before they are kept. Throws `overloaded`. */
  hold(this: void, bytes: number): void;
  /** Bytes that are not kept any more. */
  release(this: void, bytes: number): void;
  /** The request is over, and all that it holds; may be called again. */
  leave(this: void): void;
}

/** Lets requests in, and knows when none is left. */
export interface Admission {
  state(): ServiceState;
  become(state: ServiceState): void;
  /** Throws `starting` or `draining`. */
  refuseUnlessReady(): void;
  /** Lets a request of an account in. Throws `starting`, `draining` or `overloaded`. */
  enter(account: string, kind: RequestKind): Admitted;
  /** Requests that were let in and are not over. */
  underWay(): number;
  /** Resolves when nothing is under way, or after `timeoutMs`; says which. */
  empty(timeoutMs: number): Promise<"empty" | "timeout">;
}

/** Bytes of short bodies at once: a reserve, so that a search is possible whatever is being taken in. */
const SHORT_BYTES_MAX = 64 * 1024 * 1024;
/** Streams of documents at once. Each does as many documents at a time as one account can make use of. */
const STREAMS_MAX = 64;

/** Starts in state `starting`. */
export function openAdmission(limits: AdmissionLimits): Admission {
  let state: ServiceState = "starting";
  const requests = openShares(limits.requests);
  const ingests = openShares(limits.ingests ?? limits.requests);
  const streams = openShares(STREAMS_MAX);
  const longBytes = openShares(limits.bodyBytes);
  const shortBytes = openShares(SHORT_BYTES_MAX);
  let onEmpty: (() => void) | undefined;

  const refuseUnlessReady = (): void => {
    if (state === "starting") throw new Refusal("starting", "The service is starting.");
    if (state === "draining") throw new Refusal("draining", "The service is shutting down.");
  };
  /** What a request of a kind takes one of, with what is said where there is none left. */
  const slotsOf = (kind: RequestKind): readonly (readonly [Shares, string])[] => {
    const any = [requests, `More than ${limits.requests} requests are under way`] as const;
    switch (kind) {
      case "short":
      case "long":
        return [any];
      case "document":
        return [any, [ingests, `More than ${limits.ingests} documents are being taken in`]];
      case "documents":
        return [
          any,
          [ingests, `More than ${limits.ingests} documents are being taken in`],
          [streams, `More than ${STREAMS_MAX} bulk creates are under way`],
        ];
    }
  };

  return {
    state: () => state,
    become: (next) => {
      state = next;
    },
    refuseUnlessReady,
    enter: (account, kind) => {
      refuseUnlessReady();
      const taken: Shares[] = [];
      for (const [slots, words] of slotsOf(kind)) {
        if (slots.take(account, 1)) taken.push(slots);
        else {
          for (const each of taken) each.give(account, 1);
          throw overloaded(words);
        }
      }
      const bytes = kind === "short" ? shortBytes : longBytes;
      const bytesMax = kind === "short" ? SHORT_BYTES_MAX : limits.bodyBytes;
      let held = 0;
      let isOver = false;
      return {
        hold: (more) => {
          // What comes behind the end is let through unread.
          if (isOver) return;
          if (!bytes.take(account, more))
            throw overloaded(`Bodies of more than ${bytesMax} bytes are under way`);
          held += more;
        },
        release: (fewer) => {
          const given = Math.min(held, fewer);
          held -= given;
          bytes.give(account, given);
        },
        leave: () => {
          if (isOver) return;
          isOver = true;
          for (const each of taken) each.give(account, 1);
          bytes.give(account, held);
          held = 0;
          if (requests.held() === 0) onEmpty?.();
        },
      };
    },
    underWay: () => requests.held(),
    empty: async (timeoutMs) => {
      if (requests.held() === 0) return "empty";
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

function overloaded(words: string): Refusal {
  return new Refusal("overloaded", `${words}, or this account has its share of them.`);
}
