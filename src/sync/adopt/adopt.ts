import { KbsyncError } from "../../lib/failure.ts";
import type { NumberSet } from "../../lib/number-set.ts";
import type { ActionContext, PeerSource } from "../actions/context.ts";
import { adoptSource } from "./adopt-source.ts";
import type { AdoptingSource } from "./candidates.ts";
import { peersOf } from "./peers.ts";
import { kindOfName } from "../../formats/kinds.ts";
import { NOTHING_UNSEARCHED, type Unsearched } from "../ledger/drift/adoptions.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { isWithin, withinTest } from "../plan/unsearched.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import { parkMs } from "../plan/retry.ts";

/**
 * Before a source of a new ledger creates its first resources, its scope at the service is listed once. The ledger may
 * be new because the old one was lost, or an old one may have been restored; then existing resources are adopted.
 *
 * The list needs the collection's id, which the bare specification returns only in the answer to a create. The first
 * file that is sent supplies it: it goes alone, and nothing follows it before the list. A probe resource would cost an
 * additional create and delete, would appear in searches while it exists, and would need a crash protocol of its own.
 * If the file turns out to have a resource already, the older one stays and the new one is deleted.
 */
export interface Adoption {
  /** Reports whether another file should be sent after a job, because the scope has yet to be listed for the first time. */
  hasNext(): boolean;
  /**
   * Reports whether a surplus resource may belong to a candidate: adoption is pending, or a part of the folder could
   * not be read and there are doubts from before.
   */
  hasCandidates(): boolean;
  /** The same, for candidates of this source or of another one of its owner and collection. */
  isAdopting(): boolean;
  /** Starts again, because the folder is another one: its scope must be listed once more. */
  again(): void;
  /** Files that wait until the scope is listed. */
  waiting(): ReadonlySet<RelativePath>;
  /**
   * Returns those of the files to send that may be sent now. They count as waiting until `queued` is called; the
   * others return with a check of the whole source. `isWhole`: the files come from such a check.
   */
  admit(candidates: readonly Candidate[], isWhole: boolean): Promise<readonly Candidate[]>;
  /** Called when admitted files have jobs. */
  queued(admitted: readonly Candidate[]): void;
}

export interface AdoptionOptions {
  readonly context: ActionContext;
  readonly source: AdoptingSource;
  /** One pass: if the service refuses a list, the pass ends. */
  readonly once: boolean;
  readonly signal: AbortSignal;
  /** Reports whether the file of a path has a job. */
  readonly isBusy: (path: RelativePath) => boolean;
  /** Reports whether files or deletes of the source are in flight. */
  readonly isSending: () => boolean;
  /** Most of what an old ledger knows is gone from the service. Nothing may be sent until a person agrees. */
  readonly onLoss: (reason: string) => void;
  /** Notified of the rows whose resources are missing and that a person agreed to create again. */
  readonly onApproved: (rows: NumberSet) => void;
  /** Schedules a check of the whole source. */
  readonly scanAt: (atMs: number) => void;
  readonly onWarning: (error: Error) => void;
}

/** How soon a check is repeated that could not ask for a collection's id, or not see its files. */
const AGAIN_MS = 1000;

