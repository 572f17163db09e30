import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Later } from "./remote/answer.ts";
import { NO_ID } from "./remote/record.ts";
import type { DocumentFields, NewResource, Taken } from "./remote/resource-requests.ts";
import { readMarker } from "../plan/marker.ts";
import { sentWith } from "../plan/versions.ts";
import type { RelativePath } from "../plan/model.ts";
import { acknowledgeCreate } from "./acknowledge.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { follow } from "./follow.ts";
import { isGiven, storedOf } from "./observe.ts";
import type { Outgoing } from "./prepare.ts";
import { refusalOf, renewKey, type Sending, type Sent } from "./sending.ts";
import { reportAction } from "./trouble.ts";

/**
 * Creates a resource exactly once: whenever an attempt may have taken effect without an answer, the list is checked
 * before the next. A replaced resource is deleted after the new one exists.
 */
export async function create(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  sending: Sending,
  intent: CreateIntent,
  fields: DocumentFields & Pick<NewResource, "description">,
): Promise<Sent | Later | "again"> {
  const { remote, collections, signal, contentKind } = context;
  const { settings, tier, ownerId } = outgoing.document.recipe;
  const resource = { ...fields, settings, tier, ownerId };
  const isCurrent = (): boolean => !source.isStale(intent.path);
  const answer = await remote.create(resource, sending.key, signal, isCurrent, contentKind);
  // The service accepted it: only a list can name what it made.
  if (answer.kind === "refused" && answer.code === NO_ID) {
    const found = await findAfter(context, source, sending, intent);
    if (found !== undefined) return found;
  }
  if (answer.kind === "later") return answer;
  if (answer.kind !== "done") return refusalOf(answer);

  const { _id: docId, collectionId, isInFlight, warning, record } = answer.value;
  if (collectionId !== undefined) collections.learn(tier, collectionId);
  // Until it has ended, the intent stays unchanged. A replaced resource must be possible to find until the new one is made.
  const replaces = (outgoing.row?.docId ?? null) !== null;
  const end = isInFlight
    ? await follow(context, docId, () => !replaces && source.agenda.isOutdated(intent.path))
    : ({ kind: "done", value: { warning, record } } as const);
  switch (end.kind) {
    case "done":
    case "outdated": {
      // The service repeats its answer under this key, and what it made then is deleted.
      if (sending.wasPast !== true && isPast(context, intent, docId)) {
        sending.wasPast = true;
        await renewKey(context, sending);
        return "again";
      }
      const { fileUrl } = sending;
      const sent = fileUrl === undefined ? intent : { ...intent, observed: { ...intent.observed, fileUrl } };
      finishCreate(context, source, outgoing, sent, docId, end.kind === "done" ? end.value : undefined);
      return { kind: "done" };
    }
    case "refused":
      return { ...end, failedId: docId };
    case "gone": {
      // Under its key the service would repeatedly answer with what is gone.
      await renewKey(context, sending);
      const reason = "it was deleted while the service processed it";
      return { kind: "later", acted: "maybe", blame: "request", reason };
    }
    case "later":
      return { ...end, acted: "maybe" };
  }
}

/** Creates of one file without an answer, and without a resource in the lists read after them, before the file is held. */
const CREATES_MAX = 3;
/** How long it is held, unless a person retries it or it changes. */
const HELD_MS = 24 * 3_600_000;

/** Finds out what became of a create that nobody answered. */
export async function unansweredCreate(
  context: ActionContext,
  source: ActionSource,
  sending: Sending,
  intent: CreateIntent,
  { acted, reason }: Later,
): Promise<Sent | undefined> {
  if (acted === "no") return undefined;
  const found = await findAfter(context, source, sending, intent);
  if (found !== undefined) return found;
  // Each attempt may have made a resource that no list shows yet, so their number is bounded.
  if (intent.attempts < CREATES_MAX) return undefined;
  return {
    kind: "parked",
    code: "no_answer",
    message: `held: ${CREATES_MAX} creates of this file were not answered (${reason}), and the service's list shows no document of it; each may still appear. It is sent again in a day, or with \`kbsync retry\``,
    restMs: HELD_MS,
  };
}

/** Searches the list for what a create has made. If nothing is visible, it may still appear: another attempt counts. */
async function findAfter(
  { ledger }: ActionContext,
  source: ActionSource,
  sending: Sending,
  intent: CreateIntent,
): Promise<Sent | undefined> {
  const end = await findCreated(source, intent);
  if (end?.kind === "ended") return end;
  await ledger.write(() => ledger.intents.again(intent.id));
  sending.intent = { ...intent, attempts: intent.attempts + 1 };
  return end;
}

