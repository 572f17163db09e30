import type { SourceRow } from "./ledger/sources.ts";

/** Something about a source that waits for a person. */
export interface Standstill {
  /** `lost`: by the service; `halted`: by the folder; `held`: deletes alone. */
  readonly kind: "lost" | "halted" | "held";
  /** Why, in words. */
  readonly reason: string;
  /** What a person can do, in a sentence. */
  readonly remedy: string;
}

/** What of a source's row is told of. */
type Facts = Pick<SourceRow, "lost" | "halted" | "haltRoot" | "held" | "holdReason">;

/** What waits for a person in a source, what weighs most first; empty while it goes on. Pure. */
export function standstillsOf({ lost, halted, haltRoot, held, holdReason }: Facts): readonly Standstill[] {
  const found: Standstill[] = [];
  if (lost !== null)
    found.push({
      kind: "lost",
      reason: lost,
      remedy:
        "bring the service's data back and it goes on by itself, or `kbsync approve` sends again what is missing",
    });
  if (halted !== null) found.push({ kind: "halted", reason: halted, remedy: haltRemedy(halted, haltRoot) });
  if (held > 0)
    found.push({
      kind: "held",
      reason: holdReason ?? "deletes held before",
      remedy: "put the files back and nothing is lost, or `kbsync approve` deletes what is held",
    });
  return found;
}

/** Before another folder a person may agree; before one that is missing or cannot be read there is nothing to agree to. */
function haltRemedy(reason: string, root: Facts["haltRoot"]): string {
  if (root !== undefined)
    return "mount or put back the right folder and it goes on by itself, or `kbsync approve` takes this one as it is";
  return reason.includes("cannot be read")
    ? "check the folder's owner and mode: it goes on by itself when it can be read"
    : "mount it or put it back: it goes on by itself when the folder is there";
}
