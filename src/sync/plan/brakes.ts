import { counted } from "../../lib/counted.ts";
import type { KnownFile, RootIdentity, Scan } from "./model.ts";

/** The facts of a source that the brakes need besides the plan. */
export interface BrakeFacts {
  /** Identity of the root at the last agreement; undefined before the first pass. */
  readonly rootBefore: RootIdentity | undefined;
  /** Files with a resource before this pass, including failed and parked ones. */
  readonly filesBefore: number;
  /** How many of these were found by a comparison with the service's list and not read yet. */
  readonly unread: number;
  /**
   * How many of these are gone while they have work in flight. Their deletes are decided when that work ends, and count
   * now.
   */
  readonly missingBusy: number;
  /** How many of `filesBefore` the scan could not read: nothing is known of them. */
  readonly hidden: number;
  /** Deletes of this source in the last minutes: many small batches count as one large one. */
  readonly deletedLately: number;
  /** Held rows anywhere in the source. A partial scan sees only those in its part. */
  readonly heldBefore: number;
  readonly holdDeletesOver: number;
  readonly holdDeletesPercent: number;
  /** Why rows are held already. */
  readonly holdReason: string | undefined;
  /** The approval of a person when the source was halted by another root. */
  readonly approval: HaltApproval | undefined;
  /** The source deletes nothing: every row stays held, and waits for nobody, except those in `others`. */
  readonly keeps: boolean;
  /** Missing rows, by id, whose file belongs to another source, which has a document of it. */
  readonly others: ReadonlySet<number>;
  /** Missing rows, by id, whose path the rules leave out: their file may well exist. */
  readonly leftOut: ReadonlySet<number>;
}

/** A person's approval of a halted source: this root, with so many missing files and no more. */
export interface HaltApproval {
  readonly root: RootIdentity;
  readonly files: number;
}

/** The actions that the brakes let through. */
export interface Braked {
  readonly deletes: readonly KnownFile[];
  readonly held: readonly KnownFile[];
  /** How many of `deletes` count against later limits: nobody agreed to them. */
  readonly counted: number;
  /** Why deletes are held, for a person; undefined when none is held. */
  readonly reason: string | undefined;
  /** The folder is not the one that was agreed: nothing at all may be sent for this source. */
  readonly halted: boolean;
}

/** Deletes within this time count together against the limits. */
export const LATELY_MS = 10 * 60_000;

/**
 * In a folder of fewer than twice `holdDeletesOver` files, the limit is half of its files but never less than this:
 * people delete so few by hand every day.
 */
const SMALL_FOLDER_OVER = 10;

/** An empty folder is suspect if it held at least this many files. A single file is deleted like any other. */
const EMPTIED_FILES_MIN = 2;

/** Decides which deletes may proceed. Pure. `gone` are rows with a resource whose file is gone. */
export function brake(scan: Scan, gone: readonly KnownFile[], facts: BrakeFacts): Braked {
  if (!facts.keeps) return judge(scan, gone, facts);
  // What is gone for long says nothing about the folder.
  const judged = judge(
    scan,
    gone.filter(({ state }) => state !== "held"),
    facts,
  );
  if (judged.halted) return judged;
  const isOut = ({ id, state }: KnownFile): boolean => state === "doomed" || facts.others.has(id);
  const deletes = gone.filter(isOut);
  const held = gone.filter((row) => !isOut(row));
  return { deletes, held, counted: 0, reason: undefined, halted: false };
}

function judge(scan: Scan, gone: readonly KnownFile[], facts: BrakeFacts): Braked {
  if (scan.root === undefined) return halt("the folder is missing or is not a folder", []);
  const doomed = gone.filter(({ state }) => state === "doomed");
  const open = gone.filter(({ state }) => state !== "doomed");
  const isNew = open.filter(({ state }) => state !== "held");
  const { rootBefore, approval } = facts;
  const isAgreed = approval !== undefined && isSameRoot(approval.root, scan.root);
  const missing = open.length + facts.missingBusy;
  if (missing === 0 || (isAgreed && open.length <= approval.files)) return free(gone);

  // A person agreed to what was missing then. If more is missing now, that needs another approval.
  const outgrown = isAgreed
    ? `more is missing than was agreed to (${counted(approval.files, "file")} then, ${open.length} now): `
    : "";
  const isSame = rootBefore === undefined || isSameRoot(rootBefore, scan.root);
  if (!isSame && rootBefore.dev !== scan.root.dev) {
    return halt(`${outgrown}the folder is on another device than before; is a disk not mounted?`, open);
  }
  // A new folder without a single known file is another folder, however few there were.
  if (!isSame && open.length + facts.missingBusy + facts.hidden >= facts.filesBefore - facts.unread)
    return halt(`${outgrown}the folder was replaced by another one that holds none of its files`, open);
  if (open.length === 0) return free(gone);
  const noneLeft = losesAll(open.length + facts.missingBusy, facts);
  // The reason shown to a person stays the same until new rows join the held ones.
  const shown = isNew.length === 0 ? facts.holdReason : undefined;
  const emptied = scan.scope === undefined && scan.entries.length + scan.refused.length === 0;
  if (noneLeft && emptied) {
    const reason = shown ?? rulesReason(open, facts) ?? "the folder was emptied";
    return { deletes: doomed, counted: 0, held: open, reason, halted: false };
  }

  // Rows held elsewhere count too, so that a partial scan decides as a whole one does.
  const count = heldWith(scan, open, isNew.length, facts) + facts.missingBusy;
  if (isMass(count, facts)) {
    const reason = shown ?? rulesReason(open, facts) ?? massReason(count, facts);
    return { deletes: doomed, counted: 0, held: open, reason, halted: false };
  }
  // Held deletes stay held until a person agrees, even after they have become few.
  const held = open.filter(({ state }) => state === "held");
  return {
    deletes: [...doomed, ...isNew],
    counted: isNew.length,
    held,
    reason: held.length === 0 ? undefined : (facts.holdReason ?? "deletes held before"),
    halted: false,
  };
}

