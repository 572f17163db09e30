import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import type { ActionContext } from "../actions/context.ts";
import { NOTHING_UNSEARCHED, type Recheck, type Unsearched } from "../ledger/drift/adoptions.ts";
import { unsearchedParts } from "../plan/unsearched.ts";
import type { AdoptableResource } from "../plan/adoption.ts";
import { lossReason } from "../plan/audit.ts";
import type { RelativePath, ScanEntry } from "../plan/model.ts";
import { scanSource } from "../scan/scan.ts";
import type { AdoptingSource } from "./candidates.ts";
import { findCandidates, labelsOf, WHOLE_FOLDER, type Candidates } from "./find-candidates.ts";
import { listFound, listTwice, type Found } from "./list.ts";
import { matchResources, readFiles, type Attempt, type Matched, type ReadFiles } from "./match.ts";
import { findOmission } from "./search.ts";
import { isEqualMatch, questionUnseen, takeOver } from "./take-over.ts";

/** The result of matching a source's files with the service's resources. */
export interface AdoptReport {
  readonly source: string;
  /** False: the service has not supplied the collection's id, so there is no list yet. */
  readonly listed: boolean;
  /** Files whose resource was found with the same content. Nothing is sent for them. */
  readonly adopted: number;
  /** Files whose resource was found and that will be sent to it. */
  readonly differing: number;
  /** Files whose resource the service no longer has. */
  readonly missing: number;
  /** Why these must not simply be sent again: they are most of the files. Null where they may. */
  readonly lost: string | null;
  /** Resources of the scope that match no file. They are not touched. */
  readonly surplus: { readonly count: number; readonly first: readonly { docId: string; title: string }[] };
}

/** The same, for a source that repeats the adoption. */
export interface SourceAdoption extends AdoptReport {
  /** Parts that could not be read. Their files are matched another time. */
  readonly unsearched: Unsearched;
  /** The paths that this comparison's scan could not read, even if an earlier scan could. */
  readonly unreadable: readonly RelativePath[];
  /** Rows of files whose resource the service no longer has, and that a person agreed to create again. */
  readonly approvedRows: NumberSet;
  /** Rows of an old ledger received the names that their files have now: whatever was planned before is out of date. */
  readonly hasFollowed: boolean;
  /** Something came out that no comparison before had found. */
  readonly hasNews: boolean;
}

export interface AdoptSourceOptions {
  /** The ledger may be old, so its rows are compared with the list as well. */
  readonly whole: boolean;
  readonly signal: AbortSignal;
  /** Some of the files to send. Default: as a scan finds them. */
  readonly sample?: readonly ScanEntry[];
  /** Whether a file is being read or sent; it is then no candidate. Default: none is. */
  readonly isBusy?: (path: RelativePath) => boolean;
}

const SURPLUS_NAMED = 20;

/**
 * Lists a source's scope and assigns resources to the files they belong to, so that nothing is created twice and
 * nothing equal is sent. It does not touch what another row owns. It deletes nothing except a resource of ours whose
 * file turns out to have an older one. Repeating it, after a crash at any point, gives the same result.
 *
 * After the first time, only files in the parts of the folder that were unreadable before are candidates, and of these
 * only files without a resource, or whose resource the list does not show. A file that has its resource must not take
 * one that somebody else makes later.
 */
export async function adoptSource(
  context: ActionContext,
  source: AdoptingSource,
  { whole, signal, sample, isBusy = () => false }: AdoptSourceOptions,
): Promise<SourceAdoption> {
  const { ledger } = context;
  ledger.flush();
  const startedMs = context.now();
  const isAgreedTo = ledger.drift.loss(source.id)?.agreed === true;
  const found = await (isAgreedTo ? listFound : listTwice)(context, source, signal);
  if (found === undefined) return { ...NOTHING, source: source.root, listed: false };
  if (found === "unclear") return hold(context, source, UNCLEAR_LISTS);
  const shown = new Set(found.shown.map(({ docId }) => docId));
  /** Returns why the list seems to omit resources of these files, which would be created again. */
  const omissionOf = async (entries: readonly ScanEntry[]): Promise<string | undefined> =>
    isAgreedTo ? undefined : findOmission(context, source, { shown, entries, signal });
  // A doubt from before an old ledger was restored may claim the resource of a file that cannot be read now.
  const hasOldDoubt = ledger.intents.allOpen().some((each) => ledger.drift.isForgotten(each));
  if (found.unowned.length === 0 && !whole && !hasOldDoubt) {
    const { entries } =
      sample === undefined ? await scanSource(source.root, source.rules, { signal }) : { entries: sample };
    const omission = await omissionOf(entries);
    if (omission !== undefined) return hold(context, source, omission);
    await ledger.write(() => {
      ledger.drift.setRecheck(source.id, recheckOf(context, startedMs, found, []));
      ledger.drift.setAdopted(source.id, true);
      ledger.drift.setUnsearched(source.id, NOTHING_UNSEARCHED);
      ledger.drift.setLoss(source.id, undefined);
    });
    return { ...NOTHING, source: source.root };
  }
  const attempt: Attempt = { context, source, found, whole, isAgreedTo, signal };
  const candidates = await findCandidates(context, source, found, { whole, signal, isBusy });
  const read = await readFiles(attempt, candidates);
  const matched = await matchResources(attempt, candidates, read.candidates);
  if (matched === "unanswered") return hold(context, source, UNANSWERED);
  await questionUnseen(attempt, candidates, read, matched);
  const { candidateRows } = candidates;
  const omission = await omissionOf(
    matched.files.filter(({ path }) => !candidateRows.has(path)).map(({ observed }) => observed.entry),
  );
  if (omission !== undefined) return hold(context, source, omission);
  await takeOver(attempt, candidates, matched, startedMs);
  return await conclude(attempt, candidates, read, matched, startedMs);
}

