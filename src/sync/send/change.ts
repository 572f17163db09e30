import { digestOf } from "../../formats/digest.ts";
import { hashListedMetadata } from "../../formats/metadata.ts";
import type { LedgerFile } from "../plan/model.ts";
import type { Later } from "./remote/answer.ts";
import type { DocumentFields, Taken } from "./remote/resource-requests.ts";
import { splitMarker } from "../../wire/marker.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { follow, isInWork } from "./follow.ts";
import { isReplacedBy, judgeGone } from "./gone.ts";
import { storedOf } from "./observe.ts";
import type { Outgoing } from "./prepare.ts";
import { renewKey, type Sending, type Sent } from "./sending.ts";
import { reportAction } from "./trouble.ts";

/** Updates a resource: all of it, or only title, description and metadata. Sending it twice does no harm. */
export async function change(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  sending: Sending,
  fields: DocumentFields,
): Promise<Sent | Later | "again"> {
  const { row, candidate, action, startedMs } = outgoing;
  const { path } = candidate.entry;
  const docId = row?.docId ?? undefined;
  if (row === undefined || docId === undefined) throw new Error("an update needs a resource");
  const { remote, signal, contentKind } = context;
  const isCurrent = (): boolean => !source.isStale(path);
  const history = historyOf(context, row);
  const answer = await remote.update(docId, fields, signal, sending.key, isCurrent, contentKind);
  const isFollowed = answer.kind === "done" && answer.value.isInFlight;
  const end = isFollowed ? await follow(context, docId, () => source.agenda.isOutdated(path)) : answer;
  switch (end.kind) {
    case "done":
      if (!isFollowed && isLost(outgoing, row, end.value.record)) {
        if (sending.wasLost === true) return LOST;
        sending.wasLost = true;
        await renewKey(context, sending);
        return "again";
      }
      finishChange(context, outgoing, row, await answeredId(context, outgoing, docId, end.value.record), {
        ...end.value,
        fileUrl: sending.fileUrl,
        history,
      });
      reportAction(context, source, candidate, action, startedMs, docId);
      return end;
    case "outdated":
      source.agenda.sent(path);
      return { kind: "ended" }; // The row stays unsure, and the next change follows this one at the service.
    case "gone": {
      sending.goneAnswers += 1;
      const word = await judgeGone(context, docId, sending.goneAnswers);
      if (word === "again") {
        await renewKey(context, sending);
        return word;
      }
      if (word !== "gone") return { kind: "parked", code: "no_answer", message: word.reason };
      // Somebody deleted the resource at the service while the file exists. It is created again; should the old one
      // still exist, it is deleted after that. If many are gone, the row stays unsure until the list has shown
      // whether the service lost them.
      if (!source.mayRecreate(docId)) return { kind: "ended" };
      context.ledger.note(() => context.ledger.files.lose(row.id));
      source.agenda.checkAgain(path);
      return { kind: "ended" };
    }
    case "refused":
    case "later":
      return end;
  }
}

/**
 * Waits while the service works on the version that is about to be sent: an attempt without an answer, or an earlier process, sent
 * it before. Returns undefined if it does not, or if its work fails: then the version is sent.
 */
export async function awaitChangeInWork(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
): Promise<Sent | undefined> {
  const { row, candidate, action, startedMs } = outgoing;
  const { path } = candidate.entry;
  const docId = row?.docId ?? undefined;
  if (action !== "update" || row?.state !== "unsure" || docId === undefined) return undefined;
  const history = historyOf(context, row);
  const reply = await context.remote.read(docId, context.signal);
  if (reply.kind !== "done" || !isInWork(reply.value) || !isVersion(outgoing, reply.value)) return undefined;
  const end = await follow(context, docId, () => source.agenda.isOutdated(path));
  if (end.kind === "outdated") {
    source.agenda.sent(path);
    return { kind: "ended" };
  }
  // It may show a version until it has the next one.
  if (end.kind !== "done" || !isVersion(outgoing, end.value.record)) return undefined;
  const fileUrl = end.value.record.url ?? undefined;
  finishChange(context, outgoing, row, docId, { ...end.value, fileUrl, history });
  reportAction(context, source, candidate, action, startedMs, docId);
  return { kind: "done" };
}

