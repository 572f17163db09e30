import { randomUUID } from "node:crypto";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { UserMetadata } from "../../wire/metadata.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { Later } from "../remote/answer.ts";
import { NO_ID } from "../remote/record.ts";
import type { NewResource, Taken } from "../remote/resource-requests.ts";
import { readMarker } from "../plan/marker.ts";
import { acknowledgeCreate } from "./acknowledge.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { storedOf } from "./observe.ts";
import { follow, openPatience } from "./follow.ts";
import { reportAction, type Departure } from "./prepare.ts";
import { countTries, noteTrouble, park, refuse } from "./trouble.ts";
import { prepareBody, textOf } from "./body.ts";

/**
 * Creates a resource exactly once: whenever an attempt may have taken effect without an answer, the list is checked
 * before the next. A replaced resource is deleted after the new one exists.
 */
export async function sendCreate(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  first: CreateIntent,
): Promise<void> {
  const { ledger } = context;
  const tries = countTries(context);
  const patience = openPatience(context);
  let intent = first;
  let isRenewed = false;
  let metadataRefusal: string | undefined;
  const drop = (): void => dropCreate(ledger, source, intent);
  const renewKey = async (): Promise<void> => {
    const { id } = intent;
    const key = randomUUID();
    intent = { ...intent, key };
    await ledger.write(() => ledger.intents.setKey(id, key));
  };

  /** Searches the list for what the create may have made. */
  const isFound = async (): Promise<boolean> => {
    if ((await source.settle(intent)) === "adopted") {
      if (intent.attempts > 1) source.compareLater();
      return true;
    }
    // Nothing is visible, but it may still appear.
    await ledger.write(() => ledger.intents.again(intent.id));
    intent = withAttempt(intent);
    return false;
  };

  for (;;) {
    if (source.isStale(first.path)) {
      ledger.note(drop);
      return;
    }
    const metadata = metadataRefusal === undefined ? departure.metadata : undefined;
    const isOldUpload = departure.document.kind === "file" && intent.observed.fileUrl !== undefined;
    const sent = await sendOnce(context, source, departure, intent, metadata);
    const { reply, isSent } = sent;
    ({ intent } = sent);
    switch (reply.kind) {
      case "torn":
        ledger.note(drop);
        source.checkTorn(intent.path);
        return;
      case "made":
        // The service repeats its answer under this key, and what it made then is deleted.
        if (!isRenewed && isPast(context, intent, reply.docId)) {
          isRenewed = true;
          await renewKey();
          continue;
        }
        if (metadataRefusal !== undefined) context.capabilities.metadataRefused(intent.path, metadataRefusal);
        finishCreate(context, source, departure, intent, reply);
        return;
      case "failed":
        refuse(context, source, departure, reply, true, () => {
          drop();
          deleteFailed(ledger, source, intent, reply.docId);
        });
        return;
      case "gone":
      case "refused": {
        // An upload that nothing refers to is eventually collected, which an outage may outlast. It is then sent once
        // more.
        if (isOldUpload) {
          intent = await withFreshUpload(context, source, intent);
          continue;
        }
        if (reply.kind === "refused" && reply.code === NO_ID) {
          // The service accepted it: only a list can name what it made. Another create would make another resource.
          if (await isFound()) return;
          refuse(context, source, departure, reply, true, drop);
          return;
        }
        if (reply.kind === "refused" && isSent && metadata !== undefined) {
          // It may be the metadata that the service refuses. A refusal without it is the file's own.
          metadataRefusal = reply.message;
          await renewKey();
          continue;
        }
        const trouble = reply.kind === "gone" ? { code: "gone", message: "not found" } : reply;
        refuse(context, source, departure, trouble, true, drop);
        return;
      }
      case "later": {
        if (await patience.wait(reply)) continue;
        if (isSent && reply.acted === "maybe") {
          if (await isFound()) return;
          // Under its key the service would repeatedly answer with what is gone.
          if ("isGone" in reply) await renewKey();
          // Each attempt may have made a resource that no list shows yet, so their number is bounded.
          if (intent.attempts > CREATES_MAX) {
            park(
              context,
              source,
              departure,
              { ...reply, reason: unexplained(reply.reason) },
              true,
              drop,
              HELD_MS,
            );
            return;
          }
        }
        if (await tries.isOver(reply)) {
          park(context, source, departure, reply, true, drop);
          return;
        }
      }
    }
  }
}

