import type { Deletion } from "../ledger/intents.ts";
import type { Reply } from "../remote/answer.ts";
import type { Trash } from "../trash/trash.ts";
import type { ActionContext, ActionSource } from "./context.ts";
import { countTries } from "./trouble.ts";

/** Whether a resource may be deleted now, with what is to be told of it. */
export type KeepResult =
  | { readonly kind: "go"; readonly message?: string }
  /** Not yet: the delete is to be sent again later. */
  | { readonly kind: "wait"; readonly message: string }
  /** Nothing may be sent; the intent stays as it is. */
  | { readonly kind: "paused" };

/**
 * Keeps what a resource holds before it is deleted, where the configuration wants it and the file is gone. It takes one
 * more request. The answer of the delete itself has the text as well, but a crash between that answer and the disk would
 * lose it for good; the answer of an update can be had again.
 *
 * What the service does not give, `KEEP_TRIES` times with some minutes in between, is deleted without being kept. What
 * cannot be written waits for as long as that is so: the disk is the person's to mend, and nothing is lost meanwhile.
 */
export async function keepBefore(
  context: ActionContext,
  source: Pick<ActionSource, "id" | "root"> & Partial<Pick<ActionSource, "isPaused">>,
  intent: Deletion,
): Promise<KeepResult> {
  const { ledger, trash } = context;
  if (trash === undefined || trash.tries === 0) return { kind: "go" };
  const keep = ledger.intents.keepOf(intent.id);
  if (keep === undefined) return { kind: "go" };
  const tries = countTries(context);
  for (;;) {
    if (source.isPaused?.() === true) return { kind: "paused" };
    const kept = await trash.keep(intent, source, keep, context.signal);
    if (kept.kind === "done" || kept.kind === "gone") return { kind: "go" };
    if (kept.kind === "disk")
      return { kind: "wait", message: `its text cannot be kept before it is deleted: ${kept.message}` };
    if (kept.kind === "later" && !(await tries.isOver(kept))) continue;
    const left = keep.tries - 1;
    ledger.note(() => ledger.intents.setKeepTries(intent.id, left));
    const words = wordsOf(kept);
    if (left === 0) return { kind: "go", message: `deleted without keeping its text: ${words}` };
    return {
      kind: "wait",
      message: `its text cannot be kept before it is deleted: ${words}; ${left} more ${left === 1 ? "try" : "tries"}`,
    };
  }
}

function wordsOf(kept: Exclude<Awaited<ReturnType<Trash["keep"]>>, { kind: "disk" }>): string {
  const reply: Reply<unknown> = kept;
  if (reply.kind === "refused") return reply.message;
  return reply.kind === "later" ? reply.reason : "not found";
}
