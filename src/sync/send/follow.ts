import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "./remote/answer.ts";
import { warningOf, type Taken } from "./remote/resource-requests.ts";
import { STILL_READ } from "../../wire/constants.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "./context.ts";

/** How the service's processing of an accepted resource ended. */
export type Followed =
  | { readonly kind: "done"; readonly value: Pick<Taken, "warning" | "record"> }
  /** It cannot be processed. The service keeps the previous content; of a PDF it may have the pages that it could read. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** The resource was deleted meanwhile. */
  | { readonly kind: "gone" }
  /** Something happened to the file, so its result no longer matters. */
  | { readonly kind: "outdated" }
  /** The progress cannot be read. */
  | Later;

/**
 * First wait before the state is requested again. Later waits are an eighth of the elapsed time, so that the end is
 * seen in time. If more resources are followed than may be sent at once, each waits proportionally longer, so that
 * together they poll no more often than those would.
 */
const ASK_MS_MIN = 250;
const ASK_MS_MAX = 5000;
/** A file that is saved while the service reads its last version is noticed this soon. */
const OUTDATED_MS = 500;
/**
 * Longest time that the service is believed to work on one document. It gives each half an hour of its own time, and
 * processes their pages in turn: a thousand documents of several sources may end together after 24 days. A document
 * that takes longer is parked, looked up in the list and sent again.
 */
const FOLLOW_MS_MAX = 25 * 24 * 3_600_000;
/** A followed resource counts as gone after nothing but 404 for this long. */
const GONE_MS = 15_000;
/** Successive failures to read a state that may be this resource's own. */
const FAILURES_MAX = 3;

/**
 * Follows a resource that the service accepted before processing it (202), until the processing has ended. Other files
 * are sent meanwhile. Call it with the create's intent, or the update's row, unchanged: nothing is settled before
 * the processing ends. Throws the signal's reason, and what the gate throws.
 */
export async function follow(
  context: Pick<ActionContext, "remote" | "signal" | "yieldSlot" | "onPictures">,
  docId: string,
  isOutdated: () => boolean,
): Promise<Followed> {
  return context.yieldSlot((waitsPerSlot) => askUntilEnd(context, docId, isOutdated, waitsPerSlot));
}

async function askUntilEnd(
  { remote, signal, onPictures }: Pick<ActionContext, "remote" | "signal" | "onPictures">,
  docId: string,
  isOutdated: () => boolean,
  waitsPerSlot: () => number,
): Promise<Followed> {
  // By a monotonic clock.
  const startedMs = performance.now();
  let failures = 0;
  let goneSinceMs: number | undefined;
  for (;;) {
    const sinceMs = performance.now() - startedMs;
    if (sinceMs > FOLLOW_MS_MAX) return unclear(`the service has worked on it for ${hours(sinceMs)}`);
    const restMs = Math.min(ASK_MS_MAX, Math.max(ASK_MS_MIN, sinceMs / 8));
    // Computed again after each rest: others may have ended.
    for (let restedMs = 0; restedMs < restMs * waitsPerSlot();) {
      const nextMs = Math.min(restMs, OUTDATED_MS);
      await sleep(nextMs, undefined, { signal });
      if (isOutdated()) return { kind: "outdated" };
      restedMs += nextMs;
    }
    const reply = await remote.read(docId, signal);
    if (reply.kind === "gone") {
      // It was accepted a moment ago: a 404 may come from a replica that does not know it yet.
      goneSinceMs ??= performance.now();
      if (performance.now() - goneSinceMs >= GONE_MS) return reply;
      continue;
    }
    goneSinceMs = undefined;
    // The gate waits before the next request if the service is to blame.
    if (reply.kind === "later" && (reply.blame !== "request" || ++failures < FAILURES_MAX)) continue;
    if (reply.kind === "later") return reply;
    if (reply.kind === "refused")
      return unclear(`the service does not report its progress: ${reply.message}`);
    failures = 0;
    const end = stateOf(reply.value);
    if (end !== undefined) return end;
    if (warningOf(reply.value)?.endsWith(STILL_READ) === true) onPictures?.();
  }
}

/** Reports whether the service works on a resource. */
export function isInWork(record: ResourceRecord): boolean {
  return stateOf(record) === undefined;
}

/** Returns how the processing of a resource ended; undefined: it goes on. */
function stateOf(record: ResourceRecord): Exclude<Followed, Later> | undefined {
  const { isDeleted, metadata } = record;
  if (isDeleted === true) return { kind: "gone" };
  if (metadata?.status === "error") {
    const message = metadata.message ?? "the service could not process it";
    return { kind: "refused", code: "not_taken_in", message };
  }
  const warning = warningOf(record);
  // Until all pages are read, the document has the text of the others.
  if (metadata?.status === "queued" || warning?.endsWith(STILL_READ) === true) return undefined;
  return { kind: "done", value: { warning, record } };
}

function unclear(reason: string): Later {
  return { kind: "later", acted: "maybe", blame: "request", reason };
}

function hours(ms: number): string {
  return `${Math.round(ms / 3_600_000)} hours`;
}