/** Creates of one file without an answer, and without a resource in the lists read after them, before the file is held. */
const CREATES_MAX = 3;
/** How long it is held, unless a person retries it or it changes. */
const HELD_MS = 24 * 3_600_000;

function unexplained(reason: string): string {
  return `held: ${CREATES_MAX} creates of this file were not answered (${reason}), and the service's list shows no document of it; each may still appear. It is sent again in a day, or with \`kbsync retry\``;
}

/**
 * Uploads the file unless the intent has its address, sends the create and waits for its end. Returns the intent with the
 * address. `isSent`: the create itself was sent.
 */
async function sendOnce(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  unsent: CreateIntent,
  metadata: UserMetadata | undefined,
) {
  const { ledger, remote } = context;
  let intent = unsent;
  const uploaded = await prepareBody(context, source, departure, intent.key, intent.observed.fileUrl);
  if (uploaded.kind !== "done") return { reply: uploaded, intent, isSent: false };
  if (departure.document.kind === "file" && intent.observed.fileUrl === undefined) {
    // The create will be recognised by this address, so it must be on disk before the create leaves.
    intent = withFileUrl(intent, uploaded.value);
    await ledger.write(() => ledger.intents.setFileUrl(intent.id, uploaded.value));
  }
  const resource = newResource(context, departure, metadata, uploaded.value);
  const isCurrent = (): boolean => !source.isStale(intent.path);
  const answer = await remote.create(resource, intent.key, context.signal, isCurrent, context.contentKind);
  if (answer.kind !== "done") return { reply: answer, intent, isSent: true };
  return { reply: await endOf(context, source, departure, answer.value), intent, isSent: true };
}

/** Deletes the resource of a create that failed later. One that fails at once leaves nothing; this one has a document without text. */
function deleteFailed(ledger: Ledger, source: ActionSource, { path }: CreateIntent, docId: string): void {
  if (ledger.files.ownsDoc(docId)) return;
  source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
}

/** Forgets a create that is not sent. One that was sent before, or resumed, is in doubt as before. */
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

/** How a create that the service accepted ended. */
type CreateEnd =
  | ({ readonly kind: "made"; readonly docId: string; readonly exact: boolean } & Pick<
      Taken,
      "warning" | "record"
    >)
  | { readonly kind: "failed"; readonly docId: string; readonly code: string; readonly message: string }
  /** `isGone`: the resource was accepted and no longer exists. */
  | (Later & { readonly isGone?: true });

/** Waits for the end of a create that was answered before it. Until then its intent stays unchanged. */
async function endOf(
  context: ActionContext,
  source: ActionSource,
  { document: { recipe }, candidate, row }: Departure,
  made: ResourceRecord & Taken,
): Promise<CreateEnd> {
  const { _id: docId, collectionId } = made;
  if (collectionId !== undefined) context.collections.learn(recipe.tier, collectionId);
  if (!made.isInFlight)
    return { kind: "made", docId, exact: true, warning: made.warning, record: made.record };
  // The replaced resource is deleted once the new one is made. Until then it must be possible to find.
  const replaces = row !== undefined && row.docId !== null;
  const end = await follow(context, docId, () => !replaces && source.isOutdated(candidate.entry.path));
  switch (end.kind) {
    case "done":
      return { kind: "made", docId, exact: true, ...end.value };
    case "outdated":
      // The next check changes it or deletes it. The service does that after its current work.
      return { kind: "made", docId, exact: false, warning: undefined, record: {} };
    case "refused":
      return { ...end, kind: "failed", docId };
    case "gone":
      return {
        kind: "later",
        acted: "maybe",
        blame: "request",
        reason: "it was deleted while the service processed it",
        isGone: true,
      };
    case "later":
      return { ...end, acted: "maybe" };
  }
}

