import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "./remote/answer.ts";
import type { ActionContext } from "./context.ts";

/** Failures that may be a file's own, before the service is probed. */
const TRIES_MAX = 3;

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
  const { remote, signal } = context;
  /** Since when the service works on an earlier request with the same key. */
  let busySinceMs: number | undefined;
  let failures = 0;
  for (;;) {
    const answer = await once();
    if (answer === "again") continue;
    if (!isLater(answer)) return answer;
    if (answer.isInFlight === true) {
      const nowMs = performance.now();
      busySinceMs ??= nowMs;
      if (await restWhileBusy(context, nowMs - busySinceMs, answer)) continue;
    }
    const end = await unanswered(answer);
    if (end !== undefined) return end;
    if (answer.blame !== "request") continue;
    if (answer.isForbidden === true) return answer;
    failures += 1;
    if (failures < TRIES_MAX) continue;
    failures = 0;
    // If a cheap request is answered, the file is to blame and is given up. If not, the service is, and giving up one file after
    // another would only delay them when it comes back.
    if ((await remote.collections(signal)).kind === "done") return answer;
  }
}

function isLater(answer: { readonly kind: string }): answer is Later {
  return answer.kind === "later";
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
 * Rests before a request is sent again whose predecessor the service has worked on for `sinceMs`; other files are sent
 * meanwhile. Returns false if that has gone on for too long to be true.
 */
async function restWhileBusy(
  { yieldSlot, signal }: Pick<ActionContext, "yieldSlot" | "signal">,
  sinceMs: number,
  { retryAfterMs = SAME_KEY_MS }: Later,
): Promise<boolean> {
  if (sinceMs > SAME_KEY_MS_MAX) return false;
  await yieldSlot(() => sleep(sameKeyRestMs(sinceMs, retryAfterMs), undefined, { signal }));
  return true;
}

/** How long to rest. Each attempt sends the whole text, so longer work has longer rests: many such requests would be a storm otherwise. */
export function sameKeyRestMs(sinceMs: number, retryAfterMs: number): number {
  const growingMs = Math.min(SAME_KEY_REST_MS_MAX, sinceMs / 8);
  return Math.max(REST_MS_MIN, Math.min(retryAfterMs, SAME_KEY_ASKED_MS_MAX), growingMs);
}