/** Opens the adoption of a source. */
export function openAdoption(options: AdoptionOptions): Adoption {
  const { context, source, once, signal, isBusy, isSending, onLoss, onApproved, scanAt, onWarning } = options;
  const { ledger, collections, now } = context;
  const unsearched = ledger.drift.unsearched(source.id);
  const state: AdoptionState = {
    unsearched,
    isPending: !ledger.drift.isAdopted(source.id) && unsearched.parts.length === 0,
    waiting: new Set(),
    isChecked: false,
  };
  const { hasCandidates, hasRows, isAdopting } = openCandidateTest(context, source, signal, state);
  /** How often in a row a part of the folder could not be read when the scope was listed. */
  let failures = 0;
  /** When another attempt is worthwhile although no file needs it. */
  let failedUntilMs = 0;
  let refusals = 0;
  /** No file is left that may show the collection's id now. */
  let areAllParked = false;

  const scope = `${source.rules.source.collection}\0${source.rules.source.ownerId}`;

  /** A later check is not part of a single pass, which would end as if all were done. */
  const checkSoon = (): void => scanAt(once ? now() : now() + AGAIN_MS);
  /** `others` do not depend on the list. */
  const adopt = async (
    candidates: readonly Candidate[],
    makes: readonly Candidate[],
    others: readonly Candidate[],
  ): Promise<readonly Candidate[]> => {
    // The rows of an old ledger are in question too.
    const whole = ledger.drift.isDistrusted(source.id);
    // Two sources that list at once would both take the same one of equal resources, and leave the other one behind.
    const found = await context.adoptions.run(scope, () =>
      adoptSource(context, source, { whole, signal, isBusy, sample: makes.map(({ entry }) => entry) }),
    );
    const { adopted, differing, lost, hasNews } = found;
    state.isPending = lost !== null;
    state.unsearched = found.unsearched;
    failures = state.unsearched.parts.length > 0 ? failures + 1 : 0;
    failedUntilMs = now() + parkMs(failures);
    if (lost !== null) {
      onLoss(lost);
      return [];
    }
    onApproved(found.approvedRows);
    if (!hasNews) {
      // A file that the comparison could not see may have a resource. The next check finds it again.
      const isUnseen = withinTest(found.unreadable);
      const seen = candidates.filter(({ entry }) => !isUnseen(entry.path));
      if (seen.length < candidates.length) checkSoon();
      return seen;
    }
    if (adopted + differing > 0 && !whole) onWarning(takenOver(source, adopted + differing, differing));
    scanAt(now());
    // Candidates may name rows that have lost their paths to others.
    return found.hasFollowed ? [] : others;
  };
  /**
   * The comparison is due although there may be no file: the last one held the source, or a create in doubt waits for the
   * one of a distrusted source.
   */
  const isDue = (): boolean =>
    ledger.drift.loss(source.id) !== undefined ||
    (ledger.drift.isDistrusted(source.id) && ledger.intents.doubts(source.id).length > 0);
  /** Surplus resources are checked only after there are no candidates any more. */
  const isAwaited = (): boolean => now() >= failedUntilMs && hasCandidates();
  /**
   * Reports whether a file may have a resource that no row knows. The row of an old ledger may name one that is gone
   * since.
   */
  const isSearching = (candidate: Candidate): boolean =>
    state.isPending
      ? isMade(candidate)
      : isWithin(candidate.entry.path, state.unsearched.parts) &&
        (isMade(candidate) || candidate.known?.state !== "agreed");
  const choose = async (
    candidates: readonly Candidate[],
    isWhole: boolean,
  ): Promise<readonly Candidate[]> => {
    ledger.flush();
    const makes = candidates.filter(isSearching);
    const others = state.isPending ? [] : candidates.filter((candidate) => !isSearching(candidate));
    if (makes.length === 0 && (state.isPending ? !hasRows() && !isDue() : !isAwaited())) return candidates;
    // A request in flight may create a resource that no row owns yet. Another check follows when it has ended.
    if (state.isPending && isSending()) return [];
    const asked = await collections.ask(source.rules.source.collection, signal);
    if (asked.id === undefined && asked.why === "unanswered") {
      // The gate waits before the next request.
      checkSoon();
      return others;
    }
    if (asked.id === undefined) {
      // The others do not wait for a file that failed, which has its own next check. A single pass has none: it tries all.
      const untried = makes.filter(({ known }) => known?.state !== "parked");
      areAllParked = untried.length === 0 && isWhole;
      if (areAllParked) return once ? candidates : others;
      const alone = cheapestOf(untried.length > 0 ? untried : makes);
      return candidates.filter((candidate) => candidate === alone || !isSearching(candidate));
    }
    try {
      return await adopt(candidates, makes, others);
    } catch (error) {
      if (once || !(error instanceof KbsyncError) || error.code !== "list_refused") throw error;
      onWarning(error);
      refusals += 1;
      scanAt(now() + parkMs(refusals));
      return others;
    }
  };
  return {
    hasNext: () => state.isPending && !areAllParked,
    hasCandidates,
    isAdopting,
    again: () => {
      state.isPending = true;
      state.unsearched = NOTHING_UNSEARCHED;
    },
    waiting: () => state.waiting,
    admit: async (candidates, isWhole) => {
      if (isWhole && state.waiting.size > 0) {
        const found = new Set(candidates.map(({ entry }) => entry.path));
        for (const path of state.waiting) if (!found.has(path)) state.waiting.delete(path);
      }
      state.isChecked ||= isWhole;
      const isDone = !state.isPending && state.unsearched.parts.length === 0;
      if (isDone) return candidates;
      for (const { entry } of candidates) state.waiting.add(entry.path);
      return await choose(candidates, isWhole);
    },
    queued: (admitted) => {
      for (const { entry } of admitted) state.waiting.delete(entry.path);
    },
  };
}

