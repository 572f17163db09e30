import { join } from "node:path";
import { counted } from "../../../lib/counted.ts";
import type { Explanation, FileFacts, NextStep, OnDisk, OpenIntent } from "../../../wire/daemon-files.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import { metadataOf, withMarker } from "../../send/observe.ts";
import { targetIn } from "../../scan/disk/source-path.ts";
import { readDocument } from "../../scan/read/read.ts";
import type { ReadOptions, ReadOutcome } from "../../scan/read/outcome.ts";
import type { Activity } from "../../ledger/activity.ts";
import type { Files } from "../../ledger/files/files.ts";
import type { FileRow } from "../../ledger/files/rows.ts";
import { senderBlocker } from "../../ledger/blockers.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { rulesKeysOf } from "../../daemon/pass/rules-key.ts";
import { uploadedHash } from "../../plan/decide.ts";
import type { Difference, FileState, Recipe, RelativePath, ScanEntry } from "../../plan/model.ts";
import { reconcile } from "../../plan/reconcile.ts";
import { sentSignature, type Signature } from "../../plan/marker.ts";
import { type LiveWork, type SenderBlocker, versionOf } from "../../plan/version.ts";
import { openRules, type Rules, type Verdict, type WatchedSource } from "../../scan/rules/rules.ts";
import { scanPaths } from "../../scan/scan.ts";
import { inspectPath } from "../../scan/disk/inspect-path.ts";
import { nextStep, withBlocker } from "./next.ts";
import { originOf } from "./recipe-origin.ts";

/** Maximum number of activities in an explanation. */
const ACTIVITY_MAX = 10;

/** The part of a ledger that explanations read. */
type ReadLedger = Pick<Ledger, "activity" | "contacts" | "files" | "intents" | "sources">;

/**
 * Explains the state of a file from disk, ledger and rules. Writes and sends nothing. The file need not exist. `path` is
 * absolute. Without a ledger, nothing was ever synced. Throws `outside_sources`.
 */
export async function explain(
  ledger: ReadLedger | undefined,
  sources: readonly WatchedSource[],
  path: string,
  signal: AbortSignal,
  live?: LiveWork,
): Promise<Explanation> {
  const { source, below = "" } = targetIn(sources, ({ absolutePath }) => absolutePath, path);
  return explainIn(ledger, source, below, signal, live);
}

async function explainIn(
  ledger: ReadLedger | undefined,
  source: WatchedSource,
  path: RelativePath,
  signal: AbortSignal,
  live: LiveWork | undefined,
): Promise<Explanation> {
  const rules = openRules(source);
  const disk = inspectPath(join(source.absolutePath, path));
  const isFolder = disk.kind === "folder";
  // No rule applies to the source's own folder: rules are about its contents.
  const isWhole = path === "";
  const verdict: Verdict = isWhole ? { wanted: true } : rules.takes(path, disk.kind);
  const known = ledger && knownOf(ledger, source, path);
  const { takesMetadata = false, readsMails: uploadsMails = false } = ledger?.sources.declared() ?? {};
  const rulesKey = rulesKeysOf(rules, () => takesMetadata);
  const facts = { rules, rulesKey, path, signal, files: ledger?.files, row: known?.row };
  const isFile = !isFolder && !isWhole && disk.misnamed === undefined;
  const { difference, entry } = isFile ? await differenceAt(facts) : NOTHING;
  const options = { signal, uploadsMails, uploadedHash: uploadedHash(known?.living) };
  const read = difference && (await readAt(facts, difference, entry, options));
  const document = read?.kind === "document" ? read.document : undefined;
  const metadata = document !== undefined && takesMetadata ? metadataOf(document, rules) : undefined;
  const blocker = known?.row && senderBlocker(known.row);
  const next = isFile ? nextOf(facts, known, verdict, difference, read, metadata, disk) : undefined;
  return {
    source: source.absolutePath,
    path,
    wanted: verdict.wanted,
    leftOutBy: verdict.wanted ? null : verdict.reason,
    disk,
    content: read === undefined ? null : contentOf(read),
    recipe: document === undefined ? null : recipeOf(path, document.recipe, rules),
    ledger: known?.living === undefined ? null : factsOf(known.living),
    held: known?.held.map(factsOf) ?? [],
    intents: known?.intents ?? [],
    state: {
      paused: known?.row?.paused ?? false,
      halted: known?.row?.lost ?? known?.row?.halted ?? null,
      holdReason: known?.row?.holdReason ?? null,
    },
    activity: known?.activity ?? [],
    version:
      next === undefined
        ? null
        : await versionAt(path, { next, verdict, known, disk, blocker, source, live, signal }),
    next: next === undefined ? stepOfNoFile(path, disk, verdict, known, blocker) : withBlocker(next, blocker),
  };
}