/** Records that the scope was compared, and what remains to be done. */
async function conclude(
  { context, source, found, whole, isAgreedTo }: Attempt,
  { before, isFirst, candidateRows, retained, rows, unreadable, hasFollowed }: Candidates,
  { confirmed, unread, unseen }: ReadFiles,
  { matches, files, resources }: Matched,
  startedMs: number,
): Promise<SourceAdoption> {
  const { ledger } = context;
  const unmatched = files.flatMap(({ path }) => (whole ? (candidateRows.get(path) ?? []) : []));
  const missing = unmatched.filter(({ id }) => !found.altered.has(id));
  const lost = isAgreedTo
    ? undefined
    : lossReason({ acknowledged: rows, missing: missing.length, altered: 0 });
  const unsearched: Unsearched = {
    parts: unsearchedParts(unread, isFirst ? WHOLE_FOLDER : before.parts),
    sinceMs: isFirst ? startedMs : before.sinceMs,
  };
  const approvedRows = openNumberSet();
  if (isAgreedTo) for (const { id } of missing) approvedRows.add(id);
  await ledger.write(() => {
    if (lost !== undefined) {
      // The service was reset as well. Once that is settled, the rows are compared again.
      ledger.drift.distrust(source.id);
      ledger.drift.setLoss(source.id, lost);
      return;
    }
    // Only the service's answer about that resource proves that it is gone. Sending the file finds out.
    for (const { id } of missing) ledger.files.setState(id, "unsure");
    ledger.drift.setLoss(source.id, undefined);
    // A row whose file could not be read was matched with none of them. A resource that a row keeps may be gone already.
    const unseenLabels = new Set([...retained, ...unseen.flatMap(labelsOf)]);
    const left = resources.filter(({ label }) => !unseenLabels.has(label));
    const recheck = recheckOf(context, unsearched.sinceMs, found, left);
    const seen = isFirst ? undefined : ledger.drift.recheck(source.id)?.seen;
    ledger.drift.setRecheck(source.id, { ...recheck, ...(seen && { seen }) });
    // A folder that was missing, empty or another one has yet to be compared. So have the rows of an old ledger.
    ledger.drift.setAdopted(source.id, !unread.includes(""));
    ledger.drift.setUnsearched(source.id, unsearched);
  });
  const exact = matches.filter(isEqualMatch).length;
  return {
    source: source.root,
    listed: true,
    unsearched,
    unreadable,
    adopted: confirmed + exact,
    differing: unmatched.length - missing.length + matches.length - exact,
    missing: missing.length,
    approvedRows,
    hasFollowed,
    // What is missing or differs again and again was put in question the first time.
    hasNews:
      hasFollowed || confirmed + matches.length > 0 || unmatched.some(({ state }) => state !== "unsure"),
    lost: lost ?? null,
    surplus: { count: resources.length, first: firstOf(resources) },
  };
}

const NOTHING: Omit<SourceAdoption, "source"> = {
  listed: true,
  unsearched: NOTHING_UNSEARCHED,
  unreadable: [],
  adopted: 0,
  differing: 0,
  missing: 0,
  approvedRows: openNumberSet(),
  hasFollowed: false,
  hasNews: false,
  lost: null,
  surplus: { count: 0, first: [] },
};

const UNCLEAR_LISTS =
  "the service's lists of its documents differ from one moment to the next, so files would be sent twice; kbsync asks again by itself";

const UNANSWERED =
  "the service lists a document of one of the files but does not answer for it, so the file may be sent twice; kbsync asks again by itself";

/** Above this number of resources that the adoption saw and did not touch, no resource counts as unseen. */
const SEEN_MAX = 10_000;

/**
 * Returns what must be compared again once lists have caught up. `left`: resources that were seen and belong to no
 * file.
 */
function recheckOf(
  { now }: ActionContext,
  startedMs: number,
  { clockOffsetMs }: Found,
  left: readonly AdoptableResource[],
): Recheck {
  const isOver = left.length > SEEN_MAX;
  // The service was still processing these, so they could not be compared.
  const seen = left
    .filter(({ isUnfinished }) => isUnfinished !== true)
    .map(({ docId, updatedMs }) => ({ docId, updatedMs }));
  return {
    boundMs: isOver ? 0 : startedMs + clockOffsetMs,
    seen: isOver ? [] : seen,
    sinceMs: now(),
    checks: 0,
    clean: 0,
  };
}

/** Holds the source until a later attempt, or until a person agrees. */
async function hold(
  { ledger }: ActionContext,
  { id, root }: AdoptingSource,
  reason: string,
): Promise<SourceAdoption> {
  await ledger.write(() => ledger.drift.setLoss(id, reason, true));
  return { ...NOTHING, source: root, unsearched: ledger.drift.unsearched(id), lost: reason };
}

function firstOf(resources: readonly AdoptableResource[]): AdoptReport["surplus"]["first"] {
  return resources
    .toSorted((a, b) => (a.title < b.title ? -1 : 1))
    .slice(0, SURPLUS_NAMED)
    .map(({ docId, title }) => ({ docId, title }));
}
