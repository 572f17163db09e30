import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import { STILL_READ } from "../../wire/constants.ts";
import { Strategy, type Settings, type Tier } from "../../wire/primitives.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionContext } from "../actions/context.ts";
import { labelsOf } from "../actions/observe.ts";
import { digestsOf } from "../../formats/digest.ts";
import { hashListedMetadata } from "../../formats/metadata.ts";
import type { Drift, Scope, Owner } from "../ledger/drift/drift.ts";
import type { ListedResource } from "../plan/model.ts";
import { delayMs } from "../plan/retry.ts";
import { warningOf } from "../remote/resource-requests.ts";

/** Default for how long the list of a service that is not ours may lag behind its answers. */
export const LIST_LAG_MS = 120_000;

/** A resource in the service's list, with what the ledger knows about it. The getters compute on each access. */
export interface Listed {
  readonly record: ResourceRecord;
  /** Reduced to what comparisons need; hashes the text. */
  readonly resource: ListedResource;
  readonly owner: Owner;
}

/** How a comparison ended. */
export interface Compared {
  /** The service's clock minus ours; undefined if it has no such collection. */
  readonly clockOffsetMs: number | undefined;
  /** The list came in more than one page. */
  readonly isPaged: boolean;
}

/**
 * Compares a scope with the service's list, streamed from beginning to end: each resource goes to the visitor with the
 * row that owns it. The visitor is the caller's policy: adoption, recovery, audit and proof have one each. `begin`
 * returns a new visitor for each attempt, because what was seen of a list that broke off does not count. A collection
 * that the service no longer has holds nothing. Returns undefined if the collection's id is unknown and the service
 * does not supply it. Throws `list_refused`, and what the request gate throws.
 */
export async function compareWithService(
  context: CompareContext,
  { tier, ownerId, isUnlimited = false }: Scope & { readonly isUnlimited?: boolean },
  begin: () => (listed: Listed) => void,
  signal: AbortSignal = context.signal,
): Promise<Compared | undefined> {
  const { collections, remote } = context;
  const { drift } = context.ledger;
  const missing = openMissingCheck(context, tier, signal);
  for (let failures = 1; ; failures += 1) {
    signal.throwIfAborted();
    const asked = await collections.ask(tier, signal);
    // The gate waits before the next request.
    if (asked.id === undefined && asked.why === "unanswered") continue;
    const { id: collectionId } = asked;
    if (collectionId === undefined) return undefined;
    const visit = begin();
    const reply = await remote.list(
      { collectionId, ownerId, isUnlimited },
      (record) => {
        if (record.isDeleted) return;
        const listed = listedOf(record, drift);
        if (!isForeign(record, { collectionId, ownerId }) || listed.owner !== undefined) visit(listed);
      },
      signal,
    );
    switch (reply.kind) {
      case "done":
        return reply.value;
      case "gone": {
        const word = await missing.judge(collectionId);
        if (word === "again") continue;
        if (word === "denied") throw listRefused(collectionId, "not found");
        return { clockOffsetMs: undefined, isPaged: false };
      }
      case "refused":
        throw listRefused(collectionId, reply.message);
      case "later":
        // The gate waits before the next request. This wait is for a list that the service breaks off repeatedly.
        if (failures > 1) await sleep(delayMs(failures, undefined, context.random()), undefined, { signal });
    }
  }
}

/** Dependencies of a comparison on a daemon. A proof has it without one. */
export type CompareContext = Pick<
  ActionContext,
  "collections" | "remote" | "random" | "signal" | "timing"
> & { readonly ledger: { readonly drift: Pick<Drift, "ownerOf"> } };

/** Whether a record names another scope than was listed: some services ignore a part of the query. */
function isForeign(
  record: ResourceRecord,
  { collectionId, ownerId }: { readonly collectionId: string; readonly ownerId: string },
): boolean {
  const { collectionId: collection = collectionId, ownerId: owner = ownerId } = record;
  return collection !== collectionId || owner !== ownerId;
}

function listedOf(record: ResourceRecord, drift: Pick<Drift, "ownerOf">): Listed {
  return {
    record,
    get resource() {
      return resourceOf(record);
    },
    get owner() {
      return drift.ownerOf(record._id);
    },
  };
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

/** Reduces a resource of the list to what is compared. */
export function resourceOf(record: ResourceRecord): ListedResource {
  const url = record.url ?? undefined;
  const warning = warningOf(record);
  const status = record.metadata?.status;
  const isUnfinished = status === "queued" || status === "error" || warning?.endsWith(STILL_READ) === true;
  const metadataHash = hashListedMetadata(record.metadata, url !== undefined);
  return {
    docId: record._id,
    createdMs: timeOf(record.createdAt),
    updatedMs: timeOf(record.updatedAt),
    url,
    ...(url === undefined ? digestsOf(record.content ?? "") : { digest: "" }),
    ...labelsOf(record.title, record.description),
    title: record.title,
    settings: settingsOf(record),
    ...(isUnfinished && { isUnfinished }),
    ...(warning !== undefined && { warning }),
    ...(metadataHash !== undefined && { metadataHash }),
  };
}

/** Returns the settings that a list shows of a resource. A service may omit them. */
function settingsOf({ settings }: ResourceRecord): Partial<Settings> {
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

function listRefused(collectionId: string, words: string): KbsyncError {
  return new KbsyncError(`the service refuses to list the collection ${collectionId}: ${words}`, {
    code: "list_refused",
    subject: collectionId,
    retryable: true,
    hint: "without its list kbsync cannot check whether folder and knowledge base agree",
  });
}