/** Returns the state of a file's newest version; null if there is none. */
async function versionAt(
  path: RelativePath,
  facts: {
    readonly next: NextStep;
    readonly verdict: Verdict;
    readonly known: Known | undefined;
    readonly disk: OnDisk;
    readonly blocker: SenderBlocker | undefined;
    readonly source: WatchedSource;
    readonly live: LiveWork | undefined;
    readonly signal: AbortSignal;
  },
): Promise<Explanation["version"]> {
  const { next, verdict, known, blocker, live } = facts;
  // A source that keeps the documents of files that are gone waits for nothing.
  const row = known?.living ?? (facts.source.deletes === "never" ? undefined : known?.held[0]);
  const isNew = row === undefined;
  if (isNew && (next.action === "nothing" || next.action === "hold") && verdict.wanted) return null;
  const docId = row?.state === "agreed" && facts.source.collection !== "fastest" ? row.docId : null;
  const refusal = isNew ? refusalOf(next, known) : undefined;
  const unknown = unknownWords(facts);
  return versionOf({
    row: refusal === undefined ? row?.state : "failed",
    trouble: refusal ?? row?.error ?? undefined,
    ...(known?.row === undefined ? NO_WORK : (live?.source(known.row.id)?.workAt(path) ?? NO_WORK)),
    change: unknown ?? (refusal === undefined && isChange(next, row?.state) ? next.why : undefined),
    leftOutBy: leftOutBy(verdict, isNew ? next : undefined),
    blocker,
    outage: live?.outage,
    hasMeaning: docId === null ? undefined : await live?.hasMeaning(docId, facts.signal),
    isOwnForm: row && isOwnForm(row),
    isFindable: row?.isFindable ?? refusal?.code === "delete_refused",
  });
}

/** The rule that leaves a file out; undefined: none does, or the rules cannot be read. */
function leftOutBy(verdict: Verdict, next: NextStep | undefined): string | undefined {
  if (!verdict.wanted) return verdict.isUnknown === true ? undefined : verdict.reason;
  return next?.action === "skip" ? next.why : undefined;
}

/** Why nothing is known of a file whose rules cannot be read; undefined: they can, or it is as the ledger says. */
function unknownWords({
  verdict,
  known,
  disk,
}: {
  readonly verdict: Verdict;
  readonly known: Known | undefined;
  readonly disk: OnDisk;
}): string | undefined {
  if (verdict.wanted || verdict.isUnknown !== true) return undefined;
  const row = known?.living;
  const isUnread = row !== undefined && disk.kind === "unreadable";
  const isSame = isUnread || (row?.sizeBytes === disk.sizeBytes && row?.mtimeMs === disk.mtimeMs);
  return isSame ? undefined : `${verdict.reason}, so nothing there is sent or deleted`;
}

/** Reports whether the service keeps a text in a form of its own. */
function isOwnForm({ storedDigest, digest }: FileRow): boolean {
  return storedDigest !== null && storedDigest !== digest;
}

