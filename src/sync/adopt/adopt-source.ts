import { setImmediate as nextTurn } from "node:timers/promises";
import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import { type ActionContext, reportCompared } from "../actions/context.ts";
import { withListedMetadata } from "../actions/observe.ts";
import { readCandidates, type AdoptingSource, type AdoptionCandidate } from "./candidates.ts";
import { listFound, listTwice, type Found } from "./list.ts";
import { openPeerTest } from "./peers.ts";
import { findOmission } from "./search.ts";
import { hashUpload, hashUploads } from "../reconcile-service/uploads.ts";
import { askPresence } from "../reconcile-service/presence.ts";
import { NOTHING_UNSEARCHED, type AcknowledgedFile, type Recheck, type Unsearched } from "../ledger/drift.ts";
import type { Observed } from "../ledger/files.ts";
import { applyMoves, findMoves, type SourceFiles } from "../pass/moved-files.ts";
import { inSlices } from "../pass/slices.ts";
import {
  isWithin,
  matchFiles,
  unsearchedParts,
  uploadGroups,
  type AdoptableResource,
  type Match,
} from "../plan/adoption.ts";
import { alterationsOf, lossReason } from "../plan/audit.ts";
import { isSameRoot } from "../plan/brakes.ts";
import { hasSettings, sameShape } from "../plan/decide.ts";
import type { KnownFile, ListedResource, RelativePath, Scan, ScanEntry } from "../plan/model.ts";
import { followMoves, sameIdentity } from "../plan/moves.ts";
import { reconcileInSteps } from "../plan/reconcile.ts";
import { scanSource } from "../scan/scan.ts";

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
  /** What this comparison's scan could not read, even if an earlier scan could. */
  readonly unreadable: readonly RelativePath[];
  /** Rows of files whose resource the service no longer has, and that a person agreed to create again. */
  readonly approvedRows: NumberSet;
  /** Rows of an old ledger received the names that their files have now: whatever was planned before is out of date. */
  readonly hasFollowed: boolean;
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

