import { randomUUID } from "node:crypto";
import type { UserMetadata } from "../../wire/metadata.ts";
import { digestOf } from "../../formats/digest.ts";
import { sentTextOf } from "../../formats/json-text.ts";
import type { LedgerFile } from "../plan/model.ts";
import type { ResourceChange, Taken } from "../remote/resource-requests.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { splitMarker } from "../../wire/marker.ts";
import { holds, storedOf } from "./observe.ts";
import { openGoneCheck } from "./gone.ts";
import { follow, openPatience, type Followed } from "./follow.ts";
import { reportAction, type Departure } from "./prepare.ts";
import { countTries, park, refuse } from "./trouble.ts";
import { prepareBody, textOf } from "./body.ts";

/** Updates a resource: all of it, or only title, description and metadata. Sending it twice does no harm. */
export async function sendChange(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
): Promise<void> {
  const { action, candidate, row } = departure;
  const docId = row?.docId ?? undefined;
  if (row === undefined || docId === undefined) throw new Error("an update needs a resource");
  const { path } = candidate.entry;
  const tries = countTries(context);
  const patience = openPatience(context);
  const gone = openGoneCheck(context, docId);
  let uploadKey = randomUUID();
  /**
   * Key of an update that is sent again. A service that still works on the first one reports that, and works on it
   * once.
   */
  let key = randomUUID();
  /**
   * Key of an update with an earlier text that nobody answered. If it took effect after this one, the resource would have that
   * text. So this one is sent under its key until the service has ended that.
   */
  let earlierKey = context.unanswered.get(docId);
  let metadataRefusal: string | undefined;
  // Whether the service certainly still has what the row says.
  let sure = row.state !== "unsure";
  /** An answer has shown the earlier text. One may come from a replica that lags. */
  let wasLost = false;
  /** The address of the file's bytes, once they are uploaded: only the rest is sent again. */
  let sentUrl: string | undefined;

  for (;;) {
    if (source.isStale(path)) return; // The row stays unsure, so that the next check sends it whole.
    const metadata = metadataRefusal === undefined ? departure.metadata : undefined;
    const isOldUpload = sentUrl !== undefined;
    const sent = await sendOnce(context, source, departure, {
      docId,
      metadata,
      fileUrl: sentUrl,
      uploadKey,
      key: earlierKey ?? key,
    });
    if (sent === "torn") {
      source.checkTorn(path);
      return;
    }
    const { reply, isSent, isFollowed } = sent;
    sentUrl = sent.fileUrl;
    if (isSent) noteAnswer(context, docId, earlierKey ?? key, reply);
    if (isSent && earlierKey !== undefined && reply.kind !== "later") {
      earlierKey = undefined;
      // This may be the answer to the earlier one.
      const isOwn =
        reply.kind === "done" && holds(reply.value.record, departure.observed, sentUrl ?? row.fileUrl);
      if (!isOwn) continue;
    }
    switch (reply.kind) {
      case "done":
        if (!isFollowed && isLost(departure, row, reply.value.record)) {
          if (wasLost) {
            park(context, source, departure, LOST, sure);
            return;
          }
          wasLost = true;
          key = randomUUID();
          continue;
        }
        finishChange(
          context,
          departure,
          { row, docId: answeredId(context, departure, docId, reply.value.record) },
          { ...reply.value, isFollowed, fileUrl: sentUrl },
        );
        if (metadataRefusal !== undefined) context.capabilities.metadataRefused(path, metadataRefusal);
        reportAction(context, source, candidate, action, departure.startedMs, docId);
        return;
      case "outdated":
        source.sent(path);
        return; // The row stays unsure, and the next change follows this one at the service.
      case "gone": {
        const word = await gone.judge();
        if (word === "again") {
          // Some services repeat a refusal under the same key.
          key = randomUUID();
          continue;
        }
        if (word !== "gone" && word !== "deleted") {
          park(context, source, departure, word, sure);
          return;
        }
        // Somebody deleted the resource at the service while the file exists. It is created again; should the old one
        // still exist, it is deleted after that. If many are gone, the row stays unsure until the list has shown
        // whether the service lost them.
        if (!source.mayRecreate()) return;
        context.ledger.note(() => context.ledger.files.lose(row.id));
        source.checkAgain(path);
        return;
      }
      case "refused":
        // An upload that nothing refers to is eventually collected, which an outage may outlast. It is then sent once
        // more.
        if (isOldUpload) {
          sentUrl = undefined;
          uploadKey = randomUUID();
          key = randomUUID();
          continue;
        }
        if (isSent && metadata !== undefined) {
          // It may be the metadata that the service refuses. A refusal without it is the file's own.
          metadataRefusal = reply.message;
          key = randomUUID();
          continue;
        }
        refuse(context, source, departure, reply, sure);
        return;
      case "later":
        if (await patience.wait(reply)) continue;
        if (reply.acted === "maybe") sure = false;
        if (await tries.isOver(reply)) {
          park(context, source, departure, reply, sure);
          return;
        }
    }
  }
}

/**
 * Returns the resource that holds an update: another one than was asked for only if its record carries the marker that was sent,
 * and no other file has it.
 */