function withFileUrl(intent: CreateIntent, fileUrl: string | undefined): CreateIntent {
  return { ...intent, observed: { ...intent.observed, fileUrl } };
}

/** Returns the intent under which a file is uploaded again after its address was refused. */
async function withFreshUpload(
  { ledger, now }: ActionContext,
  source: ActionSource,
  intent: CreateIntent,
): Promise<CreateIntent> {
  // Under the old key the upload would be answered with the old address.
  const fresh = withFileUrl({ ...intent, key: randomUUID() }, undefined);
  if (intent.attempts === 1) {
    await ledger.write(() => ledger.intents.setKey(fresh.id, fresh.key));
    return fresh;
  }
  // An earlier attempt may still take effect, and that address alone identifies it: the doubt retains it.
  const atMs = now();
  let { id } = intent;
  await ledger.write(() => {
    ledger.intents.doubt(intent.id, null);
    id = ledger.intents.create(source.id, fresh.key, atMs, fresh.observed);
  });
  source.compareLater();
  return { ...fresh, id, atMs, attempts: 1 };
}

function withAttempt(intent: CreateIntent): CreateIntent {
  return { ...intent, attempts: intent.attempts + 1 };
}

function finishCreate(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  intent: CreateIntent,
  { docId, exact, warning, record }: Extract<CreateEnd, { readonly kind: "made" }>,
): void {
  const { ledger } = context;
  ledger.note(() => {
    const left = acknowledgeCreate(ledger, intent, docId, exact, storedOf(record, intent.observed));
    if (left === "taken") {
      ledger.intents.remove(intent.id);
      const owner = sendOwnerAgain(context, source, docId);
      const message = `the service made no document of its own for it: it answered with ${docId}, the document of ${owner}, which is sent again`;
      noteTrouble(context, source, departure, { state: "failed", sure: true, code: "not_its_own", message });
      return;
    }
    // A new row has none.
    if (warning !== undefined || departure.row !== undefined) ledger.files.warn(docId, warning);
    if (left !== undefined) source.deleteLater(left);
  });
  noteMarker(context, record);
  if (intent.attempts > 1) source.compareLater();
  reportAction(context, source, departure.candidate, departure.action, departure.startedMs, docId);
}

/** Records whether the service keeps the marker of a description, once its answer shows one. */
function noteMarker({ ledger }: ActionContext, { description }: Taken["record"]): void {
  if (
    ledger.contacts.keepsMarkers() !== undefined ||
    description === undefined ||
    description === null ||
    description === ""
  )
    return;
  ledger.note(() => ledger.contacts.setKeepsMarkers(readMarker(description).kind === "whole"));
}

/**
 * Has the file of a resource sent again: some services change the resource of the same title instead of creating one, and
 * this one may hold the other file's text now. Returns its path. Run inside a group commit.
 */
function sendOwnerAgain({ ledger }: ActionContext, source: ActionSource, docId: string): string {
  const owner = ledger.files.byDoc(docId);
  if (owner === undefined) return "another file";
  if (owner.state === "agreed") ledger.files.setState(owner.id, "unsure");
  if (owner.source === source.id) source.checkAgain(owner.path);
  return owner.path;
}

function newResource(
  context: ActionContext,
  { document }: Departure,
  metadata: UserMetadata | undefined,
  url: string,
): NewResource {
  const { title, description, settings, tier, ownerId } = document.recipe;
  const body = document.kind === "content" ? textOf(context, document) : { url };
  return { title, description, settings, tier, ownerId, body, metadata };
}