/** Rows written in one transaction. */
const WRITE_ROWS = 500;
/** Rows checked between two turns of the loop. */
const PAGE_ROWS = 1000;
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
  const {
    before,
    entries,
    candidateRows,
    changed,
    borne,
    unmatchedRows,
    goneRows,
    rows,
    unreadable,
    isThere,
    hasFollowed,
  } = await findCandidates(context, source, found, { whole, signal, isBusy });

  const isFirst = before.parts.length === 0;
  let confirmed = 0;
  let differing = 0;
  const candidates: AdoptionCandidate[] = [];
  const read = new Set<number>();
  const unread = [...(isThere ? unreadable : WHOLE_FOLDER)];
  const topics = new Set(found.unowned.map(({ topic }) => topic));
  for await (const candidate of readCandidates(context, source, entries, signal)) {
    if (!("observed" in candidate)) {
      // An empty file, or one that cannot be synced, is not a document now but may become one again. Until then a resource
      // with its name remains its own.
      if (candidate.topic === undefined || topics.has(candidate.topic)) unread.push(candidate.path);
      continue;
    }
    const row = candidateRows.get(candidate.path);
    if (row !== undefined) read.add(row.id);
    const altered = whole && row !== undefined ? found.altered.get(row.id) : undefined;
    if (row === undefined || altered === undefined) {
      candidates.push({ ...candidate, hasOther: changed.has(candidate.path) });
      continue;
    }
    // The resource was changed since, by the daemon that an old ledger forgot or by somebody else.
    const isEqual = isShapedAs(context, row, candidate) && (await holds(context, altered, candidate, signal));
    confirmed += Number(isEqual);
    differing += Number(!isEqual);
    await ledger.write(() => {
      if (isEqual) ledger.files.agree(row.id, row.docId, asListed(candidate.observed, altered));
      else ledger.files.setState(row.id, "unsure");
    });
  }
  const unseen = [...unmatchedRows, ...[...candidateRows.values()].filter(({ id }) => !read.has(id))];
  const adoptable = [...found.unowned, ...goneRows.flatMap(({ id }) => found.altered.get(id) ?? [])];
  const hostsFile = (url: string): boolean => context.remote.hostsFile(url);
  const hashes = await hashUploads(context, uploadGroups(candidates, adoptable, hostsFile), signal);
  const matched = matchFiles(candidates, adoptable, hashes, {
    fits,
    isBorne: (label) => borne.has(label),
    // A former ledger made its resources before this one began or was restored, and before this one made the row's own.
    isTooYoung: ({ path }, { createdMs }) =>
      !whole &&
      createdMs !== undefined &&
      createdMs >
        Math.min((isFirst ? candidateRows.get(path)?.storedMs : undefined) ?? Infinity, found.forgottenMs),
  });
  const isUnowned = new Set(found.unowned);
  const resources = matched.resources.filter((each) => isUnowned.has(each));
  const altered = matched.matches.filter(({ exact }) => !exact);
  const mayBePeers = await openPeerTest(context, source, altered, { sound: found.sound, signal });
  const files = [...matched.files];
  const matches: (typeof matched.matches)[number][] = [];
  for (const match of matched.matches) {
    if (mayBePeers(match)) {
      files.push(match.file);
      if (isUnowned.has(match.resource)) resources.push(match.resource);
      continue;
    }
    // The row's own resource will be deleted in favour of this one, and a list also shows deleted ones.
    const presence = candidateRows.has(match.file.path)
      ? await askPresence(context, match.resource, signal)
      : "there";
    if (presence === "unanswered" && !isAgreedTo) return hold(context, source, UNANSWERED);
    if (presence === "there") matches.push(match);
    else files.push(match.file);
  }
  const taken = new Set(matches.map(({ resource }) => resource.docId));
  const former = new Map(goneRows.filter(({ docId }) => taken.has(docId)).map((row) => [row.docId, row.id]));
  const questioned = whole ? unseen.filter(({ docId }) => !former.has(docId)) : [];
  for (let at = 0; at < questioned.length; at += WRITE_ROWS) {
    const group = questioned.slice(at, at + WRITE_ROWS);
    await ledger.write(() => {
      for (const row of group) question(context, row, found.altered.get(row.id));
    });
  }
  const omission = await omissionOf(
    files.filter(({ path }) => !candidateRows.has(path)).map(({ observed }) => observed.entry),
  );
  if (omission !== undefined) return hold(context, source, omission);
  // A new ledger has few rows, and each is a candidate only once. So theirs are written first, together with the record
  // that the comparison started: after a crash in between, only files without a resource are candidates.
  const ofRows = new Set(whole ? [] : matches.filter(({ file }) => candidateRows.has(file.path)));
  if (!whole) {
    await ledger.write(() => {
      for (const match of ofRows) adopt(context, source, match);
      if (isFirst) ledger.drift.setUnsearched(source.id, { parts: WHOLE_FOLDER, sinceMs: startedMs });
    });
    for (const { file, resource } of ofRows) reportCompared(context, source, file.path, resource.docId);
  }
  const ofFiles = matches.filter((match) => !ofRows.has(match));
  for (let at = 0; at < ofFiles.length; at += WRITE_ROWS) {
    const group = ofFiles.slice(at, at + WRITE_ROWS);
    await ledger.write(() => {
      for (const match of group) {
        const formerRow = former.get(match.resource.docId);
        if (formerRow !== undefined) ledger.files.remove(formerRow);
        adopt(context, source, match, formerRow !== undefined);
      }
    });
    for (const { file, resource } of group) reportCompared(context, source, file.path, resource.docId);
  }
  const missing = files.flatMap(({ path }) => (whole ? (candidateRows.get(path) ?? []) : []));
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
    // A row whose file could not be read was matched with none of them.
    const unseenLabels = new Set(unseen.flatMap(labelsOf));
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
    differing: differing + matches.length - exact,
    missing: missing.length,
    approvedRows,
    hasFollowed,
    lost: lost ?? null,
    surplus: { count: resources.length, first: firstOf(resources) },
  };
}

