import type { KnownFile, RootIdentity, Scan } from "./model.ts";

/** What the brakes know of a source beside the plan. */
export interface BrakeFacts {
  /** Identity of the root when it was last agreed; undefined before the first pass. */
  readonly rootBefore: RootIdentity | undefined;
  /** Files with a resource before this pass, those that failed or are parked included. */
  readonly filesBefore: number;
  /** How many of these have work in flight and are gone as well: their deletes are decided when that ends, and count now. */
  readonly missingBusy: number;
  /** Files that are gone while their first resource is being made: they are among no others yet. */
  readonly missingNew: number;
  /** Deletes of this source done within the last minutes: many small batches are one large one. */
  readonly deletedLately: number;
  /** Rows of the source that are held, wherever they lie: a look at a part of it sees those of that part alone. */
  readonly heldBefore: number;
  readonly holdDeletesOver: number;
  readonly holdDeletesPercent: number;
  /** Why rows are held already. */
  readonly holdReason: string | undefined;
  /** What a person agreed to when the source stood still before another root. */
  readonly approval: HaltApproval | undefined;
  /** Missing rows, by id, whose path the rules leave out: their file may well be there. */
  readonly leftOut: ReadonlySet<number>;
  /**
   * Resources that rows of this source got within the last minutes and still have. Undefined where the root's identity
   * is sure, or so few are missing that nothing hangs on it.
   */
  readonly madeLately: ReadonlySet<string> | undefined;
}

/** A person's word on a source that stood still: this root, with so many files missing, and no more. */
export interface HaltApproval {
  readonly root: RootIdentity;
  readonly files: number;
}

/** What the brakes let through. */
export interface Braked {
  readonly deletes: readonly KnownFile[];
  readonly held: readonly KnownFile[];
  /** How many of `deletes` count against the limits of later ones: nobody agreed to them. */
  readonly counted: number;
  /** Why deletes are held, for a person; undefined when none is. */
  readonly reason: string | undefined;
  /** The folder is not the one that was agreed: nothing at all may be sent for this source. */
  readonly halted: boolean;
}

/** Deletes within this time count together against the limits. */
export const LATELY_MS = 10 * 60_000;

/**
 * In a folder of fewer files than twice `holdDeletesOver` the limit is half of its files, but never less than this: so
 * few are deleted by hand every day.
 */
const SMALL_FOLDER_OVER = 10;

/** An empty folder is suspect when it held at least this many files; one file alone is deleted as any other. */
const EMPTIED_FILES_MIN = 2;

/**
 * So many files that were known before may go at once though others have come, where the root's identity does not tell a
 * folder from another one that was made in its place. Fewer are renamed and rewritten in one stroke every day.
 */
export const REPLACED_FILES_MIN = 4;

/** Decides which deletes may go. Pure. `gone` are rows with a resource whose file is gone. */
export function brake(scan: Scan, gone: readonly KnownFile[], facts: BrakeFacts): Braked {
  if (scan.root === undefined) return halt("the folder is missing or is no folder", []);
  const doomed = gone.filter(({ state }) => state === "doomed");
  const open = gone.filter(({ state }) => state !== "doomed");
  const isNew = open.filter(({ state }) => state !== "held");
  const { rootBefore, approval } = facts;
  const isAgreed = approval !== undefined && isSameRoot(approval.root, scan.root);
  const missing = open.length + facts.missingBusy + facts.missingNew;
  if (missing === 0 || (isAgreed && open.length <= approval.files)) return free(gone);

  // What a person agreed to is what was missing then; whatever else is missing now waits for another word.
  const outgrown = isAgreed
    ? `more is missing than was agreed to (${filesOf(approval.files)} then, ${open.length} now): `
    : "";
  const isSame = rootBefore === undefined || isSameRoot(rootBefore, scan.root);
  if (!isSame && rootBefore.dev !== scan.root.dev) {
    return halt(`${outgrown}the folder is on another device than before; is a disk not mounted?`, open);
  }
  // Another folder without a single known file is another folder, however few these were.
  if (!isSame && open.length + facts.missingBusy >= facts.filesBefore)
    return halt(`${outgrown}the folder was replaced by another one that holds none of its files`, open);
  if (open.length === 0) return free(gone);
  const noneLeft = losesAll(open.length + facts.missingBusy, facts);
  // What a person was told stays as it is for as long as nothing new joins what is held.
  const told = isNew.length === 0 ? facts.holdReason : undefined;
  const emptied = scan.scope === undefined && scan.entries.length + scan.refused.length === 0;
  if (noneLeft && emptied) {
    const reason = told ?? rulesReason(open, facts) ?? "the folder was emptied";
    return { deletes: doomed, counted: 0, held: open, reason, halted: false };
  }

  if (isNew.length > 0 && losesAllBefore(open, facts)) {
    const reason = rulesReason(open, facts) ?? "all files that were known are gone, and others have come";
    return { deletes: doomed, counted: 0, held: open, reason, halted: false };
  }
  // What is held elsewhere is of the same mass: a scan of a part decides as one of the whole.
  const count = heldWith(scan, open, isNew.length, facts) + facts.missingBusy;
  if (isMass(count, facts)) {
    const reason = told ?? rulesReason(open, facts) ?? massReason(count, facts);
    return { deletes: doomed, counted: 0, held: open, reason, halted: false };
  }
  // What is held stays so until a person agrees, also when it has become few.
  const held = open.filter(({ state }) => state === "held");
  return {
    deletes: [...doomed, ...isNew],
    counted: isNew.length,
    held,
    reason: held.length === 0 ? undefined : (facts.holdReason ?? "deletes held before"),
    halted: false,
  };
}

