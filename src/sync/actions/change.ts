import { randomUUID } from "node:crypto";
import type { UserMetadata } from "../../wire/metadata.ts";
import type { ResourceChange } from "../remote/remote.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { holds, storedOf } from "./observe.ts";
import { openGoneCheck } from "./gone.ts";
import { follow, followFound, openPatience } from "./follow.ts";
import { reportAction, type Departure } from "./prepare.ts";
import { countTries, park, refuse } from "./trouble.ts";
import { prepareBody, textOf } from "./body.ts";

/** Updates a resource: all of it, or only title, description and metadata. Sending it twice does no harm. */
export async function sendChange(
  context: ActionContext,
  source: ActionSource,
  departure: Departure,
): Promise<void> {
  const { ledger, remote } = context;
  const { action, candidate, document, observed, row } = departure;
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
  let metadataRefusal: string | undefined;
  // Whether the service certainly still has what the row says.
  let sure = row.state !== "unsure";
  const isCurrent = (): boolean => !source.isStale(path);
  /** The address of the file's bytes, once they are uploaded: only the rest is sent again. */
  let sentUrl: string | undefined;

  if (departure.mayBeThere) {
    const found = await followFound(context, docId, () => source.isStale(path));
    if (found?.kind === "outdated") return;
    if (found !== undefined && holds(found.value.record, observed, row.fileUrl)) {
      const { warning, record } = found.value;
      ledger.note(() => {
        const fileUrl = observed.fileUrl ?? row.fileUrl ?? undefined;
        ledger.files.agree(row.id, docId, { ...observed, fileUrl }, storedOf(record, observed));
        ledger.files.warn(docId, warning);
        ledger.intents.forgetFound(docId);
      });
      // The service has this version now, whichever request it came with.
      reportAction(context, source, candidate, action, departure.startedMs, docId);
      return;
    }
  }

  for (;;) {
    if (!isCurrent()) return; // The row stays unsure, so that the next check sends it whole.
    const metadata = metadataRefusal === undefined ? departure.metadata : undefined;
    const full = action === "update";
    const isOldUpload = sentUrl !== undefined;
    const uploaded = full
      ? await prepareBody(context, source, departure, uploadKey, sentUrl)
      : { kind: "done" as const, value: "" };
    if (uploaded.kind === "torn") {
      source.checkTorn(path);
      return;
    }
    if (uploaded.kind === "done" && full && document.kind === "file") sentUrl = uploaded.value;
    const answer =
      uploaded.kind === "done"
        ? await remote.update(
            docId,
            changeOf(context, departure, metadata, full, uploaded.value),
            context.signal,
            key,
            isCurrent,
          )
        : uploaded;
    const isFollowed = answer.kind === "done" && answer.value.isInFlight;
    const reply = isFollowed ? await follow(context, docId, () => source.isStale(path)) : answer;
    switch (reply.kind) {
      case "done": {
        const fileUrl = sentUrl ?? observed.fileUrl ?? row.fileUrl ?? undefined;
        const { atMs, label, digest } = storedOf(reply.value.record, observed);
        // A change of the title alone sends no text. Another one than the row's shows no stored form either.
        const form = {
          ...(label !== undefined && { label }),
          ...(full && digest !== undefined && { digest }),
        };
        // An earlier update without an answer may have taken effect after this one. The result is then no stored form
        // of what was sent, and the next audit sends it again.
        const isEarlier = row.state === "unsure" || form.label === row.label || form.digest === row.digest;
        const isForm = !isFollowed || !isEarlier;
        const stored = { ...(atMs !== undefined && { atMs }), ...(isForm && form) };
        ledger.note(() => {
          ledger.files.agree(row.id, docId, { ...observed, fileUrl }, stored);
          // Another title does not change the text.
          if (full) ledger.files.warn(docId, reply.value.warning);
          if (departure.mayBeThere) ledger.intents.forgetFound(docId);
        });
        if (metadataRefusal !== undefined) context.capabilities.metadataRefused(path, metadataRefusal);
        reportAction(context, source, candidate, action, departure.startedMs, docId);
        return;
      }
      case "outdated":
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
        if (!source.mayRecreate(row.id)) return;
        ledger.note(() => ledger.files.lose(row.id));
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
        if (uploaded.kind === "done" && metadata !== undefined) {
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
