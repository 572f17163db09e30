import type { NextStep, OnDisk, OpenIntent } from "../../../wire/daemon-files.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import { observe } from "../../send/observe.ts";
import type { ReadOutcome } from "../../scan/read/outcome.ts";
import { decide } from "../../plan/decide.ts";
import { type Difference, EMPTY_FILE, type RelativePath } from "../../plan/model.ts";
import { isBlank } from "../../plan/reconcile.ts";
import type { Signature } from "../../plan/marker.ts";
import type { SenderBlocker } from "../../plan/version.ts";
import type { Activity } from "../../ledger/activity.ts";
import type { FileRow } from "../../ledger/files/rows.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import type { Verdict } from "../../scan/rules/rules.ts";
import { codeWords } from "../../../lib/system-error.ts";

/** The ledger's records of a path. */
export interface Known {
  /** Undefined: the source was never synced. */
  readonly row: SourceRow | undefined;
  /** As in the markers that were sent. */
  readonly signature: Signature;
  /** The path's row that is not held. */
  readonly living: FileRow | undefined;
  readonly held: readonly FileRow[];
  readonly intents: readonly OpenIntent[];
  readonly activity: readonly Omit<Activity, "source">[];
}

/** The facts of the file and its source. */
export interface NextFacts {
  readonly path: RelativePath;
  readonly verdict: Verdict;
  readonly disk: Pick<OnDisk, "what">;
  /** Disk against ledger, as far as it concerns this path. Undefined: the source's folder is missing. */
  readonly difference: Difference | undefined;
  /** Undefined: nothing was ever synced. */
  readonly known: Pick<Known, "held" | "intents" | "living" | "row"> | undefined;
  /** The source deletes nothing. */
  readonly keeps: boolean;
  /** What reading the file decides, if a pass would read it. */
  readonly afterReading: NextStep | undefined;
}

/** Adds why nothing of its source is sent now to the next step of a file. Pure. */
export function withBlocker(step: NextStep, blocker: SenderBlocker | undefined): NextStep {
  if (blocker === undefined || step.action === "nothing") return step;
  return { action: "wait", why: `${blocker.reason}; after that: ${step.action}, ${step.why}` };
}

/** Decides what the next pass that sends would do with one file, and why. Pure. */
export function nextStep(facts: NextFacts): NextStep {
  const { path, difference, known, verdict, disk } = facts;
  if (difference === undefined)
    return { action: "nothing", why: "the source's folder is missing, so nothing is known of its files" };
  const intents = known?.intents ?? [];
  if (intents.some(({ kind }) => kind === "create"))
    return {
      action: "wait",
      why: "it was sent, and is not acknowledged yet; without an answer, the service's list is checked before it is sent again",
    };
  const refusal = difference.refused.find((each) => each.path === path);
  if (refusal !== undefined) return { action: "refuse", why: refusal.reason };
  const skip = difference.skipped.find(({ entry }) => entry.path === path);
  if (skip !== undefined) return { action: "skip", why: skip.reason };
  if (difference.candidates.some(({ entry }) => entry.path === path))
    return facts.afterReading ?? { action: "wait", why: "it is read first" };
  if (difference.gone.some((row) => row.path === path)) return goneStep(facts);
  if (difference.forgotten.some((row) => row.path === path))
    return { action: "nothing", why: "the file is gone, and there is no document of it" };
  if (difference.returned.some((row) => row.path === path))
    return { action: "nothing", why: "the file is back as it was, so its held delete is dropped" };
  if (intents.some(({ kind }) => kind === "delete"))
    return { action: "delete", why: "its document is still to be deleted" };
  if (known?.living !== undefined) return unchangedStep(known.living);
  if (disk.what !== undefined)
    return { action: "nothing", why: `it is ${disk.what}; only files and folders are synced` };
  return verdict.wanted
    ? { action: "nothing", why: "there is no such file, and the service has no document of it" }
    : { action: "nothing", why: verdict.reason };
}

function unchangedStep({ state, error, retryAtMs }: FileRow): NextStep {
  const reason = error?.message ?? "no reason noted";
  switch (state) {
    case "agreed":
      return { action: "nothing", why: "nothing has changed since it was synced" };
    case "failed":
      return {
        action: "nothing",
        why: `it failed (${reason}) and has not changed since; \`kbsync retry\` tries it anyway`,
      };
    case "skipped":
      return { action: "nothing", why: `it is left out: ${reason}` };
    case "parked":
      return { action: "wait", why: `it is postponed, and is tried again ${retryWords(retryAtMs)}` };
    case "unsure":
      return { action: "update", why: "an update was sent, and is not acknowledged yet" };
    case "held":
    case "doomed":
      return { action: "hold", why: "its delete waits for approval" };
  }
}

function retryWords(retryAtMs: number | null): string {
  return retryAtMs === null ? "later" : `at ${new Date(retryAtMs).toISOString()}`;
}

function goneStep({ verdict, known, keeps }: NextFacts): NextStep {
  const gone = verdict.wanted ? "the file is gone" : `the rules leave it out now (${verdict.reason})`;
  if (keeps)
    return {
      action: "nothing",
      why: `${gone}, and its document stays: the source has \`"deletes": "never"\``,
    };
  const held = known?.held ?? [];
  if (held.length === 0)
    return {
      action: "delete",
      why: `${gone}, and its document is still there; too many deletes at once wait for approval`,
    };
  const isApproved = held.every(({ state }) => state === "doomed");
  const reason = isApproved ? "it was approved" : (known?.row?.holdReason ?? "held before");
  return { action: "hold", why: `${gone}; its delete waits for \`kbsync approve\`: ${reason}` };
}

/** A file that a pass has read. */
export interface ReadFacts {
  /** A document has its marker. */
  readonly read: ReadOutcome;
  /** Absent if it is no document, or the service takes none. */
  readonly metadata?: UserMetadata | undefined;
  readonly row: FileRow | undefined;
  /** Where the file was before it moved here. */
  readonly from: RelativePath | undefined;
}

/** Decides what a pass does with a file that it has read. Pure. */
export function stepAfterReading({ read, metadata, row, from }: ReadFacts): {
  readonly action: ReturnType<typeof decide> | "nothing" | "refuse" | "skip" | "wait";
  readonly why: string;
} {
  switch (read.kind) {
    case "torn":
      return { action: "wait", why: "it changed while it was read: it is read again once it has settled" };
    case "gone":
      return { action: "nothing", why: "it has just vanished" };
    case "skipped":
      return { action: row === undefined || row.docId === null ? "skip" : "refuse", why: read.reason };
    case "refused":
      return { action: "refuse", why: read.reason };
    case "unreadable":
      return { action: "wait", why: `cannot be read: ${codeWords(read.code)}` };
    case "document":
      break;
  }
  if (isBlank(read.document.entry, row)) return { action: "skip", why: EMPTY_FILE };
  const action = decide(observe(read.document, 0, 0, metadata), row, from !== undefined);
  const moved = from === undefined ? "" : ` (it was ${from})`;
  const parked =
    row?.state === "parked" ? `; it was postponed, and is tried again ${retryWords(row.retryAtMs)}` : "";
  return { action, why: `${ACTION_WORDS[action]}${moved}${parked}` };
}

const ACTION_WORDS: Readonly<Record<ReturnType<typeof decide>, string>> = {
  create: "the service has no document of it",
  update: "its content differs from what was sent",
  replace: "its kind, collection, owner or settings changed, which no update can do",
  retitle: "its title, description or metadata changed, its content did not",
  move: "it is a known file under another path: its document keeps its id",
  touch: "its times or the rules changed, but nothing that is sent",
};
