import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "../send/context.ts";
import type { Scope } from "../ledger/contacts.ts";
import { delayMs } from "../plan/retry.ts";

/** Default for how long the list of a service that is not ours may lag behind its answers. */
export const LIST_LAG_MS = 120_000;

/** Dependencies of reading a list. */
export type ListContext = Pick<ActionContext, "collections" | "remote" | "random" | "signal" | "timing">;

/**
 * Reads the service's list of a scope, streamed from beginning to end. `begin` returns a new visitor for each attempt, because
 * what was seen of a list that broke off does not count. A collection that the service no longer has holds nothing.
 * Returns undefined if the collection's id is unknown and the service does not supply it. Throws `list_refused`, and what
 * the request gate throws.
 */
export async function readList(
  context: ListContext,
  { tier, ownerId }: Scope,
  begin: () => (record: ResourceRecord) => void,
  {
    signal = context.signal,
    isUnlimited = false,
  }: { readonly signal?: AbortSignal; readonly isUnlimited?: boolean } = {},
): Promise<{ readonly isPaged: boolean } | undefined> {
  const { collections, remote, timing } = context;
  const missing = openMissingCheck(context, tier, signal);
  let unclear = 0;
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    const asked = await collections.ask(tier, signal);
    // The gate waits before the next request.
    if (asked.id === undefined && asked.why === "unanswered") continue;
    // A proxy may have answered while its service was away, or refused the key for a moment. One that always does stands before a
    // service that names no ids.
    const againMs = timing.goneAgainMs[unclear];
    if (asked.id === undefined && asked.why === "unclear" && againMs !== undefined) {
      unclear += 1;
      await sleep(againMs, undefined, { signal });
      continue;
    }
    const { id: collectionId } = asked;
    if (collectionId === undefined) return undefined;
    const visit = begin();
    const reply = await remote.list(
      { collectionId, ownerId, isUnlimited },
      (record) => {
        if (!record.isDeleted) visit(record);
      },
      signal,
    );
    switch (reply.kind) {
      case "done":
        return { isPaged: reply.value.isPaged };
      case "gone": {
        const word = await missing.judge(collectionId);
        if (word === "again") continue;
        if (word === "denied") throw listRefused(collectionId, "not found");
        return { isPaged: false };
      }
      case "refused":
        throw listRefused(collectionId, reply.message);
      case "later":
        // The gate waits before the next request. This wait is for a list that the service breaks off repeatedly.
        if (failures > 1) await sleep(delayMs(failures, undefined, context.random()), undefined, { signal });
    }
  }
}

/** Interprets the 404s to a list. Opened for one list of a collection. */
interface MissingCheck {
  /**
   * Call it after each 404. `again`: a wait is over, or the collection has another id by now. `denied`: the service
   * does not list a collection that it names itself.
   */
  judge(collectionId: string): Promise<"again" | "missing" | "denied">;
}

/**
 * Opens the check. A service that was reset has another id for the collection, and may supply it. A service that no
 * longer knows the collection holds nothing of it. But a 404 may come from a replica, or from a service that is
 * starting, and all files would be sent again. It is believed after it has been repeated for half a minute with no page
 * of a list answered in between, and never for a collection that the service names.
 */
function openMissingCheck(
  { collections, remote, timing }: Pick<ActionContext, "collections" | "remote" | "timing">,
  tier: Tier,
  signal: AbortSignal,
): MissingCheck {
  const { missingAgainMs } = timing;
  let answers = 0;
  /** Successive 404s that nothing contradicts. */
  let inARow = 0;
  let pages: number | undefined;
  let isRenewed = false;
  return {
    judge: async (collectionId) => {
      const pagesNow = remote.listedPages(collectionId);
      if (pagesNow !== pages) inARow = 0;
      pages = pagesNow;
      const { id, isNamed } = await collections.renew(tier, signal);
      if (id !== collectionId && !isRenewed) {
        isRenewed = true;
        return "again";
      }
      if (inARow === missingAgainMs.length) return isNamed && id === collectionId ? "denied" : "missing";
      inARow += 1;
      const waitMs = missingAgainMs[Math.min(answers, missingAgainMs.length - 1)];
      answers += 1;
      await sleep(waitMs, undefined, { signal });
      return "again";
    },
  };
}

function listRefused(collectionId: string, words: string): KbsyncError {
  return new KbsyncError(`the service refuses to list the collection ${collectionId}: ${words}`, {
    code: "list_refused",
    subject: collectionId,
    retryable: true,
    hint: "without its list kbsync cannot check whether folder and knowledge base agree",
  });
}
