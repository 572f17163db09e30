import { setTimeout as sleep } from "node:timers/promises";
import type { Later } from "../remote/answer.ts";
import { warningOf, type Taken } from "../remote/remote.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "./context.ts";

/** How the service's work on a resource that it took ended. */
export type Followed =
  | { readonly kind: "done"; readonly value: Pick<Taken, "warning" | "record"> }
  /** It cannot take it in; what was there before stays as it was. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** The resource was deleted meanwhile. */
  | { readonly kind: "gone" }
  /** Something happened to the file: its end is of no interest any more. */
  | { readonly kind: "outdated" }
  /** Nobody tells how it goes. */
  | Later;

/**
 * First wait before the state is asked for again; then an eighth of the time since, so that the end is seen in time. Where more
 * are followed than may be sent at once, each waits longer by so much: together they ask no more often than those would.
 */
const ASK_MS_MIN = 250;
const ASK_MS_MAX = 5000;
/**
 * Longest that the service is believed to work on one document. It gives half an hour of its own time to each, and takes their
 * pages in turn: a thousand documents of several sources may end together after 24 days.
 * What takes longer is set aside, asked for by the list and sent again.
 */
const FOLLOW_MS_MAX = 25 * 24 * 3_600_000;
/** Wait for an earlier request with the same key, where the service names no time. */
const UNDER_WAY_MS = 10_000;
/** Longest wait for one: each ends within the service's own limits on its work. */
const UNDER_WAY_MS_MAX = 6 * 3_600_000;
/** A resource that is followed is gone when nothing else was said for so long. */
const GONE_MS = 15_000;
/** Failures to tell of a state, one after another, that may be this resource's own. */
const FAILURES_MAX = 3;

/**
 * Follows a resource that the service took and answered for before its work on it (202), until that work has ended; other
 * files are sent meanwhile. To be called with the create's intent, or the row of the update, as they were: nothing is settled by
 * what is only begun. Throws the signal's reason, and what the gate throws.
 */
export async function follow(
  context: Pick<ActionContext, "remote" | "signal" | "yieldSlot">,
  docId: string,
  isOutdated: () => boolean,
): Promise<Followed> {
  return context.yieldSlot((crowd) => askUntilEnd(context, docId, isOutdated, crowd));
}

/**
 * Follows a resource whose answer was lost. Undefined: the service does not show it, or could not take it in; then its file is
 * sent again. Otherwise `done` shows what it holds now, which may be another text.
 */
export async function followFound(
  context: Pick<ActionContext, "remote" | "signal" | "yieldSlot">,
  docId: string,
  isOutdated: () => boolean,
): Promise<Extract<Followed, { readonly kind: "done" | "outdated" }> | undefined> {
  // A service need not have this address: then nothing is waited for.
  const reply = await context.remote.read(docId, context.signal);
  if (reply.kind !== "done") return undefined;
  const end = stateOf(reply.value) ?? (await follow(context, docId, isOutdated));
  return end.kind === "done" || end.kind === "outdated" ? end : undefined;
}

/**
 * Waits for an earlier request with the same key that the service still works on; other files are sent meanwhile. Opened for one
 * piece of work. False: it was no such answer, or that has gone on for too long to be true.
 */
export function openPatience({ yieldSlot, signal }: Pick<ActionContext, "yieldSlot" | "signal">): {
  wait(reply: Later): Promise<boolean>;
} {
  let sinceMs: number | undefined;
  return {
    wait: async ({ isUnderWay, retryAfterMs = UNDER_WAY_MS }) => {
      if (isUnderWay !== true) return false;
      const nowMs = performance.now();
      sinceMs ??= nowMs;
      if (nowMs - sinceMs > UNDER_WAY_MS_MAX) return false;
      const restMs = Math.min(UNDER_WAY_MS_MAX, Math.max(ASK_MS_MIN, retryAfterMs));
      await yieldSlot(() => sleep(restMs, undefined, { signal }));
      return true;
    },
  };
}

async function askUntilEnd(
  { remote, signal }: Pick<ActionContext, "remote" | "signal">,
  docId: string,
  isOutdated: () => boolean,
  crowd: () => number,
): Promise<Followed> {
  // By a clock that nobody sets.
  const startedMs = performance.now();
  let failures = 0;
  let goneSinceMs: number | undefined;
  for (;;) {
    const sinceMs = performance.now() - startedMs;
    if (sinceMs > FOLLOW_MS_MAX) return unclear(`the service has worked on it for ${hours(sinceMs)}`);
    const restMs = Math.min(ASK_MS_MAX, Math.max(ASK_MS_MIN, sinceMs / 8));
    // Looked at again after each rest: others may have ended, or something happened to the file.
    for (let rests = 0; rests < crowd(); rests++) {
      await sleep(restMs, undefined, { signal });
      if (isOutdated()) return { kind: "outdated" };
    }
    const reply = await remote.read(docId, signal);
    if (reply.kind === "gone") {
      // It was taken a moment ago: a 404 may come from a replica that does not know it yet.
      goneSinceMs ??= performance.now();
      if (performance.now() - goneSinceMs >= GONE_MS) return reply;
      continue;
    }
    goneSinceMs = undefined;
    // The gate waits before the next where the service is to blame.
    if (reply.kind === "later" && (reply.blame !== "request" || ++failures < FAILURES_MAX)) continue;
    if (reply.kind === "later") return reply;
    if (reply.kind === "refused") return unclear(`the service does not tell how far it is: ${reply.message}`);
    failures = 0;
    const end = stateOf(reply.value);
    if (end !== undefined) return end;
  }
}

/** How the work on a resource ended; undefined: it goes on. */
function stateOf(record: ResourceRecord): Exclude<Followed, Later> | undefined {
  const { isDeleted, metadata } = record;
  if (isDeleted) return { kind: "gone" };
  if (metadata?.status === "error") {
    const message = metadata.message ?? "the service could not take it in";
    return { kind: "refused", code: "not_taken_in", message };
  }
  if (metadata?.status === "queued") return undefined;
  return { kind: "done", value: { warning: warningOf(record), record } };
}

function unclear(reason: string): Later {
  return { kind: "later", acted: "maybe", blame: "request", reason };
}

function hours(ms: number): string {
  return `${Math.round(ms / 3_600_000)} hours`;
}
