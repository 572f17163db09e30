import type { Deletion } from "../ledger/intents/deletes.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { openGoneCheck } from "./gone.ts";
import { reportAction } from "./prepare.ts";
import { countTries } from "./trouble.ts";
import type { Reply } from "../remote/answer.ts";
import type { Trash } from "../trash/trash.ts";

/**
 * How a delete ended. The intent stays in the ledger, except after `done` and `taken`.
 *
 * - `refused`: the service refuses it, or the text could not be saved to the trash, and the reason is noted; or a create in
 *   flight may receive the resource. It is sent again later.
 * - `denied`: the service answers that there is no such resource; to be sure, it is sent again later.
 * - `left`: nothing was sent, because the source is paused or the file is back.
 * - `taken`: nothing was sent, because a file has the resource. The intent is removed.
 */
export type DeleteEnd = "done" | "refused" | "denied" | "left" | "taken";

export interface DeleteOptions {
  /** Called right before each attempt: reports whether the file exists again. Default: it does not. */
  readonly isBack?: () => boolean;
  /** Whether a mere 404 is believed. Default: it is. */
  readonly believes?: boolean;
  /** The service answered 404 before, and that was reported as the end. Default: it did not. */
  readonly wasDenied?: boolean;
}

/** Deletes a resource whose intent is in the ledger. A resource that is already gone counts as deleted. */
export async function sendDelete(
  context: ActionContext,
  source: Pick<ActionSource, "id" | "root"> & Partial<Pick<ActionSource, "isPaused">>,
  intent: Deletion,
  { isBack = () => false, believes = true, wasDenied = false }: DeleteOptions = {},
): Promise<DeleteEnd> {
  const { ledger, remote } = context;
  const startedMs = context.now();
  const tries = countTries(context);
  // After a restart the row shows it.
  const isSpare = (): boolean => intent.isSpare ?? ledger.files.living(source.id, intent.path) !== undefined;
  // A list may have shown an extra resource before all replicas know it.
  const gone = openGoneCheck(context, intent.docId, isSpare() && !wasDenied ? Date.now() : undefined);
  const candidate = {
    entry: { path: intent.path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 },
    known: undefined,
  };
  const saved = await saveBefore(context, source, intent);
  if (saved.kind === "paused") return "left";
  if (saved.kind === "wait") {
    ledger.note(() => ledger.intents.refuse(intent.id, saved.message));
    reportAction(context, source, candidate, "delete", startedMs, intent.docId, "parked", saved.message);
    return "refused";
  }
  for (;;) {
    // An answer that gives it to another file may not be committed yet. What a deleted file had is given to none.
    if (isSpare()) ledger.flush();
    if (ledger.files.byDoc(intent.docId) !== undefined) {
      ledger.note(() => ledger.intents.remove(intent.id));
      return "taken";
    }
    // The intent stays in the ledger. The check at the resume sends it.
    if (source.isPaused?.() === true || isBack()) return "left";
    const answer = await remote.delete(intent.docId, context.signal, () => !isBack());
    const word = answer.kind === "gone" ? await gone.judge() : undefined;
    if (word === "again") continue;
    const reply = word === undefined || typeof word === "string" ? answer : word;
    if (reply.kind === "done" || reply.kind === "gone") {
      const isDenied = word === "gone" && !believes;
      ledger.note(() => {
        if (isDenied) ledger.intents.refuse(intent.id, null);
        else ledger.intents.deleted(intent.id, intent.docId);
      });
      // Nothing new, unless it existed after all.
      if (wasDenied && reply.kind === "gone") return isDenied ? "denied" : "done";
      // A delete by the file's name would be news about a file that still exists.
      const action = isSpare() ? "discard" : "delete";
      reportAction(context, source, candidate, action, startedMs, intent.docId, "done", saved.message);
      return isDenied ? "denied" : "done";
    }
    if (reply.kind === "refused" || word !== undefined || (await tries.isOver(reply))) {
      const message = reply.kind === "refused" ? reply.message : reply.reason;
      ledger.note(() => ledger.intents.refuse(intent.id, message));
      const outcome = reply.kind === "refused" ? "refused" : "parked";
      reportAction(context, source, candidate, "delete", startedMs, intent.docId, outcome, message);
      return "refused";
    }
  }
}

/** Whether a resource may be deleted now, and what to report about it. */
type SaveResult =
  | { readonly kind: "go"; readonly message?: string }
  /** Not yet: the delete must be sent again later. */
  | { readonly kind: "wait"; readonly message: string }
  /** Nothing may be sent; the intent stays unchanged. */
  | { readonly kind: "paused" };

/**
 * Saves what a resource holds before it is deleted, if the configuration wants that and the file is gone. It takes one
 * more request: the answer to the delete itself also contains the text, but a crash between that answer and the disk
 * would lose it for good, whereas the answer to an update can be obtained again.
 *
 * A text that the service fails to return `SAVE_TRIES` times, with some minutes in between, is not saved. A text that
 * cannot be written waits until it can: the disk is for a person to repair, and nothing is lost meanwhile.
 */
async function saveBefore(
  context: ActionContext,
  source: Pick<ActionSource, "id" | "root"> & Partial<Pick<ActionSource, "isPaused">>,
  intent: Deletion,
): Promise<SaveResult> {
  const { ledger, trash } = context;
  if (trash === undefined || trash.tries === 0) return { kind: "go" };
  const unsaved = ledger.intents.unsavedText(intent.id);
  if (unsaved === undefined) return { kind: "go" };
  const tries = countTries(context);
  for (;;) {
    if (source.isPaused?.() === true) return { kind: "paused" };
    const saved = await trash.save(intent, source, unsaved, context.signal);
    if (saved.kind === "done" || saved.kind === "gone") return { kind: "go" };
    if (saved.kind === "none")
      return {
        kind: "go",
        message: "deleted without saving its text: the service's answer has no text of it",
      };
    if (saved.kind === "disk")
      return { kind: "wait", message: `its text cannot be saved before it is deleted: ${saved.message}` };
    if (saved.kind === "later" && !(await tries.isOver(saved))) continue;
    const left = unsaved.tries - 1;
    ledger.note(() => ledger.intents.setSaveTries(intent.id, left));
    const words = wordsOf(saved);
    if (left === 0) return { kind: "go", message: `deleted without saving its text: ${words}` };
    return {
      kind: "wait",
      message: `its text cannot be saved before it is deleted: ${words}; ${left} more ${left === 1 ? "try" : "tries"}`,
    };
  }
}

function wordsOf(saved: Exclude<Awaited<ReturnType<Trash["save"]>>, { kind: "disk" | "none" }>): string {
  const reply: Reply<unknown> = saved;
  if (reply.kind === "refused") return reply.message;
  return reply.kind === "later" ? reply.reason : "not found";
}
