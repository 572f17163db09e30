import { shellWord } from "../../lib/shell-word.ts";
import type { SourceRow } from "./sources.ts";

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
  if (lost !== null) found.push({ kind: "lost", reason: lost, remedy: lossRemedy(lost) });
  if (halted !== null) found.push({ kind: "halted", reason: halted, remedy: haltRemedy(halted, haltRoot) });
  if (held > 0)
    found.push({
      kind: "held",
      reason: holdReason ?? "deletes held before",
      remedy: "put the files back and nothing is lost, or `kbsync approve` deletes what is held",
    });
  return found;
}

/** Ends the reason of a source whose service is not to be believed yet: nothing is known to be lost. */
export const ASKED_AGAIN = "it is asked again by itself";

function lossRemedy(reason: string): string {
  return reason.endsWith(ASKED_AGAIN)
    ? "wait: it goes on by itself when the service's answers are clear, or `kbsync approve` sends the files by what it says now, which may leave some of them twice"
    : "bring the service's data back and it goes on by itself, or `kbsync approve` sends again what is missing";
}

const NOT_SHOWN = " does not show it";

/** Why a root that is not there is halted. `unit`: what comes to its path is not seen before that unit is started again. Pure. */
export function missingReason(unit?: string): string {
  return unit === undefined
    ? "the folder is missing or is no folder"
    : `the folder is missing, or ${unit}${NOT_SHOWN}`;
}

/** Before another folder a person may agree; before one that is missing or cannot be read there is nothing to agree to. */
function haltRemedy(reason: string, root: Facts["haltRoot"]): string {
  if (root !== undefined)
    return "mount or put back the right folder and it goes on by itself, or `kbsync approve` takes this one as it is";
  if (reason.endsWith(NOT_SHOWN)) {
    const unit = reason.slice(reason.lastIndexOf(" or ") + 4, -NOT_SHOWN.length);
    return `when the folder is there, \`systemctl restart ${shellWord(unit)}\` lets the unit see it; one that is new in the configuration needs \`kbsync service install\``;
  }
  return reason.includes("cannot be read")
    ? "check the folder's owner and mode: it goes on by itself when it can be read"
    : "mount it or put it back: it goes on by itself when the folder is there";
}
