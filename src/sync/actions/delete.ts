import type { Deletion } from "../pass/deletes.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { tell } from "./prepare.ts";
import { countTries } from "./trouble.ts";

/**
 * Deletes a resource whose intent is in the ledger. One that is gone already is as good. Returns false when the service
 * will not do it: the intent stays then, with its words, and is to be sent again later.
 */
export async function sendDelete(
  context: ActionContext,
  source: ActionSource,
  intent: Deletion,
): Promise<boolean> {
  const { ledger, remote } = context;
  const startedMs = context.now();
  const tries = countTries(context);
  const look = {
    entry: { path: intent.path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 },
    known: undefined,
  };
  for (;;) {
    const reply = await remote.delete(intent.docId, context.signal);
    if (reply.kind === "done" || reply.kind === "gone") {
      ledger.note(() => ledger.intents.remove(intent.id));
      tell(context, source, look, "delete", startedMs, intent.docId);
      return true;
    }
    if (reply.kind === "refused" || (await tries.isOver(reply))) {
      const message = reply.kind === "refused" ? reply.message : reply.reason;
      ledger.note(() => ledger.intents.refuse(intent.id, message));
      const outcome = reply.kind === "refused" ? "refused" : "parked";
      tell(context, source, look, "delete", startedMs, intent.docId, outcome, message);
      return false;
    }
  }
}
