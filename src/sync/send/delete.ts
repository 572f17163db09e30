import { counted } from "../../lib/counted.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { Reply } from "./remote/answer.ts";
import type { Saved } from "../ledger/trash/trash.ts";
import { untilDecided } from "./attempt.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { judgeGone } from "./gone.ts";
import { reportAction } from "./trouble.ts";

/**
 * How a delete ended. The intent stays in the ledger, except after `done` and `taken`.
 *
 * - `refused`: the service refuses it, or the text could not be saved to the trash, and the reason is noted. It is sent
 *   again later.
 * - `left`: nothing was sent, because the source is paused or the file is back.
 * - `taken`: nothing was sent, because a file has the resource. The intent is removed.
 */
export type DeleteEnd = "done" | "refused" | "left" | "taken";

/** The source of a deleted file. One that left the configuration has neither pauses nor comparisons. */
type DeletingSource = Pick<ActionSource, "id" | "root"> &
  Partial<Pick<ActionSource, "isPaused" | "compareLater">>;

/**
 * Deletes a resource whose intent is in the ledger. A resource that is already gone counts as deleted. `isBack` is called right
 * before each attempt and reports whether the file exists again.
 */
export async function sendDelete(
  context: ActionContext,
  source: DeletingSource,
  intent: Deletion,
  isBack: () => boolean = () => false,
): Promise<DeleteEnd> {
  const { ledger, remote, signal } = context;
  const { id, path, docId } = intent;
  const startedMs = context.now();
  const candidate = { entry: { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 }, known: undefined };
  // After a restart the row shows it.
  const isSpare = (): boolean => intent.isSpare ?? ledger.files.living(source.id, path) !== undefined;
  // Some services answer a create with the document of the same title, also if the file of that is gone.
  const isTaken = (): boolean => {
    // An answer that gives a second document to its file may not be committed yet.
    if (isSpare()) ledger.flush();
    return ledger.files.byDoc(docId) !== undefined;
  };
  const failed = (outcome: "refused" | "parked", message: string): "refused" => {
    ledger.note(() => ledger.intents.refuse(id, message));
    reportAction(context, source, candidate, "delete", startedMs, docId, outcome, message);
    return "refused";
  };

  const saved = await saveBefore(context, source, intent);
  if (saved.kind === "paused") return "left";
  if (saved.kind === "wait") return failed("parked", saved.message);

  let goneAnswers = 0;
  type Decided = Exclude<Reply<unknown>, { kind: "later" }> | { kind: "taken" | "left" } | Contradiction;
  type Contradiction = { kind: "contradiction"; reason: string };
  const end = await untilDecided<Decided>(context, async () => {
    if (isTaken()) return { kind: "taken" };
    // The intent stays in the ledger. The check at the resume sends it.
    if (source.isPaused?.() === true || isBack()) return { kind: "left" };
    const answer = await remote.delete(docId, signal, () => !isTaken() && !isBack());
    if (answer.kind !== "gone") return answer;
    goneAnswers += 1;
    const word = await judgeGone(context, docId, goneAnswers);
    if (word === "again") return word;
    return word === "gone" ? answer : { kind: "contradiction", reason: word.reason };
  });
  switch (end.kind) {
    case "left":
      return "left";
    case "taken":
      ledger.note(() => ledger.intents.remove(id));
      return "taken";
    case "done":
    case "gone":
      // A 404 may be false for minutes. Then a later list shows a resource that is a tombstone.
      if (end.kind === "gone") source.compareLater?.();
      ledger.note(() => ledger.intents.deleted(id, docId));
      // A delete by the file's name would be news about a file that still exists.
      reportAction(
        context,
        source,
        candidate,
        isSpare() ? "discard" : "delete",
        startedMs,
        docId,
        "done",
        saved.message,
      );
      return "done";
    case "refused":
      return failed("refused", end.message);
    case "contradiction":
    case "later":
      return failed("parked", end.reason);
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
  source: DeletingSource,
  intent: Deletion,
): Promise<SaveResult> {
  const { ledger, trash } = context;
  if (trash === undefined || trash.tries === 0) return { kind: "go" };
  const unsaved = ledger.intents.unsavedText(intent.id);
  if (unsaved === undefined) return { kind: "go" };
  const saved = await untilDecided<Saved | { readonly kind: "paused" }>(context, async () =>
    source.isPaused?.() === true
      ? { kind: "paused" }
      : await trash.save(intent, source, unsaved, context.signal),
  );
  switch (saved.kind) {
    case "paused":
      return saved;
    case "done":
    case "gone":
      return { kind: "go" };
    case "none":
      return {
        kind: "go",
        message: "deleted without saving its text: the service's answer has no text of it",
      };
    case "disk":
      return { kind: "wait", message: `its text cannot be saved before it is deleted: ${saved.message}` };
    case "refused":
    case "later": {
      const left = unsaved.tries - 1;
      ledger.note(() => ledger.intents.setSaveTries(intent.id, left));
      const words = saved.kind === "refused" ? saved.message : saved.reason;
      if (left === 0) return { kind: "go", message: `deleted without saving its text: ${words}` };
      return {
        kind: "wait",
        message: `its text cannot be saved before it is deleted: ${words}; ${counted(left, "more try", "more tries")}`,
      };
    }
  }
}
