import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "./remote/answer.ts";
import type { ActionContext } from "./context.ts";

/**
 * Sends a request until an answer decides. `once` sends it once and acts on the answer; `again` sends it again. `unanswered`
 * is called after each failure, before the request is sent again, and may decide as well. Returns a `Later` if the failures
 * are this request's own: then the file is to blame, and is given up for now.
 */
export async function untilDecided<T extends { readonly kind: string }>(
  context: Pick<ActionContext, "remote" | "signal" | "yieldSlot">,
  once: () => Promise<T | Later | "again">,
  unanswered: (later: Later) => Promise<T | undefined> = async () => await Promise.resolve(undefined),
): Promise<T | Later> {
  const tries = countTries(context);
  const patience = openPatience(context);
  for (;;) {
    const answer = await once();
    if (answer === "again") continue;
    if (!isLater(answer)) return answer;
    if (await patience.wait(answer)) continue;
    const end = await unanswered(answer);
    if (end !== undefined) return end;
    if (await tries.isOver(answer)) return answer;
  }
}

function isLater(answer: { readonly kind: string }): answer is Later {
  return answer.kind === "later";
}

/** Failures that may be a file's own, before the service is probed. */
const TRIES_MAX = 3;

/**
 * Counts failures that may be a file's own. After some of them it sends the service a cheap request. If that is
 * answered, the file is to blame and is parked. If not, the service is, and parking one file after another would only
 * delay them when it comes back.
 */
function countTries({ remote, signal }: Pick<ActionContext, "remote" | "signal">): {
  isOver(reply: Later): Promise<boolean>;
} {
  let count = 0;
  return {
    isOver: async ({ blame, isForbidden }) => {
      if (blame === "request" && isForbidden === true) return true;
      if (blame === "request") count += 1;
      if (count < TRIES_MAX) return false;
      count = 0;
      return (await remote.collections(signal)).kind === "done";
    },
  };
}

/** Shortest wait between two attempts. */
const REST_MS_MIN = 250;
/** Wait for an earlier request with the same key, where the service names no time. */
const SAME_KEY_MS = 10_000;
/** Longest wait between two attempts that the service does not ask for. */
const SAME_KEY_REST_MS_MAX = 30_000;
/** Longest wait between two attempts that the service may ask for: no status shows this wait, and no `retry` ends it. */
const SAME_KEY_ASKED_MS_MAX = 600_000;
/** Longest wait for such a request: each ends within the service's own limits on its work. */
const SAME_KEY_MS_MAX = 6 * 3_600_000;

/**
 * Waits for an earlier request with the same key that the service is still working on; other files are sent meanwhile.
 * Returns false if it was no such answer, or if that has gone on for too long to be true.
 */
function openPatience({ yieldSlot, signal }: Pick<ActionContext, "yieldSlot" | "signal">): {
  wait(reply: Later): Promise<boolean>;
} {
  let sinceMs: number | undefined;
  return {
    wait: async ({ isInFlight, retryAfterMs = SAME_KEY_MS }) => {
      if (isInFlight !== true) return false;
      const nowMs = performance.now();
      sinceMs ??= nowMs;
      if (nowMs - sinceMs > SAME_KEY_MS_MAX) return false;
      const restMs = sameKeyRestMs(nowMs - sinceMs, retryAfterMs);
      await yieldSlot(() => sleep(restMs, undefined, { signal }));
      return true;
    },
  };
}

/**
 * How long to wait before a request is sent again whose predecessor the service has worked on for `sinceMs`. Each attempt sends
 * the whole text, so longer work has longer waits: many such requests would be a storm otherwise.
 */
export function sameKeyRestMs(sinceMs: number, retryAfterMs: number): number {
  const growingMs = Math.min(SAME_KEY_REST_MS_MAX, sinceMs / 8);
  return Math.max(REST_MS_MIN, Math.min(retryAfterMs, SAME_KEY_ASKED_MS_MAX), growingMs);
}
