import { shellWord } from "../../lib/shell-word.ts";
import type { SenderBlocker } from "../plan/version.ts";
import type { HoldKind, SourceRow } from "./sources/rows.ts";

/** A condition of a source that waits for a person. */
export interface Blocker {
  /** `lost`: caused by the service; `halted`: by the folder; `held`: deletes only. */
  readonly kind: "lost" | "halted" | "held";
  /** The reason, in words. */
  readonly reason: string;
  /** Advice for a person, in a sentence. */
  readonly remedy: string;
}

/** The columns of a source's row that decide. */
type Facts = Pick<
  SourceRow,
  "lost" | "lostKind" | "halted" | "haltCode" | "haltUnit" | "haltRoot" | "held" | "holdReason"
>;

/** Returns what waits for a person in a source, most important first; empty if nothing does. Pure. */
export function blockersOf(facts: Facts): readonly Blocker[] {
  const { lost, lostKind, halted, held, holdReason } = facts;
  const found: Blocker[] = [];
  if (lost !== null) found.push({ kind: "lost", reason: lost, remedy: REMEDIES[lostKind ?? "lost"] });
  if (halted !== null) found.push({ kind: "halted", reason: halted, remedy: haltRemedy(facts) });
  if (held > 0)
    found.push({
      kind: "held",
      reason: holdReason ?? "deletes held before",
      remedy: "put the files back to keep their documents, or run `kbsync approve` to delete them",
    });
  return found;
}

/** Returns why nothing of a source is sent, for the state of its files. Pure. */
export function senderBlocker(facts: Facts & Pick<SourceRow, "paused">): SenderBlocker | undefined {
  const halt = blockersOf(facts).find(({ kind }) => kind !== "held");
  if (halt !== undefined)
    return { code: "halted", reason: `halted, nothing is sent: ${halt.reason} (${halt.remedy})` };
  return facts.paused ? { code: "paused", reason: "the source is paused until `kbsync resume`" } : undefined;
}

const REMEDIES: Readonly<Record<HoldKind, string>> = {
  lost: "restore the service's data, then it continues by itself; or run `kbsync approve` to send again what is missing",
  unclear:
    "wait until the service's answers are clear, then it continues by itself; or run `kbsync approve` to send the files anyway, which may create some of them twice",
  identity:
    "stop the other one if it still writes; `kbsync approve` takes the documents over, whose texts then follow these files",
};

/** A person may agree to another folder. With a missing or unreadable one there is nothing to agree to. */
function haltRemedy({ haltRoot, haltCode, haltUnit }: Facts): string {
  if (haltRoot !== undefined)
    return "mount or put back the right folder, then it continues by itself; or run `kbsync approve` to accept this one";
  switch (haltCode) {
    case "not-shown":
      return `when the folder is there, \`systemctl restart ${shellWord(haltUnit ?? "")}\` shows it to the unit; a folder that is new in the configuration needs \`kbsync service install\``;
    case "unreadable":
      return "check the folder's owner and mode; it continues by itself when it can be read";
    case "missing":
    case null:
      return "mount it or put it back; it continues by itself when the folder is there";
  }
}