/** What the limits are measured by. */
type LimitFacts = Pick<
  BrakeFacts,
  "filesBefore" | "deletedLately" | "holdDeletesOver" | "holdDeletesPercent"
>;

/**
 * Whether missing files may come to be held, for the limits or because none is left: then it is worth finding out which
 * of them the rules leave out.
 */
export function mayHold(
  gone: readonly KnownFile[],
  facts: LimitFacts & KnownBefore & Pick<BrakeFacts, "missingBusy" | "heldBefore">,
): boolean {
  const open = gone.filter(({ state }) => state !== "doomed");
  const added = open.filter(({ state }) => state !== "held").length;
  const count = Math.max(open.length, facts.heldBefore + added) + facts.missingBusy;
  return added > 0 && (losesAll(count, facts) || losesAllBefore(open, facts) || isMass(count, facts));
}

/**
 * Whether every file that has a resource is missing. A partial scan cannot tell whether the folder was emptied then, so
 * the whole source must be scanned.
 */
export function losesAll(missing: number, { filesBefore }: Pick<BrakeFacts, "filesBefore">): boolean {
  return missing >= filesBefore && filesBefore >= EMPTIED_FILES_MIN;
}

/** What tells files that were known before from those that have just come. */
type KnownBefore = Pick<BrakeFacts, "filesBefore" | "madeLately">;

/**
 * Whether every file that was known some minutes ago is missing, and these are more than a few. New ones in their place,
 * acknowledged already, do not show that the folder is still the same.
 */
export function losesAllBefore(
  missing: readonly KnownFile[],
  { filesBefore, madeLately }: KnownBefore,
): boolean {
  if (madeLately === undefined) return false;
  const known = missing.filter(({ docId, state }) => state !== "doomed" && !isIn(madeLately, docId));
  if (known.every(({ state }) => state === "held")) return false;
  return known.length >= REPLACED_FILES_MIN && known.length >= filesBefore - madeLately.size;
}

function isIn(docs: ReadonlySet<string>, docId: string | null): boolean {
  return docId !== null && docs.has(docId);
}

/**
 * Whether two looks saw the very same folder. A disk that is plugged in again has another device number: where the time of
 * birth is known (of one of two equal numbers it is that of both), it proves that the folder is the same.
 */
export function isSameRoot(a: RootIdentity | undefined, b: RootIdentity | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.ino === b.ino && (a.dev === b.dev || a.born === true || b.born === true);
}

/** Many deletes, and a large part of the source: `limitOf` scales with the folder. */
function isMass(count: number, facts: LimitFacts): boolean {
  return count + facts.deletedLately > limitOf(facts) && percentOf(count, facts) > facts.holdDeletesPercent;
}

/** So many deletes may go whatever part of the source they are. */
function limitOf({ holdDeletesOver, filesBefore, deletedLately }: LimitFacts): number {
  return Math.min(holdDeletesOver, Math.max(SMALL_FOLDER_OVER, (filesBefore + deletedLately) / 2));
}

/** Part of the source that goes, with what went lately. */
function percentOf(count: number, { deletedLately, filesBefore }: LimitFacts): number {
  return (100 * (count + deletedLately)) / (filesBefore + deletedLately);
}

/** How many are held after this look, which adds so many. */
function heldWith(scan: Scan, open: readonly KnownFile[], added: number, { heldBefore }: BrakeFacts): number {
  return scan.scope === undefined ? open.length : Math.max(open.length, heldBefore + added);
}

function massReason(count: number, facts: LimitFacts): string {
  const percent = `${Math.round(percentOf(count, facts))} % of the source`;
  const before = facts.deletedLately;
  if (before === 0) return `${count} deletes at once, ${percent}`;
  return `${count} ${count === 1 ? "delete" : "deletes"} after ${before} within ${LATELY_MS / 60_000} minutes, ${percent}`;
}

/** Undefined: the rules leave none of them out. */
function rulesReason(open: readonly KnownFile[], { leftOut }: BrakeFacts): string | undefined {
  const out = open.filter(({ id }) => leftOut.has(id)).length;
  if (out === 0) return undefined;
  const words = `the rules leave out ${filesOf(out)} that ${out === 1 ? "was" : "were"} in agreement`;
  const rest = open.length - out;
  return rest === 0 ? words : `${words}, and ${filesOf(rest)} more ${rest === 1 ? "is" : "are"} gone`;
}

function filesOf(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}

function free(deletes: readonly KnownFile[]): Braked {
  return { deletes, counted: 0, held: [], reason: undefined, halted: false };
}

function halt(reason: string, held: readonly KnownFile[]): Braked {
  return { deletes: [], counted: 0, held, reason, halted: true };
}
