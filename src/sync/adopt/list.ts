import { setTimeout as sleep } from "node:timers/promises";
import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { topicOf } from "../actions/observe.ts";
import { compareWithService, type Listed } from "../reconcile-service/compare.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import {
  withoutInFlight,
  listsAgree,
  type AdoptableResource,
  type InFlightCreate,
} from "../plan/adoption.ts";
import { alterationsOf } from "../plan/audit.ts";
import { CLOCK_SLACK_MS } from "../plan/settlement.ts";

/** The resources of a source's scope in the list. */
export interface Found {
  /** Resources that no row owned when they were listed. */
  readonly shown: readonly AdoptableResource[];
  readonly isPaged: boolean;
  readonly clockOffsetMs: number;
  /** Latest time, by the service's clock, at which a former ledger may have made resources. */
  readonly forgottenMs: number;
  /** Resources that no row owns. */
  readonly unowned: readonly AdoptableResource[];
  /** Rows whose resource matches the row. */
  readonly sound: NumberSet;
  /** Resources that exist and differ, by their row. */
  readonly altered: ReadonlyMap<number, AdoptableResource>;
}

/** Maximum number of lists until two in a row must have shown the same. */
const LISTS_MAX = 4;

/**
 * Lists a source's scope until two successive lists agree. A list that omits resources looks like any other, and those
 * it omits would be created again.
 */
export async function listTwice(
  context: ActionContext,
  source: Pick<ActionSource, "id" | "rules">,
  signal: AbortSignal,
): Promise<Found | "unclear" | undefined> {
  const { ledger, now, timing } = context;
  const sinceMs = now();
  let before = await listFound(context, source, signal);
  for (let lists = 2; before !== undefined; lists += 1) {
    // A service without pages may truncate the list at the limit it was given.
    const after = await listFound(context, source, signal, !before.isPaged);
    if (after === undefined) return undefined;
    const still = before.shown.filter(({ docId }) => ledger.drift.ownerOf(docId) === undefined);
    if (listsAgree(still, after.shown, sinceMs + after.clockOffsetMs)) return after;
    if (lists >= LISTS_MAX) return "unclear";
    before = after;
    await sleep(timing.listAgainMs, undefined, { signal });
  }
  return undefined;
}

/** Lists a source's scope once. Returns undefined as `compareWithService` does. */
export async function listFound(
  context: ActionContext,
  { id, rules }: Pick<ActionSource, "id" | "rules">,
  signal: AbortSignal,
  isUnlimited = false,
): Promise<Found | undefined> {
  const { ledger } = context;
  const { collection: tier, ownerId } = rules.source;
  let found = {
    unowned: [] as AdoptableResource[],
    sound: openNumberSet(),
    altered: new Map<number, AdoptableResource>(),
  };
  const visit = ({ record, resource, owner }: Listed): void => {
    const adoptable = { ...resource, topic: topicOf(record.description) };
    // A stale list still shows deleted resources.
    if (owner === undefined) found.unowned.push(adoptable);
    else if (typeof owner === "string") return;
    else if (alterationsOf({ ...owner, state: "agreed" }, resource).length === 0) found.sound.add(owner.id);
    else found.altered.set(owner.id, adoptable);
  };
  const begin = (): ((listed: Listed) => void) => {
    found = { unowned: [], sound: openNumberSet(), altered: new Map() };
    return visit;
  };
  const compared = await compareWithService(context, { tier, ownerId, isUnlimited }, begin, signal);
  if (compared === undefined) return undefined;
  const { clockOffsetMs = ledger.intents.clockOffset() ?? 0, isPaged } = compared;
  ledger.note(() => ledger.drift.noteOffset(clockOffsetMs));
  ledger.flush();
  // A doubt from before an old ledger was restored claims no resource made since: it may be that of a file whose row the
  // ledger forgot. A doubt that is sent again is a create once more.
  const creates = new Set(ledger.intents.allCreates().map(({ key }) => key));
  const others = ledger.intents
    .allOpen()
    .filter(({ observed: { shape } }) => shape.tier === tier && shape.ownerId === ownerId)
    .filter((each) => each.source !== id && (creates.has(each.key) || !ledger.drift.isForgotten(each)));
  // The first time, nothing of this source is in flight. What a former process left is for its files to match.
  const own = ledger.drift.unsearched(id).parts.length > 0 ? ledger.intents.creates(id) : [];
  const unanswered = found.unowned.filter(
    ({ docId }) => !ledger.files.ownsDoc(docId) && !context.following.has(docId),
  );
  const unowned = withoutInFlight(unanswered, [...others, ...own].map(inFlightCreateOf), clockOffsetMs);
  return {
    ...found,
    unowned,
    shown: found.unowned,
    isPaged,
    clockOffsetMs,
    forgottenMs: ledger.drift.forgottenThereMs(clockOffsetMs) + CLOCK_SLACK_MS,
  };
}

/** Describes a create in flight. */
function inFlightCreateOf({ atMs, clockOffsetMs, attempts, observed }: CreateIntent): InFlightCreate {
  const { label, digest, fileUrl: url, shape } = observed;
  return {
    atMs,
    clockOffsetMs: clockOffsetMs ?? undefined,
    attempts,
    label,
    digest,
    url,
    isUpload: shape.kind === "file",
  };
}
