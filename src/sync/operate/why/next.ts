import type { NextStep, OpenIntent } from "../../../wire/daemon-files.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import { observe } from "../../send/observe.ts";
import type { ReadOutcome } from "../../scan/read/outcome.ts";
import { decide } from "../../plan/decide.ts";
import type { Difference, KnownFile, LedgerFile, RelativePath } from "../../plan/model.ts";
import { isBlank } from "../../plan/reconcile.ts";
import type { SenderBlocker } from "../../plan/version.ts";
import { codeWords } from "../../../lib/system-error.ts";

/** The facts of the file and its source. */
export interface NextFacts {
  readonly path: RelativePath;
  readonly wanted: { readonly wanted: true } | { readonly wanted: false; readonly reason: string };
  /** Description of what exists at the path, if it is not a file, folder or link. */
  readonly oddity: string | undefined;
  /** Disk against ledger, as far as it concerns this path. Undefined: the source's folder is missing. */
  readonly difference: Difference | undefined;
  /** The path's row that is not held. */
  readonly living: LedgerFile | undefined;
  readonly heldReason: string | undefined;
  /** The source deletes nothing. */
  readonly keeps: boolean;
  /** When a parked file is tried again, for a person. */
  readonly retryWords: string | undefined;
  readonly troubleMessage: string | undefined;
  readonly intents: readonly OpenIntent[];
  /** Returns the whole row of a known file. */
  readonly rowOf: (known: KnownFile) => LedgerFile | undefined;
  /** The result of reading the file; undefined if it was not read. */
  readonly read: ReadOutcome | undefined;
  /** Its metadata. Absent if it was not read, or the service takes none. */
  readonly metadata?: UserMetadata | undefined;
}

/** Adds why nothing of its source is sent now to the next step of a file. Pure. */
export function withBlocker(step: NextStep, blocker: SenderBlocker | undefined): NextStep {
  if (blocker === undefined || step.action === "nothing") return step;
  return { action: "wait", why: `${blocker.reason}; after that: ${step.action}, ${step.why}` };
}

/** Decides what the next pass that sends would do with one file, and why. Pure. */
export function nextStep(facts: NextFacts): NextStep {
  const { path, difference, living } = facts;
  if (difference === undefined)
    return { action: "nothing", why: "the source's folder is missing, so nothing is known of its files" };
  const open = facts.intents.find(({ kind }) => kind === "create");
  if (open !== undefined)
    return {
      action: "wait",
      why: "it was sent, and is not acknowledged yet; without an answer, the service's list is checked before it is sent again",
    };
  const refusal = difference.refused.find((each) => each.path === path);
  if (refusal !== undefined) return { action: "refuse", why: refusal.reason };
  const skip = difference.skipped.find(({ entry }) => entry.path === path);
  if (skip !== undefined) return { action: "skip", why: skip.reason };
  const candidate = difference.candidates.find(({ entry }) => entry.path === path);
  if (candidate !== undefined) return afterReading(facts, candidate.known, candidate.from);
  if (difference.gone.some((row) => row.path === path)) return goneStep(facts);
  if (difference.forgotten.some((row) => row.path === path))
    return {
      action: "nothing",
      why: "the file is gone, and there is no document of it",
    };
  if (difference.returned.some((row) => row.path === path))
    return { action: "nothing", why: "the file is back as it was, so its held delete is dropped" };
  if (facts.intents.some(({ kind }) => kind === "delete"))
    return { action: "delete", why: "its document is still to be deleted" };
  if (living === undefined) {
    if (facts.oddity !== undefined)
      return { action: "nothing", why: `it is ${facts.oddity}; only files, folders and links are synced` };
    return facts.wanted.wanted
      ? { action: "nothing", why: "there is no such file, and the service has no document of it" }
      : { action: "nothing", why: facts.wanted.reason };
  }
  return unchangedStep(facts, living);
}

function unchangedStep({ retryWords, troubleMessage }: NextFacts, row: LedgerFile): NextStep {
  switch (row.state) {
    case "agreed":
      return {
        action: "nothing",
        why: "nothing has changed since it was synced",
      };
    case "failed":
      return {
        action: "nothing",
        why: `it failed (${troubleMessage ?? "no reason noted"}) and has not changed since; \`kbsync retry\` tries it anyway`,
      };
    case "skipped":
      return { action: "nothing", why: `it is left out: ${troubleMessage ?? "no reason noted"}` };
    case "parked":
      return { action: "wait", why: `it is postponed, ${retryWords ?? "and is tried again later"}` };
    case "unsure":
      return { action: "update", why: "an update was sent, and is not acknowledged yet" };
    case "held":
    case "doomed":
      return { action: "hold", why: "its delete waits for approval" };
  }
}

function goneStep({ wanted, heldReason, keeps }: NextFacts): NextStep {
  const gone = wanted.wanted ? "the file is gone" : `the rules leave it out now (${wanted.reason})`;
  if (keeps)
    return {
      action: "nothing",
      why: `${gone}, and its document stays: the source has \`"deletes": "never"\``,
    };
  return heldReason === undefined
    ? {
        action: "delete",
        why: `${gone}, and its document is still there; too many deletes at once wait for approval`,
      }
    : { action: "hold", why: `${gone}; its delete waits for \`kbsync approve\`: ${heldReason}` };
}

function afterReading(
  { read, metadata, rowOf, retryWords }: NextFacts,
  known: KnownFile | undefined,
  from: RelativePath | undefined,
): NextStep {
  if (read === undefined) return { action: "wait", why: "it is read first" };
  switch (read.kind) {
    case "torn":
      return { action: "wait", why: "it changed while it was read: it is read again once it has settled" };
    case "gone":
      return { action: "nothing", why: "it has just vanished" };
    case "skipped":
      return {
        action: known?.docId === undefined || known.docId === null ? "skip" : "refuse",
        why: read.reason,
      };
    case "refused":
      return { action: "refuse", why: read.reason };
    case "unreadable":
      return { action: "wait", why: `it cannot be read: ${codeWords(read.code)}` };
    case "document":
      break;
  }
  const row = known === undefined ? undefined : rowOf(known);
  if (isBlank(read.document.entry, row)) return { action: "skip", why: "the file is empty" };
  const action = decide(observe(read.document, 0, 0, metadata), row, from !== undefined);
  const parked =
    row?.state === "parked" && retryWords !== undefined ? `; it was postponed, ${retryWords}` : "";
  return { action, why: `${ACTION_WORDS[action]}${from === undefined ? "" : ` (it was ${from})`}${parked}` };
}

const ACTION_WORDS: Readonly<Record<ReturnType<typeof decide>, string>> = {
  create: "the service has no document of it",
  update: "its content differs from what was sent",
  replace: "its kind, collection, owner or settings changed, which no update can do",
  retitle: "its title, description or metadata changed, its content did not",
  move: "it is a known file under another path: its document keeps its id",
  touch: "its times or the rules changed, but nothing that is sent",
};