/** The figures that the limits depend on. */
type LimitFacts = Pick<
  BrakeFacts,
  "filesBefore" | "deletedLately" | "holdDeletesOver" | "holdDeletesPercent"
>;

/**
 * Reports whether missing files may become held, by the limits or because none is left. Only then is it worth finding
 * out which of them the rules leave out.
 */
export function mayHold(
  gone: readonly KnownFile[],
  facts: LimitFacts & Pick<BrakeFacts, "missingBusy" | "heldBefore">,
): boolean {
  const open = gone.filter(({ state }) => state !== "doomed");
  const added = open.filter(({ state }) => state !== "held").length;
  const count = Math.max(open.length, facts.heldBefore + added) + facts.missingBusy;
  return added > 0 && (losesAll(count, facts) || isMass(count, facts));
}

/**
 * Reports whether every file that has a resource is missing. A partial scan cannot show that the folder was emptied, so
 * the whole source must be scanned then.
 */
export function losesAll(missing: number, { filesBefore }: Pick<BrakeFacts, "filesBefore">): boolean {
  return missing >= filesBefore && filesBefore >= EMPTIED_FILES_MIN;
}

/**
 * Reports whether two checks saw the very same folder. A disk that is plugged in again has another device number. Where
 * the time of birth is known, equal numbers prove that the folder is the same. (Of two equal numbers, if one includes
 * the time of birth, so does the other.)
 */
export function isSameRoot(a: RootIdentity | undefined, b: RootIdentity | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.ino === b.ino && (a.dev === b.dev || a.born === true || b.born === true);
}

/** Many deletes, and a large part of the source. `limitOf` scales with the folder. */
function isMass(count: number, facts: LimitFacts): boolean {
  return count + facts.deletedLately > limitOf(facts) && percentOf(count, facts) > facts.holdDeletesPercent;
}

/** Number of deletes that may proceed whatever part of the source they are. */
function limitOf({ holdDeletesOver, filesBefore, deletedLately }: LimitFacts): number {
  return Math.min(holdDeletesOver, Math.max(SMALL_FOLDER_OVER, (filesBefore + deletedLately) / 2));
}

/** Percentage of the source that goes, including recent deletes. */
function percentOf(count: number, { deletedLately, filesBefore }: LimitFacts): number {
  return (100 * (count + deletedLately)) / (filesBefore + deletedLately);
}

/** Number of rows held after this scan, which adds `added`. */
function heldWith(scan: Scan, open: readonly KnownFile[], added: number, { heldBefore }: BrakeFacts): number {
  return scan.scope === undefined ? open.length : Math.max(open.length, heldBefore + added);
}

function massReason(count: number, facts: LimitFacts): string {
  const percent = `${Math.round(percentOf(count, facts))} % of the source`;
  const before = facts.deletedLately;
  if (before === 0) return `${counted(count, "delete")} at once, ${percent}`;
  return `${counted(count, "delete")} after ${before} within ${LATELY_MS / 60_000} minutes, ${percent}`;
}

/** Undefined: the rules leave none of them out. */
function rulesReason(open: readonly KnownFile[], { leftOut }: BrakeFacts): string | undefined {
  const out = open.filter(({ id }) => leftOut.has(id)).length;
  if (out === 0) return undefined;
  const words = `the rules leave out ${counted(out, "file that was", "files that were")} in agreement`;
  const rest = open.length - out;
  return rest === 0 ? words : `${words}, and ${counted(rest, "file more is", "files more are")} gone`;
}

function free(deletes: readonly KnownFile[]): Braked {
  return { deletes, counted: 0, held: [], reason: undefined, halted: false };
}

function halt(reason: string, held: readonly KnownFile[]): Braked {
  return { deletes: [], counted: 0, held, reason, halted: true };
}
