import type { Deletion } from "../pass/deletes.ts";
import { keepBefore } from "./keep.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { openGoneCheck } from "./gone.ts";
import { tell } from "./prepare.ts";
import { countTries } from "./trouble.ts";

/**
 * How a delete ended. `refused`: the service will not do it, or the text could not be kept; the intent stays, with its
 * words, and is to be sent again later. `left`: it must not leave now, because the source is paused or the file is back;
 * the intent stays as it was.
 */
export type DeleteEnd = "done" | "refused" | "left";

/**
 * Deletes a resource whose intent is in the ledger. One that is gone already is as good. `isBack` is asked right before
 * each attempt leaves: whether the file is there again.
 */
export async function sendDelete(
  context: ActionContext,
  source: Pick<ActionSource, "id" | "root"> & Partial<Pick<ActionSource, "isPaused">>,
  intent: Deletion,
  isBack: () => boolean = () => false,
): Promise<DeleteEnd> {
  const { ledger, remote } = context;
  const startedMs = context.now();
  const tries = countTries(context);
  const gone = openGoneCheck(context, intent.docId);
  const look = {
    entry: { path: intent.path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 },
    known: undefined,
  };
  const kept = await keepBefore(context, source, intent);
  if (kept.kind === "paused") return "left";
  if (kept.kind === "wait") {
    ledger.note(() => ledger.intents.refuse(intent.id, kept.message));
    tell(context, source, look, "delete", startedMs, intent.docId, "parked", kept.message);
    return "refused";
  }
  for (;;) {
    // The intent stays in the ledger, and the look that resuming begins with sends it.
    if (source.isPaused?.() === true || isBack()) return "left";
    const answer = await remote.delete(intent.docId, context.signal, () => !isBack());
    const word = answer.kind === "gone" ? await gone.judge() : undefined;
    if (word === "again") continue;
    const reply = word === undefined || word === "gone" ? answer : word;
    if (reply.kind === "done" || reply.kind === "gone") {
      ledger.note(() => ledger.intents.deleted(intent.id, intent.docId));
      // After a restart the row says it. The file's own delete would be news of a file that is still there.
      const isSpare = intent.isSpare ?? ledger.files.living(source.id, intent.path) !== undefined;
      const action = isSpare ? "discard" : "delete";
      tell(context, source, look, action, startedMs, intent.docId, "done", kept.message);
      return "done";
    }
    if (reply.kind === "refused" || word !== undefined || (await tries.isOver(reply))) {
      const message = reply.kind === "refused" ? reply.message : reply.reason;
      ledger.note(() => ledger.intents.refuse(intent.id, message));
      const outcome = reply.kind === "refused" ? "refused" : "parked";
      tell(context, source, look, "delete", startedMs, intent.docId, outcome, message);
      return "refused";
    }
  }
}