/** The whole folder, as a list of parts. */
const WHOLE_FOLDER: readonly RelativePath[] = [""];

const NOTHING: Omit<SourceAdoption, "source"> = {
  listed: true,
  unsearched: NOTHING_UNSEARCHED,
  unreadable: [],
  adopted: 0,
  differing: 0,
  missing: 0,
  approvedRows: openNumberSet(),
  hasFollowed: false,
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

/**
 * Returns the candidates: files without a resource, and rows whose own resource is in question. All rows of a new
 * ledger are in question, because it made them before it knew any list; of an old ledger, those whose resource is
 * missing or altered. When adoption is repeated, files that are in agreement by now, or were read before, are no
 * candidates.
 */
async function findCandidates(
  context: ActionContext,
  source: AdoptingSource,
  { unowned, sound, altered }: Found,
  { whole, signal, isBusy }: Required<Omit<AdoptSourceOptions, "sample">>,
): Promise<{
  /** Parts that were not searched before; none: this is the first time. */
  readonly before: Unsearched;
  readonly entries: readonly ScanEntry[];
  readonly candidateRows: ReadonlyMap<string, AcknowledgedFile>;
  /**
   * Files that changed since the old ledger saw them, or whose rules did, while their resource did not. They may have
   * received another resource, as when their kind or chunk settings changed.
   */
  readonly changed: ReadonlySet<string>;
  /** Titles and descriptions of rows that keep their resource and that a resource without a row also has. */
  readonly borne: ReadonlySet<string>;
  /** Rows whose resource differs from the row, and that have no file at their path to match with another one. */
  readonly unmatchedRows: readonly AcknowledgedFile[];
  /** Those of them whose file is gone and whose resource was changed: it may be another file's by now. */
  readonly goneRows: readonly AcknowledgedFile[];
  /** Number of rows for files that are not to be deleted. */
  readonly rows: number;
  /** Parts of the folder that could not be read; "" is all of it, also if it is missing or empty. */
  readonly unreadable: readonly RelativePath[];
  /** False: the folder is missing, empty or another one, and its files are matched another time. */
  readonly isThere: boolean;
  /** Rows of an old ledger received other names. */
  readonly hasFollowed: boolean;
}> {
  const { ledger } = context;
  const scan = await scanSource(source.root, source.rules, { signal, onSlice: context.moved });
  // Another folder than the ledger knows holds other files. An old ledger shows that, a new one cannot.
  const { root } = ledger.sources.get(source.id);
  const isAgreed = root === undefined || isSameRoot(root, scan.root);
  const hasFollowed = whole && isAgreed && (await followFiles(context, source, scan, signal));
  const before = ledger.drift.unsearched(source.id);
  const isAgain = before.parts.length > 0;
  /** A new ledger made its rows before there was a list, so the list does not decide whether they are candidates. */
  const isOld = whole || isAgain;
  const mayMatch = ({ path }: ScanEntry): boolean =>
    (!isAgain || isWithin(path, before.parts)) && !isBusy(path);
  const entries = new Map(scan.entries.filter(mayMatch).map((entry) => [entry.path, entry]));
  const labels = new Set([...unowned, ...altered.values()].map(({ label }) => label));
  const borne = new Set<string>();
  const candidateRows = new Map<string, AcknowledgedFile>();
  const changed = new Set<string>();
  const unmatchedRows: AcknowledgedFile[] = [];
  let rows = 0;
  const { collection: tier, ownerId } = source.rules.source;
  for (let afterId = 0; ;) {
    signal.throwIfAborted();
    const page = ledger.drift.page({ tier, ownerId }, afterId, PAGE_ROWS);
    for (const row of page) {
      if (row.source !== source.id) continue;
      const isSound = isOld && sound.has(row.id);
      if (row.state === "held" || row.state === "doomed") {
        if (!isSound) unmatchedRows.push(row);
        continue;
      }
      rows += 1;
      const keepsResource =
        isSound ||
        (isAgain && (row.state === "agreed" || !isWithin(row.path, before.parts))) ||
        (isOld && altered.has(row.id) && row.state !== "agreed");
      const isLike = labelsOf(row).some((label) => labels.has(label));
      if (keepsResource && isLike) borne.add(row.label);
      if (!keepsResource && entries.has(row.path)) candidateRows.set(row.path, row);
      else if (!isSound && !(isAgain && row.state === "agreed")) unmatchedRows.push(row);
      const known = whole && isSound && unowned.length > 0 ? ledger.files.get(row.id) : undefined;
      const hasOtherRules = isLike && known?.rulesKey !== source.rulesKey(row.path);
      const entry = entries.get(row.path);
      if (known !== undefined && entry !== undefined && (hasOtherRules || hasChanged(entry, known)))
        changed.add(row.path);
      else if (keepsResource) entries.delete(row.path);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) {
      // Files may be gone for some time, as when a disk is not mounted. They are matched when they are back. A surplus
      // resource does not show that: while there are candidates, nothing deletes it.
      const doubted = new Set(
        ledger.intents.doubts(source.id).map(({ docId, observed }) => docId !== null && observed.label),
      );
      const isEmptied = scan.entries.length === 0 && unowned.some(({ label }) => !doubted.has(label));
      const isAway = scan.root === undefined || isEmptied;
      const isThere = !isAway && isAgreed;
      const unreadable = isAway ? WHOLE_FOLDER : scan.unreadable.map(({ path }) => path);
      const there = new Set(scan.entries.map(({ path }) => path));
      const isGone = ({ id, path, state }: AcknowledgedFile): boolean =>
        whole &&
        isThere &&
        altered.has(id) &&
        state !== "held" &&
        state !== "doomed" &&
        !there.has(path) &&
        !isWithin(path, unreadable);
      const goneRows = unmatchedRows.filter(isGone);
      const found = {
        entries: [...entries.values()],
        candidateRows,
        changed,
        borne,
        unmatchedRows,
        goneRows,
        rows,
        hasFollowed,
      };
      return { before, unreadable, isThere, ...found };
    }
    afterId = last.id;
    await nextTurn();
  }
}

/** Returns the labels of a row's resource, as sent and as the service stores it. */
function labelsOf({ label, storedLabel }: AcknowledgedFile): readonly string[] {
  return storedLabel === null ? [label] : [label, storedLabel];
}

function hasChanged(entry: ScanEntry, row: KnownFile): boolean {
  return !sameIdentity(entry, row) || entry.ctimeMs !== row.ctimeMs;
}

/**
 * Gives the rows of an old ledger the names that their files have now, as the next pass would. A row must not be
 * compared with the file that took its place. Reports whether any has another name now.
 */
async function followFiles(
  { ledger, moved }: ActionContext,
  { id, rules, rulesKey }: AdoptingSource,
  scan: Scan,
  signal: AbortSignal,
): Promise<boolean> {
  const sourceFiles: SourceFiles = { source: id, rules, ledger, signal, moved };
  const difference = await inSlices(
    reconcileInSteps(scan, ledger.files.all(id), { rulesKey }),
    signal,
    moved,
  );
  const more = await findMoves(sourceFiles, difference.candidates, difference.gone);
  const followed = followMoves(difference, difference.candidates, more);
  await applyMoves(sourceFiles, followed);
  ledger.flush();
  return followed.moves.length > 0;
}

/** Reports whether a row's resource was made as the file would be now: with the same chunks, in the same scope. */
function isShapedAs(
  { ledger }: ActionContext,
  { id }: AcknowledgedFile,
  { observed }: AdoptionCandidate,
): boolean {
  const row = ledger.files.get(id);
  return row !== undefined && sameShape(row.shape, observed.shape);
}

/** Reports whether a resource holds what the file does. */
async function holds(
  { remote }: ActionContext,
  resource: ListedResource,
  { kind, label, digest, hash, url, sizeBytes }: AdoptionCandidate,
  signal: AbortSignal,
): Promise<boolean> {
  if (kind !== "file") {
    const stored = { storedDigest: null, storedLabel: null };
    const row = { state: "agreed", kind, label, digest, fileUrl: url ?? null, ...stored } as const;
    return alterationsOf(row, resource).length === 0;
  }
  if (resource.isUnfinished === true) return false;
  if (resource.label !== label || resource.url === undefined || !remote.hostsFile(resource.url)) return false;
  return (await hashUpload(remote, resource.url, sizeBytes, signal)) === hash;
}

/**
 * Runs inside a group commit. `isFreed`: the row that owned the resource was just removed. A doubt may still name it.
 */
function adopt(
  { ledger }: ActionContext,
  source: AdoptingSource,
  match: Match<AdoptionCandidate, AdoptableResource>,
  isFreed = false,
): void {
  const { file, resource } = match;
  if (!isFreed && ledger.files.ownsDoc(resource.docId)) return;
  const { settings } = file.observed.shape;
  const shape = { ...file.observed.shape, settings: { ...settings, ...resource.settings } };
  const observed = { ...asListed(file.observed, resource), shape };
  const state = isEqualMatch(match) ? "agreed" : "unsure";
  const stored = {
    ...(resource.label !== observed.label && { label: resource.label }),
    ...(resource.updatedMs !== undefined && { atMs: resource.updatedMs }),
  };
  const row = ledger.files.living(source.id, file.path);
  if (row === undefined) {
    ledger.files.insert(source.id, resource.docId, state, observed, stored);
    if (resource.warning !== undefined) ledger.files.warn(resource.docId, resource.warning);
    return;
  }
  // The file has two now: the one that was found, and the one its row knew, which is ours to delete.
  if (row.docId !== null) ledger.intents.delete(source.id, file.path, row.docId);
  ledger.files.agree(row.id, resource.docId, observed, stored);
  ledger.files.warn(resource.docId, resource.warning);
  if (state === "unsure") ledger.files.setState(row.id, state);
}

/**
 * Marks an old ledger's row whose file is not at its path, or cannot be read. The file may return under another name,
 * or unchanged. It must not count as what the service has then. Runs inside a group commit.
 */
function question(
  { ledger }: ActionContext,
  row: AcknowledgedFile,
  resource: ListedResource | undefined,
): void {
  const found = resource && alterationsOf({ ...row, state: "agreed" }, resource);
  if (resource !== undefined && found?.every((each) => each === "title or description") === true)
    ledger.files.relabel(row.id, resource.title, resource.label);
  else ledger.files.distrust(row.id);
}

/**
 * Reports whether nothing has to be sent. Only a new resource can have other chunk settings; the next check creates it.
 */
function isEqualMatch({ exact, file, resource }: Match<AdoptionCandidate, AdoptableResource>): boolean {
  return exact && resource.isUnfinished !== true && fits(file, resource);
}

function fits({ observed }: AdoptionCandidate, { settings }: AdoptableResource): boolean {
  return hasSettings(observed.shape, settings);
}

/** Returns what was observed of a file with the address and the metadata that its resource has. */
function asListed(observed: Observed, { url, metadataHash }: ListedResource): Observed {
  return { ...withListedMetadata(observed, metadataHash), fileUrl: url ?? observed.fileUrl };
}

function firstOf(resources: readonly AdoptableResource[]): AdoptReport["surplus"]["first"] {
  return resources
    .toSorted((a, b) => (a.title < b.title ? -1 : 1))
    .slice(0, SURPLUS_NAMED)
    .map(({ docId, title }) => ({ docId, title }));
}
