import { randomUUID } from "node:crypto";
import type { Later } from "./remote/answer.ts";
import { NO_ID } from "./remote/record.ts";
import { untilDecided } from "./attempt.ts";
import { awaitChangeInWork, change } from "./change.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { create, deleteFailed, dropCreate, findCreated, unansweredCreate } from "./create.ts";
import type { Outgoing } from "./prepare.ts";
import { fieldsOf, prepareBody, refusalOf, renewKey, type Sending, type Sent } from "./sending.ts";
import { giveUp, park } from "./trouble.ts";

/** Sends what was prepared, until the service has answered or the file is given up. */
export async function send(context: ActionContext, source: ActionSource, outgoing: Outgoing): Promise<void> {
  const { intent, row } = outgoing;
  const { path } = outgoing.candidate.entry;
  // Nobody answered an earlier create: the list may show what it made.
  const isDoubted =
    intent !== undefined && (intent.attempts > 1 || context.ledger.intents.isDoubted(source.id, path));
  const found = isDoubted ? await findCreated(source, intent) : undefined;
  const sending: Sending = {
    key: intent?.key ?? randomUUID(),
    fileUrl: outgoing.document.kind === "file" ? intent?.observed.fileUrl : undefined,
    intent,
    isUnanswered: false,
    goneAnswers: 0,
  };
  const unanswered = async (later: Later): Promise<Sent | undefined> => {
    if (sending.intent !== undefined)
      return await unansweredCreate(context, source, sending, sending.intent, later);
    if (later.acted === "maybe") sending.isUnanswered = true;
    return undefined;
  };
  const once = (): ReturnType<typeof sendOnce> => sendOnce(context, source, outgoing, sending);
  const end = found ?? (await untilDecided<Sent>(context, once, unanswered));
  // It may take effect after the next version. A later list shows its marker.
  if (end.kind !== "done" && sending.isUnanswered) source.compareLater();
  const drop = (): void => {
    if (sending.intent !== undefined) dropCreate(context.ledger, source, sending.intent);
  };
  // Whether the service certainly still has what the row says.
  const isSure = sending.intent !== undefined || (row?.state !== "unsure" && !sending.isUnanswered);
  const { entry, rulesKey } = outgoing.observed;
  const unsent = { ...outgoing, entry, rulesKey, isSure };
  switch (end.kind) {
    case "done":
    case "ended":
      return;
    case "dropped":
      // The row of an update stays unsure, so that the next check sends all of the file.
      context.ledger.note(drop);
      return;
    case "refused":
      giveUp(context, source, unsent, { state: "failed", code: end.code, message: end.message }, () => {
        drop();
        if (end.failedId !== undefined) deleteFailed(context.ledger, source, path, end.failedId);
      });
      return;
    case "parked":
      park(context, source, unsent, end, drop);
      return;
    case "later":
      park(context, source, unsent, { code: "no_answer", message: end.reason }, drop);
  }
}

/** Uploads the file unless its address is known, sends the document and waits for its end. */
async function sendOnce(
  context: ActionContext,
  source: ActionSource,
  outgoing: Outgoing,
  sending: Sending,
): Promise<Sent | Later | "again"> {
  const { path } = outgoing.candidate.entry;
  if (source.isStale(path)) return { kind: "dropped" };
  const sentBefore = await awaitChangeInWork(context, source, outgoing);
  if (sentBefore !== undefined) return sentBefore;
  const isOldUpload = sending.fileUrl !== undefined;
  const body = await prepareBody(context, source, outgoing, sending);
  if (body.kind === "torn") {
    source.agenda.checkTorn(path);
    return { kind: "dropped" };
  }
  // The document has not left yet.
  if (body.kind === "later") return { ...body, acted: "no" };
  if (body.kind !== "done") return refusalOf(body);

  const fields = fieldsOf(context, outgoing, body.value);
  const answer =
    sending.intent === undefined
      ? await change(context, source, outgoing, sending, fields)
      : await create(context, source, outgoing, sending, sending.intent, fields);
  if (!isOldUpload || answer === "again" || answer.kind !== "refused") return answer;
  // The service accepted a create and does not name what it made: another one would make another resource.
  if (answer.code === NO_ID || answer.failedId !== undefined) return answer;
  // An upload that nothing refers to is eventually collected, which an outage may outlast. It is sent once more, under
  // another key: under the old one the upload would be answered with the old address.
  sending.fileUrl = undefined;
  const { intent } = sending;
  if (intent !== undefined)
    await context.ledger.write(() => context.ledger.intents.setFileUrl(intent.id, undefined));
  await renewKey(context, sending);
  return "again";
}