function answeredId(
  { ledger }: ActionContext,
  { document }: Departure,
  docId: string,
  { _id: answered, description }: Taken["record"],
): string {
  if (answered === undefined || answered === docId) return docId;
  const sent = splitMarker(document.recipe.description).marker;
  ledger.flush();
  return splitMarker(description ?? "").marker === sent && !ledger.files.ownsDoc(answered) ? answered : docId;
}

const LOST = {
  code: "earlier_text",
  reason: "the service accepts its text, and still shows the earlier text",
} as const;

/**
 * Reports whether the answer to an update shows the text that it was to replace. A service that stores texts in a form of its own
 * may have one form for both; then they differ in case, blanks and punctuation alone.
 */
function isLost(
  { action, document, observed }: Departure,
  row: Pick<LedgerFile, "digest">,
  { content }: Taken["record"],
): boolean {
  if (action !== "update" || document.kind !== "content" || typeof content !== "string") return false;
  if (row.digest === observed.digest || digestOf(content) !== row.digest) return false;
  const text = sentTextOf(document.content);
  return wordsOf(text) !== wordsOf(content);
}

function wordsOf(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** A file's row and its resource. */
interface Owned {
  readonly row: LedgerFile;
  readonly docId: string;
}

/**
 * Uploads the file unless `fileUrl` has it, sends the update and waits for its end. `isSent`: the update itself was sent.
 * Returns `torn` if the file changed while it was uploaded.
 */
async function sendOnce(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
  request: {
    readonly docId: string;
    readonly metadata: UserMetadata | undefined;
    readonly fileUrl: string | undefined;
    readonly uploadKey: string;
    readonly key: string;
  },
) {
  const { docId, metadata, uploadKey, key } = request;
  const { path } = departure.candidate.entry;
  const isFull = departure.action === "update";
  let { fileUrl } = request;
  let url = "";
  if (isFull) {
    const uploaded = await prepareBody(context, source, departure, uploadKey, fileUrl);
    if (uploaded.kind === "torn") return uploaded.kind;
    if (uploaded.kind !== "done") return { reply: uploaded, fileUrl, isSent: false, isFollowed: false };
    url = uploaded.value;
    if (departure.document.kind === "file") fileUrl = url;
  }
  const change = changeOf(context, departure, metadata, isFull, url);
  const isCurrent = (): boolean => !source.isStale(path);
  const { signal, contentKind } = context;
  const answer = await context.remote.update(docId, change, signal, key, isCurrent, contentKind);
  const isFollowed = answer.kind === "done" && answer.value.isInFlight;
  const reply = isFollowed ? await follow(context, docId, () => source.isOutdated(path)) : answer;
  return { reply, fileUrl, isSent: true, isFollowed };
}

/** Unanswered updates that are remembered; the oldest are forgotten. */
const UNANSWERED_MAX = 10_000;

function noteAnswer(
  { unanswered }: Pick<ActionContext, "unanswered">,
  docId: string,
  key: string,
  reply: Awaited<ReturnType<ActionContext["remote"]["update"]>> | Followed,
): void {
  if (reply.kind === "later" && reply.acted === "no") return;
  unanswered.delete(docId);
  if (reply.kind !== "later") return;
  unanswered.set(docId, key);
  const [oldest] = unanswered.keys();
  if (unanswered.size > UNANSWERED_MAX && oldest !== undefined) unanswered.delete(oldest);
}

/** Notes that the resource holds what was sent. `fileUrl`: the address of its bytes, if they were uploaded. */
function finishChange(
  { ledger }: ActionContext,
  { action, observed }: Departure,
  { row, docId }: Owned,
  sent: Pick<Taken, "record" | "warning"> & {
    readonly isFollowed: boolean;
    readonly fileUrl: string | undefined;
  },
): void {
  const isFull = action === "update";
  const fileUrl = sent.fileUrl ?? observed.fileUrl ?? row.fileUrl ?? undefined;
  const { atMs, label, digest } = storedOf(sent.record, observed);
  // A change of the title alone sends no text. Another one than the row's shows no stored form either.
  const form = {
    ...(label !== undefined && { label }),
    ...(isFull && digest !== undefined && { digest }),
  };
  // An earlier update without an answer may have taken effect after this one. The result is then no stored form
  // of what was sent, and the next audit sends it again.
  const isEarlier = row.state === "unsure" || form.label === row.label || form.digest === row.digest;
  const isForm = !sent.isFollowed || !isEarlier;
  const stored = { ...(atMs !== undefined && { atMs }), ...(isForm && form) };
  ledger.note(() => {
    ledger.files.agree(row.id, docId, { ...observed, fileUrl }, stored);
    // Another title does not change the text.
    if (isFull) ledger.files.warn(docId, sent.warning);
  });
}

function changeOf(
  context: ActionContext,
  { document }: Departure,
  metadata: UserMetadata | undefined,
  full: boolean,
  url: string,
): ResourceChange {
  const { title, description } = document.recipe;
  const named = { title, description, ...(metadata !== undefined && { metadata }) };
  if (!full) return named;
  if (document.kind === "content") return { ...named, ...textOf(context, document) };
  return { ...named, url };
}