/** Reports whether a resource has all that is about to be sent. Its marker stands for the bytes. */
function isVersion(
  { document, observed }: Outgoing,
  { title, description, metadata, url }: Taken["record"],
): boolean {
  const { recipe } = document;
  const hasUrl = typeof url === "string";
  const isSame = title === recipe.title && description === recipe.description;
  return isSame && hashListedMetadata(metadata, hasUrl) === observed.metadataHash;
}

/**
 * Returns the resource that holds an update: another one than was asked for only if its record carries the marker that was sent,
 * and it took the place of that one.
 */
async function answeredId(
  context: ActionContext,
  { document: { recipe } }: Outgoing,
  docId: string,
  { _id: answered, description }: Taken["record"],
): Promise<string> {
  if (answered === undefined || answered === docId) return docId;
  if (splitMarker(description ?? "").marker !== splitMarker(recipe.description).marker) return docId;
  const { title } = recipe;
  return (await isReplacedBy(context, { docId, title }, answered, context.signal)) ? answered : docId;
}

const LOST = {
  kind: "parked",
  code: "earlier_text",
  message: "the service accepts its text, and still shows the earlier text",
} as const;

/**
 * Reports whether the answer to an update shows the text that it was to replace. A service that stores texts in a form of its own
 * may have one form for both; then they differ in case, blanks and punctuation alone.
 */
function isLost(
  { action, document, observed }: Outgoing,
  row: Pick<LedgerFile, "digest">,
  { content }: Taken["record"],
): boolean {
  if (action !== "update" || document.kind !== "content" || typeof content !== "string") return false;
  if (row.digest === observed.digest || digestOf(content) !== row.digest) return false;
  return wordsOf(document.content) !== wordsOf(content);
}

function wordsOf(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "");
}

/** Returns the versions that this ledger knows to have left for a row's resource, of whatever file. */
function historyOf({ ledger }: ActionContext, { id }: LedgerFile): string | undefined {
  return ledger.files.get(id)?.sent;
}

/**
 * Notes that the resource holds what was sent. `fileUrl`: the address of its bytes, if they were uploaded. `history`: of before. The
 * answer to a create may have shown since that the service wrote another file's version to it, perhaps after this one.
 */
function finishChange(
  context: ActionContext,
  { action, document, observed }: Outgoing,
  row: LedgerFile,
  docId: string,
  sent: Pick<Taken, "record" | "warning"> & {
    readonly fileUrl: string | undefined;
    readonly history: string | undefined;
  },
): void {
  const { ledger } = context;
  const isFull = action === "update";
  const fileUrl = sent.fileUrl ?? observed.fileUrl ?? row.fileUrl ?? undefined;
  const { atMs, label, digest } = storedOf(sent.record, observed);
  // An earlier update without an answer may have taken effect after this one: then the answer shows another marker, and no
  // stored form of what was sent. A later list shows the same, and it is sent again.
  const { marker } = splitMarker(sent.record.description ?? "");
  const isForm =
    marker === ""
      ? row.state !== "unsure"
      : marker.toLowerCase() === splitMarker(document.recipe.description).marker;
  const stored = {
    ...(atMs !== undefined && { atMs }),
    ...(isForm && label !== undefined && { label }),
    // A change of the title alone sends no text. Another one than the row's shows no stored form either.
    ...(isForm && isFull && digest !== undefined && { digest }),
  };
  ledger.note(() => {
    const isLast = historyOf(context, row) === sent.history;
    ledger.files.agree(row.id, docId, { ...observed, fileUrl }, stored, isLast);
    // Another title does not change the text.
    if (isFull) ledger.files.warn(docId, sent.warning);
  });
}