/** Searches the list for what a create may have made. Returns undefined if it can be sent. */
export async function findCreated(source: ActionSource, intent: CreateIntent): Promise<Sent | undefined> {
  switch (await source.findCreated(intent)) {
    case "adopted":
      // Another attempt may have made, or still make, a second one.
      if (intent.attempts > 1) source.compareLater();
      return { kind: "ended" };
    case "unclear":
      return UNCLEAR;
    case "absent":
      return undefined;
  }
}

const UNCLEAR = {
  kind: "parked",
  code: "list_incomplete",
  message:
    "held: its create was not answered, and the service's list lacks documents that the service has, so it may have a document already; kbsync asks again by itself, or with `kbsync retry`",
} as const;

/** Deletes the resource of a create that failed later. One that fails at once leaves nothing; this one has a document without text. */
export function deleteFailed(ledger: Ledger, source: ActionSource, path: RelativePath, docId: string): void {
  if (ledger.files.ownsDoc(docId)) return;
  source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
}

/** Forgets a create that is not sent. The key of one that was sent before, or resumed, is for the next attempt. */
export function dropCreate(ledger: Ledger, source: ActionSource, { id, attempts }: CreateIntent): void {
  if (attempts === 1) {
    ledger.intents.remove(id);
    return;
  }
  ledger.intents.doubt(id, null);
  source.compareLater();
}

/** Reports whether the resource in the answer to a repeated create cannot be this file's. */
function isPast({ ledger }: ActionContext, { attempts, source, path }: CreateIntent, docId: string): boolean {
  if (attempts === 1) return false;
  if (ledger.intents.isDeleted(docId)) return true;
  return ledger.files.ownsDoc(docId) && ledger.files.living(source, path)?.docId !== docId;
}

/**
 * Records the resource of a create. Without a result, something happened to the file meanwhile: the next check changes the
 * resource or deletes it, and the service does that after its current work.
 */
function finishCreate(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  intent: CreateIntent,
  docId: string,
  result: Pick<Taken, "warning" | "record"> | undefined,
): void {
  const { ledger } = context;
  const { warning, record = {} } = result ?? {};
  ledger.note(() => {
    const stored = storedOf(record, intent.observed);
    const left = acknowledgeCreate(ledger, intent, docId, result !== undefined, stored);
    if (left === "taken") {
      ledger.intents.remove(intent.id);
      const owner = sendOwnerAgain(context, source, docId, intent);
      const message = `the service made no document of its own for it: it answered with ${docId}, the document of ${owner}, which is sent again`;
      const { entry, rulesKey } = intent.observed;
      const trouble = { state: "failed", sure: true, code: "not_its_own", message } as const;
      ledger.files.trouble(source.id, outgoing.candidate.known?.id, { entry, rulesKey, ...trouble });
      return;
    }
    // A new row has none.
    if (warning !== undefined || outgoing.row !== undefined) ledger.files.warn(docId, warning);
    if (left !== undefined) source.deleteLater(left);
  });
  noteMarker(context, record);
  if (intent.attempts > 1) source.compareLater();
  reportAction(context, source, outgoing.candidate, outgoing.action, outgoing.startedMs, docId);
}

/** Records whether the service keeps the marker of a description, once its answer shows one. */
function noteMarker({ ledger }: ActionContext, { description }: Taken["record"]): void {
  if (!isGiven(description) || ledger.contacts.keepsMarkers() !== undefined) return;
  ledger.note(() => ledger.contacts.setKeepsMarkers(readMarker(description).kind === "whole"));
}

/**
 * Has the file of a resource sent again: some services change the resource of the same title instead of creating one, and
 * this one may hold the other file's text now. What is in flight to it may have come first. Returns its path. Run inside a
 * group commit.
 */
function sendOwnerAgain(
  { ledger: { files } }: ActionContext,
  source: ActionSource,
  docId: string,
  { path, observed }: CreateIntent,
): string {
  const owner = files.byDoc(docId);
  if (owner === undefined) return "another file";
  if (owner.state === "agreed" || owner.state === "unsure")
    files.depart(owner.id, sentWith(owner, { ...observed, path }));
  if (owner.source === source.id) source.agenda.checkAgain(owner.path);
  return owner.path;
}