/** Returns what a person needs of a row. */
function factsOf(row: FileRow): FileFacts {
  const { id, docId, state, sizeBytes, mtimeMs, ctimeMs, hash, title, fileUrl } = row;
  const { error, tries, warning, retryAtMs } = row;
  const file = { id, docId, state, sizeBytes, mtimeMs, ctimeMs, hash, title, fileUrl };
  return { ...file, error, tries, warning, retryAtMs, isOwnForm: isOwnForm(row) };
}

/** Why a path without a row is refused: its file, or the delete of its document. */
function refusalOf(
  next: NextStep,
  known: Known | undefined,
): { readonly code: string; readonly message: string } | undefined {
  if (next.action === "refuse") return { code: "refused", message: next.why };
  const message = known?.intents.find(({ kind }) => kind === "delete")?.message ?? undefined;
  return message === undefined ? undefined : { code: "delete_refused", message };
}

/** Whether a step shows that the service does not have what is on disk. */
function isChange({ action }: NextStep, row: FileState | undefined): boolean {
  if (row === "parked" || action === "nothing" || action === "touch" || action === "hold") return false;
  return (action !== "skip" && action !== "refuse") || row === "agreed";
}

const NO_WORK = { work: "unknown", sinceMs: undefined } as const;

/** The ledger's records of a path. */
interface Known {
  /** Undefined: the source was never synced. */
  readonly row: SourceRow | undefined;
  /** As in the markers that were sent. */
  readonly signature: Signature;
  readonly living: FileRow | undefined;
  readonly held: readonly FileRow[];
  readonly intents: readonly OpenIntent[];
  readonly activity: readonly Omit<Activity, "source">[];
}

function knownOf(ledger: ReadLedger, source: WatchedSource, path: RelativePath): Known | undefined {
  const row = ledger.sources.peek(source.absolutePath, source.ownerId, source.collection);
  if (row === undefined) return undefined;
  const rows = ledger.files.at(row.id, path);
  const isHeld = ({ state }: FileRow): boolean => state === "held" || state === "doomed";
  const below = path === "" ? undefined : path;
  const activity = ledger.activity.recent(ACTIVITY_MAX, { source: row.id, below }).toReversed();
  return {
    row,
    signature: sentSignature(ledger.contacts.signature(row.id)),
    living: rows.find((each) => !isHeld(each)),
    held: rows.filter(isHeld),
    intents: ledger.intents.at(row.id, path),
    activity: activity.map(({ source: _source, ...facts }) => facts),
  };
}

interface Facts {
  readonly rules: Rules;
  readonly rulesKey: (path: RelativePath) => number;
  readonly path: RelativePath;
  readonly signal: AbortSignal;
  /** Undefined: there is no ledger yet. */
  readonly files: Files | undefined;
  readonly row: SourceRow | undefined;
}

/** The result of comparing a path. */
interface Comparison {
  /** Undefined: the folder does not exist. */
  readonly difference: Difference | undefined;
  /** The file as the scan sees it; undefined if there is none. */
  readonly entry: ScanEntry | undefined;
}
const NOTHING: Comparison = { difference: undefined, entry: undefined };

/** Compares disk and ledger for this path only, and for an earlier path of the same file. */
async function differenceAt({ rules, rulesKey, path, signal, files, row }: Facts): Promise<Comparison> {
  const { absolutePath } = rules.source;
  const first = await scanPaths(absolutePath, rules, [path], { signal });
  const entry = first.entries.find((each) => each.path === path);
  const ino = entry?.ino;
  const before =
    ino === undefined || row === undefined
      ? []
      : (files?.byInode(row.id, ino) ?? []).map((each) => each.path);
  // Each path once: a repeated row would count as two.
  const paths = [...new Set([path, ...before])];
  const scan = paths.length === 1 ? first : await scanPaths(absolutePath, rules, paths, { signal });
  if (scan.root === undefined) return NOTHING;
  const known = row === undefined ? [] : (files?.below(row.id, paths) ?? []);
  return { difference: reconcile(scan, known, { rulesKey, retryParked: true }), entry };
}

