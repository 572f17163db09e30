import type { KnownFile, RootIdentity, Scan } from "./model.ts";

/** What the brakes know of a source beside the plan. */
export interface BrakeFacts {
  /** Identity of the root when it was last agreed; undefined before the first pass. */
  readonly rootBefore: RootIdentity | undefined;
  /** Files with a resource, before this pass. */
  readonly filesBefore: number;
  /** Deletes of this source done within the last minutes: many small batches are one large one. */
  readonly deletedLately: number;
  readonly holdDeletesOver: number;
  readonly holdDeletesPercent: number;
  /** Why rows are held already. */
  readonly holdReason: string | undefined;
  /** A person agreed to what the brakes would hold. */
  readonly approved: boolean;
}

/** What the brakes let through. */
export interface Braked {
  readonly deletes: readonly KnownFile[];
  readonly held: readonly KnownFile[];
  /** Why deletes are held, for a person; undefined when none is. */
  readonly reason: string | undefined;
  /** The folder is not the one that was agreed: nothing at all may be sent for this source. */
  readonly halted: boolean;
}

/** Deletes within this time count together against the limits. */
export const LATELY_MS = 10 * 60_000;

/** An empty folder is suspect when it held at least this many files; one file alone is deleted as any other. */
const EMPTIED_FILES_MIN = 2;

/** Decides which deletes may go. Pure. `gone` are rows with a resource whose file is gone. */
export function brake(scan: Scan, gone: readonly KnownFile[], facts: BrakeFacts): Braked {
  if (scan.root === undefined) return halt("the folder is missing or is no folder", []);
  if (facts.approved) return free(gone);
  const doomed = gone.filter(({ state }) => state === "doomed");
  const open = gone.filter(({ state }) => state !== "doomed");
  const isNew = open.filter(({ state }) => state !== "held");
  if (open.length === 0) return free(gone);

  const { rootBefore } = facts;
  if (rootBefore !== undefined && rootBefore.dev !== scan.root.dev) {
    return halt("the folder is on another device than before; is a disk not mounted?", open);
  }
  const replaced = rootBefore !== undefined && rootBefore.ino !== scan.root.ino;
  const noneLeft = losesAll(open, facts);
  if (noneLeft && replaced)
    return halt("the folder was replaced by another one that holds none of its files", open);
  const emptied = scan.scope === undefined && scan.entries.length + scan.refused.length === 0;
  if (noneLeft && emptied)
    return { deletes: doomed, held: open, reason: "the folder was emptied", halted: false };

  const lately = open.length + facts.deletedLately;
  const percent = (100 * lately) / (facts.filesBefore + facts.deletedLately);
  if (lately > facts.holdDeletesOver && percent > facts.holdDeletesPercent) {
    const reason = `${open.length} deletes at once, ${Math.round(percent)} % of the source`;
    return { deletes: doomed, held: open, reason, halted: false };
  }
  // What is held stays so until a person agrees, also when it has become few.
  const held = open.filter(({ state }) => state === "held");
  return {
    deletes: [...doomed, ...isNew],
    held,
    reason: held.length === 0 ? undefined : (facts.holdReason ?? "deletes held before"),
    halted: false,
  };
}

/**
 * Whether every file that has a resource is missing. A partial scan cannot tell whether the folder was emptied then, so
 * the whole source must be scanned.
 */
export function losesAll(
  gone: readonly KnownFile[],
  { filesBefore }: Pick<BrakeFacts, "filesBefore">,
): boolean {
  return gone.length >= filesBefore && filesBefore >= EMPTIED_FILES_MIN;
}

function free(deletes: readonly KnownFile[]): Braked {
  return { deletes, held: [], reason: undefined, halted: false };
}

function halt(reason: string, held: readonly KnownFile[]): Braked {
  return { deletes: [], held, reason, halted: true };
}
