import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import { Strategy, type Settings, type Tier } from "../../wire/primitives.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "../actions/context.ts";
import { labelsOf } from "../actions/observe.ts";
import { digestsOf } from "../document/digest.ts";
import type { DriftPlace } from "../ledger/drift.ts";
import type { AuditedResource } from "../plan/audit.ts";
import { delayMs } from "../plan/retry.ts";
import type { ListEnd } from "../remote/remote.ts";

/** How long the list of a service that is not ours may lag behind its answers, where nothing else is said. */
export const LIST_LAG_MS = 120_000;

/**
 * Lists a place from beginning to end. `begin` is called before each attempt: what was seen of one that broke off does
 * not count. Undefined when the collection's id is not known and cannot be asked for. A collection that the service
 * does not know any more holds nothing. Throws `list_refused`, and what the gate throws.
 */
export async function listPlace(
  context: Pick<ActionContext, "collections" | "remote" | "random" | "signal" | "timing">,
  { tier, ownerId, isUnlimited = false }: DriftPlace & { readonly isUnlimited?: boolean },
  begin: () => (resource: ResourceRecord) => void,
  signal: AbortSignal = context.signal,
): Promise<ListEnd | undefined> {
  const { collections, remote } = context;
  const missing = openMissingCheck(context, tier, signal);
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    const asked = await collections.ask(tier, signal);
    // The gate waits before the next.
    if (asked.id === undefined && asked.why === "unanswered") continue;
    const { id: collectionId } = asked;
    if (collectionId === undefined) return undefined;
    const see = begin();
    const reply = await remote.list(
      { collectionId, ownerId, isUnlimited },
      (record) => {
        if (!record.isDeleted) see(record);
      },
      signal,
    );
    switch (reply.kind) {
      case "done":
        return reply.value;
      case "gone": {
        const word = await missing.judge(collectionId);
        if (word === "again") continue;
        // But one that a person names is there: either the name or the service is a wrong one.
        if (word === "denied" || collections.isConfigured(tier)) throw listRefused(collectionId, "not found");
        return { clockOffsetMs: 0, isPaged: false };
      }
      case "refused":
        throw listRefused(collectionId, reply.message);
      case "later":
        // The gate waits before the next; this is for a list that the service breaks off again and again.
        if (failures > 1) await sleep(delayMs(failures, undefined, context.random()), undefined, { signal });
    }
  }
}

/** What a 404 to a list means; opened for one list of a collection. */
export interface MissingCheck {
  /**
   * To be asked after each 404. `again`: a wait is over, or the collection has another id by now. `denied`: the service
   * does not list a collection that it names itself.
   */
  judge(collectionId: string): Promise<"again" | "missing" | "denied">;
}

/**
 * A service that was reset has another id for the collection, and may tell it. One that does not know it any more holds
 * nothing of it. But a 404 may come from a replica, or from a service that starts, and all files would be sent anew: it is
 * believed when it has been said again and again for half a minute, with no page of a list answered in between, and never
 * of a collection that the service names.
 */
export function openMissingCheck(
  { collections, remote, timing }: Pick<ActionContext, "collections" | "remote" | "timing">,
  tier: Tier,
  signal: AbortSignal,
): MissingCheck {
  const { missingAgainMs } = timing;
  let answers = 0;
  /** Answers in a row that nothing contradicts. */
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

/** A resource of the list, reduced to what is compared. */
export function auditedOf(record: ResourceRecord): AuditedResource {
  const url = record.url ?? undefined;
  return {
    docId: record._id,
    createdMs: timeOf(record.createdAt),
    updatedMs: timeOf(record.updatedAt),
    url,
    ...(url === undefined ? digestsOf(record.content ?? "") : { digest: "" }),
    ...labelsOf(record.title, record.description),
    title: record.title,
    ...(isUnfinished(record) && { isUnfinished: true }),
  };
}

/** What a list tells of a resource's settings; a service may leave them out. */
export function settingsOf({ settings }: ResourceRecord): Partial<Settings> {
  const strategy = Strategy.safeParse(settings?.strategy);
  return {
    ...(strategy.success && { strategy: strategy.data }),
    ...(settings?.chunkSize !== undefined && { chunkSize: settings.chunkSize }),
    ...(settings?.chunkOverlap !== undefined && { chunkOverlap: settings.chunkOverlap }),
  };
}

function timeOf(text: string | undefined): number | undefined {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? undefined : ms;
}

/** Whether the service has not taken in a resource's text, or not yet. One that tells no such state has. */
export function isUnfinished({ metadata }: ResourceRecord): boolean {
  return metadata?.status === "queued" || metadata?.status === "error";
}

function listRefused(collectionId: string, words: string): KbsyncError {
  return new KbsyncError(`the service refuses to list the collection ${collectionId}: ${words}`, {
    code: "list_refused",
    subject: collectionId,
    retryable: true,
    hint: "without its list nobody can tell whether folder and knowledge base agree",
  });
}