/** Reads a file that may be a document, even if nothing shows that it changed. */
async function readAt(
  { rules, path }: Facts,
  difference: Difference,
  entry: ScanEntry | undefined,
  options: ReadOptions,
): Promise<ReadOutcome | undefined> {
  const isLeftOut =
    !rules.wants(path).wanted ||
    difference.refused.some((each) => each.path === path) ||
    difference.skipped.some((each) => each.entry.path === path);
  if (isLeftOut || entry === undefined) return undefined;
  return readDocument(join(rules.source.absolutePath, path), entry, rules, options);
}

function contentOf(read: ReadOutcome): Explanation["content"] {
  const reason = "reason" in read ? read.reason : read.kind === "unreadable" ? read.code : null;
  return { outcome: read.kind, hash: read.kind === "document" ? read.document.hash : null, reason };
}

function recipeOf(path: RelativePath, recipe: Recipe, rules: Rules): Explanation["recipe"] {
  const { extractorVersion: _version, ...rest } = recipe;
  return { ...rest, from: originOf(path, recipe, rules) };
}

/** The next step for a path that is not a file with a valid name. */
function stepOfNoFile(
  path: RelativePath,
  disk: OnDisk,
  verdict: Verdict,
  known: Known | undefined,
  blocker: SenderBlocker | undefined,
): NextStep {
  if (path === "") return wholeStep(disk, known, blocker);
  return disk.misnamed === undefined ? folderStep(verdict) : misnamedStep(path, disk.misnamed, verdict);
}

/** The next step for the source as a whole. */
function wholeStep(disk: OnDisk, known: Known | undefined, blocker: SenderBlocker | undefined): NextStep {
  if (blocker !== undefined) return { action: "wait", why: blocker.reason };
  if (disk.kind === "absent" || disk.kind === "unreadable")
    return { action: "wait", why: "the source's folder is missing or inaccessible: nothing is sent" };
  const row = known?.row;
  if (row === undefined) return { action: "nothing", why: "it was never synced with this state folder" };
  if (row.held > 0) {
    return {
      action: "hold",
      why: `${counted(row.held, "delete waits", "deletes wait")} for \`kbsync approve\`: ${row.holdReason ?? "held before"}`,
    };
  }
  return { action: "nothing", why: "each file is decided on its own: see `kbsync status`" };
}

function misnamedStep(path: RelativePath, misnamed: string, verdict: Verdict): NextStep {
  if (!verdict.wanted) return { action: "nothing", why: verdict.reason };
  return path.endsWith(misnamed)
    ? { action: "refuse", why: "its name is not valid UTF-8: rename it" }
    : {
        action: "refuse",
        why: `the folder ${misnamed}: its name is not valid UTF-8: rename it to sync what is in it`,
      };
}

function folderStep(verdict: Verdict): NextStep {
  return verdict.wanted
    ? { action: "nothing", why: "a folder is not a document: its files are checked one by one" }
    : { action: "nothing", why: verdict.reason };
}

function nextOf(
  { path, files, rules }: Facts,
  known: Known | undefined,
  wanted: Verdict,
  difference: Difference | undefined,
  read: ReadOutcome | undefined,
  metadata: UserMetadata | undefined,
  disk: OnDisk,
): NextStep {
  const living = known?.living;
  return nextStep({
    path,
    wanted,
    oddity: disk.what,
    difference,
    living,
    keeps: rules.source.deletes === "never",
    heldReason: known !== undefined && known.held.length > 0 ? heldWords(known) : undefined,
    retryWords:
      living?.retryAtMs === undefined || living.retryAtMs === null
        ? undefined
        : `and is tried again at ${new Date(living.retryAtMs).toISOString()}`,
    troubleMessage: living?.error?.message,
    intents: known?.intents ?? [],
    rowOf: ({ id }) => files?.get(id),
    read:
      known !== undefined && read?.kind === "document"
        ? { kind: "document", document: withMarker(read.document, known.signature) }
        : read,
    metadata,
  });
}

function heldWords({ row, held }: Known): string {
  if (held.every(({ state }) => state === "doomed")) return "it was approved";
  return row?.holdReason ?? "held before";
}