/** The state of an adoption. */
interface AdoptionState {
  /**
   * Parts of the folder that could not be read when the scope was listed. Resources for their files may exist already.
   */
  unsearched: Unsearched;
  isPending: boolean;
  /** Files that wait until the scope is listed. */
  readonly waiting: Set<RelativePath>;
  /** The whole source was checked in this run, so that all its files wait. */
  isChecked: boolean;
}

/** Reports whether a surplus resource may belong to a candidate, to this source and to its peers. */
function openCandidateTest(
  context: ActionContext,
  source: AdoptingSource,
  signal: AbortSignal,
  state: AdoptionState,
): Pick<Adoption, "hasCandidates" | "isAdopting"> & { readonly hasRows: () => boolean } {
  const { ledger } = context;
  /** A file that is no document now matches only a resource with its own description, and may stay so for good. */
  const isNoDocument = (part: RelativePath): boolean => {
    const row = ledger.files.living(source.id, part);
    return row?.state === "skipped" || row?.state === "failed";
  };
  /** The create is that of an old ledger, which has forgotten resources made since. */
  const isOld = (create: CreateIntent): boolean => ledger.drift.isForgotten(create);
  /** It may have made the resource of a file that has been unreadable since. */
  const isQuestionable = (create: CreateIntent): boolean =>
    isOld(create) && state.unsearched.parts.some((part) => !isNoDocument(part));
  const hasCandidates = (): boolean =>
    state.isPending || ledger.intents.doubts(source.id).some(isQuestionable);
  const hasRows = (): boolean => {
    const { agreed, unsure } = ledger.sources.get(source.id);
    return agreed + unsure > 0;
  };
  /** Reports whether no file is known. Such a folder may stay empty for good. */
  const isEmpty = (): boolean => state.waiting.size === 0 && !hasRows();
  /** Until the whole source was checked, nobody knows whether it is empty. An unreadable file is there. */
  const mayHaveFiles = (): boolean =>
    !state.isChecked || !isEmpty() || ledger.sources.get(source.id).unreadable > 0;
  const self: PeerSource = {
    source,
    mayAdopt: (doubts) => {
      // A new ledger searches for resources older than every doubt.
      const isQuestioned = state.isPending
        ? ledger.drift.isDistrusted(source.id) || doubts.some(isOld)
        : doubts.some(isQuestionable);
      return isQuestioned && ((!state.isPending && !state.unsearched.parts.includes("")) || mayHaveFiles());
    },
  };
  context.peers.add(self);
  signal.addEventListener("abort", () => context.peers.delete(self), { once: true });
  const isAdopting = (): boolean => {
    // The first file of a new ledger may be gone before there was a list. Its create then stays in doubt, and nothing
    // requests a list.
    const isIdle = state.isPending && !ledger.drift.isDistrusted(source.id) && isEmpty();
    if (!isIdle && hasCandidates()) return true;
    const doubts = ledger.intents.doubts(source.id);
    return peersOf(context, source).some((each) => each.mayAdopt(doubts));
  };
  return { hasCandidates, isAdopting, hasRows };
}

/**
 * Warns a person: the adopted resources may be another machine's, and those that differ are about to be overwritten.
 */
function takenOver({ root, rules }: AdoptingSource, taken: number, differing: number): KbsyncError {
  const { ownerId } = rules.source;
  const rest =
    differing === 0
      ? "all as they are on disk"
      : `${differing} of them with another text, which is sent again`;
  return new KbsyncError(
    `the ledger is new, and the service had ${taken} resources of the owner ${ownerId} for files of ${root}: they were taken over, ${rest}`,
    {
      code: "taken_over",
      subject: root,
      hint: "This is expected after a ledger was lost. If another kbsync sends files for this owner, give each source its own ownerId: otherwise they overwrite each other's files.",
    },
  );
}

/** Reports whether a resource must be created for the candidate. */
function isMade({ known }: Candidate): boolean {
  return known === undefined || known.docId === null;
}

/** A text costs one request, an upload two. */
function cheapestOf(candidates: readonly Candidate[]): Candidate | undefined {
  const costOf = ({ entry }: Candidate): number =>
    entry.sizeBytes + (kindOfName(entry.path).kind === "content" ? 0 : Number.MAX_SAFE_INTEGER / 2);
  const least = candidates.reduce((cost, candidate) => Math.min(cost, costOf(candidate)), Infinity);
  return candidates.find((candidate) => costOf(candidate) === least);
}
