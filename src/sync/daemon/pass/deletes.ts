import type { Deletion } from "../../ledger/intents/deletes.ts";
import { type Braked, isSameRoot, LATELY_MS } from "../../plan/brakes.ts";
import type { RootIdentity } from "../../plan/model.ts";
import type { RootHalt } from "./brake-facts.ts";
import type { PassContext } from "./context.ts";

/** Writes the intents of the deletes that the brakes let through, and removes the rows. */
export async function beginDeletes(
  { source: { id: source }, context: { ledger, now, trash } }: PassContext,
  { deletes, counted }: Pick<Braked, "deletes" | "counted">,
): Promise<readonly Deletion[]> {
  if (deletes.length === 0) return [];
  const keepTries = trash?.tries ?? 0;
  const deletions: Deletion[] = [];
  await ledger.write(() => {
    const nowMs = now();
    if (counted > 0) ledger.sources.countDeletes(source, nowMs, counted, nowMs - LATELY_MS);
    for (const { id, path, docId } of deletes) {
      if (docId !== null) deletions.push({ id: ledger.intents.deleteFile(id, keepTries), path, docId });
      ledger.files.remove(id);
    }
  });
  return deletions;
}

/** Holds rows until a person agrees, or clears the reason if none is left. The source is no longer halted. */
export function holdRows(
  { source: { id: source }, context: { ledger } }: PassContext,
  { held, reason }: Pick<Braked, "held" | "reason">,
): void {
  ledger.flush();
  const before = ledger.sources.get(source);
  const fresh = held.filter(({ state }) => state !== "held");
  if (fresh.length > 0) {
    ledger.note(() => {
      for (const { id } of fresh) ledger.files.hold(id);
    });
  }
  // A partial pass that holds nothing does not know what is held elsewhere.
  const words = reason ?? (before.held > 0 ? before.holdReason : null);
  if (before.halted === null && before.holdReason === words) return;
  ledger.note(() => ledger.sources.setHold(source, { halted: null, reason: words }));
}

/**
 * Halts the source: because of another root, from which so many files are missing, or because there is none. No row is
 * marked, so that nothing has happened when the right folder is back. An approval that covered less is used up.
 */
export function haltSource(
  { source: { id: source }, context: { ledger } }: PassContext,
  { reason, ...cause }: RootHalt,
  root: RootIdentity | undefined,
  files: number,
): void {
  const halted = reason ?? null;
  ledger.flush();
  const before = ledger.sources.get(source);
  const isSame = isSameRoot(before.haltRoot, root) && before.haltFiles === files;
  if (before.halted === halted && isSame && !before.approved) return;
  ledger.note(() => {
    ledger.sources.setHold(source, { halted, ...cause, reason: before.holdReason, root, files });
    ledger.sources.approvalUsed(source);
  });
}
