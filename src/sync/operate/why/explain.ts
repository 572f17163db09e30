import { join } from "node:path";
import { counted } from "../../../lib/counted.ts";
import type { Explanation, FileFacts, NextStep, OnDisk } from "../../../wire/daemon-files.ts";
import { metadataOf, withMarker } from "../../send/observe.ts";
import { targetIn } from "../../scan/disk/source-path.ts";
import { readDocument } from "../../scan/read/read.ts";
import type { ReadOutcome } from "../../scan/read/outcome.ts";
import type { FileRow } from "../../ledger/files/rows.ts";
import { senderBlocker } from "../../ledger/blockers.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { rulesKeysOf } from "../../daemon/pass/rules-key.ts";
import { uploadedHash } from "../../plan/decide.ts";
import type { Difference, FileState, Recipe, RelativePath, ScanEntry } from "../../plan/model.ts";
import { reconcile } from "../../plan/reconcile.ts";
import { sentSignature } from "../../plan/marker.ts";
import { type LiveWork, type SenderBlocker, versionOf } from "../../plan/version.ts";
import { openRules, type Rules, type Verdict, type WatchedSource } from "../../scan/rules/rules.ts";
import { scanPaths } from "../../scan/scan.ts";
import { inspectPath } from "../../scan/disk/inspect-path.ts";
import { type Known, nextStep, stepAfterReading, withBlocker } from "./next.ts";

/** The replacement character of Node for the bytes of a name that are not valid UTF-8, in arguments and in listings. */
const REPLACEMENT = "\uFFFD";

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
  // No rule applies to the source's own folder: rules are about its contents.
  const verdict: Verdict = path === "" ? { wanted: true } : rules.takes(path, disk.kind);
  const known = ledger && knownOf(ledger, source, path);
  const blocker = known?.row && senderBlocker(known.row);
  const facts = { ledger, rules, path, known, verdict, disk, blocker, live, signal };
  const noFile = stepOfNoFile(facts);
  const { read, next } = noFile === undefined ? await fileAt(facts) : { read: undefined, next: noFile };
  return {
    source: source.absolutePath,
    path,
    wanted: verdict.wanted,
    leftOutBy: verdict.wanted ? null : verdict.reason,
    disk,
    content: read === undefined ? null : contentOf(read),
    recipe: read?.kind === "document" ? recipeOf(read.document.recipe) : null,
    ledger: known?.living === undefined ? null : factsOf(known.living),
    held: known?.held.map(factsOf) ?? [],
    intents: known?.intents ?? [],
    state: {
      paused: known?.row?.paused ?? false,
      halted: known?.row?.lost ?? known?.row?.halted ?? null,
      holdReason: known?.row?.holdReason ?? null,
    },
    activity: known?.activity ?? [],
    version: noFile === undefined ? await versionAt(facts, next) : null,
    next: noFile ?? withBlocker(next, blocker),
  };
}

/** What an explanation is made of. */
interface Facts {
  /** Undefined: there is none yet. */
  readonly ledger: ReadLedger | undefined;
  readonly rules: Rules;
  readonly path: RelativePath;
  readonly known: Known | undefined;
  readonly verdict: Verdict;
  readonly disk: OnDisk;
  readonly blocker: SenderBlocker | undefined;
  readonly live: LiveWork | undefined;
  readonly signal: AbortSignal;
}

/** Returns the state of a file's newest version; null if there is none. */
async function versionAt(facts: Facts, next: NextStep): Promise<Explanation["version"]> {
  const { path, verdict, known, blocker, live } = facts;
  const { source } = facts.rules;
  // A source that keeps the documents of files that are gone waits for nothing.
  const row = known?.living ?? (source.deletes === "never" ? undefined : known?.held[0]);
  const isNew = row === undefined;
  if (isNew && (next.action === "nothing" || next.action === "hold") && verdict.wanted) return null;
  const docId = row?.state === "agreed" && source.collection !== "fastest" ? row.docId : null;
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
function unknownWords({ verdict, known, disk }: Facts): string | undefined {
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

/** What reading a file shows, and what a pass would do with it. */
interface FileFound {
  /** Undefined if there is nothing to read. */
  readonly read: ReadOutcome | undefined;
  readonly next: NextStep;
}

/** Compares a file with its row, and reads it if it may be a document, even if nothing shows that it changed. */
async function fileAt(facts: Facts): Promise<FileFound> {
  const { ledger, rules, path, known, verdict, disk, signal } = facts;
  const { takesMetadata = false, readsMails: uploadsMails = false } = ledger?.sources.declared() ?? {};
  const { difference, entry } = await differenceAt(facts, takesMetadata);
  const candidate = difference?.candidates.find((each) => each.entry.path === path);
  const row =
    candidate === undefined ? known?.living : candidate.known && ledger?.files.get(candidate.known.id);
  const isRead =
    entry !== undefined &&
    verdict.wanted &&
    difference?.refused.every((each) => each.path !== path) === true &&
    difference.skipped.every((each) => each.entry.path !== path);
  const options = { signal, uploadsMails, uploadedHash: uploadedHash(row) };
  const read = isRead
    ? await readDocument(join(rules.source.absolutePath, path), entry, rules, options)
    : undefined;
  const document = read?.kind === "document" ? read.document : undefined;
  const metadata = document !== undefined && takesMetadata ? metadataOf(document, rules) : undefined;
  const marked =
    document !== undefined && known !== undefined
      ? { kind: "document" as const, document: withMarker(document, known.signature) }
      : read;
  const afterReading =
    candidate && marked && stepAfterReading({ read: marked, metadata, row, from: candidate.from });
  const keeps = rules.source.deletes === "never";
  return { read, next: nextStep({ path, verdict, disk, difference, known, keeps, afterReading }) };
}

/** The result of comparing a path. */
interface Comparison {
  /** Undefined: the folder does not exist. */
  readonly difference: Difference | undefined;
  /** The file as the scan sees it; undefined if there is none. */
  readonly entry: ScanEntry | undefined;
}

/** Compares disk and ledger for this path only, and for an earlier path of the same file. */
async function differenceAt(
  { ledger, rules, path, known, signal }: Facts,
  takesMetadata: boolean,
): Promise<Comparison> {
  const { absolutePath } = rules.source;
  const first = await scanPaths(absolutePath, rules, [path], { signal });
  const entry = first.entries.find((each) => each.path === path);
  const id = known?.row?.id;
  const before = entry === undefined || id === undefined ? [] : (ledger?.files.byInode(id, entry.ino) ?? []);
  // Each path once: a repeated row would count as two.
  const paths = [...new Set([path, ...before.map((each) => each.path)])];
  const scan = paths.length === 1 ? first : await scanPaths(absolutePath, rules, paths, { signal });
  if (scan.root === undefined) return { difference: undefined, entry: undefined };
  const rows = id === undefined ? [] : (ledger?.files.below(id, paths) ?? []);
  const rulesKey = rulesKeysOf(rules, () => takesMetadata);
  return { difference: reconcile(scan, rows, { rulesKey, retryParked: true }), entry };
}

function contentOf(read: ReadOutcome): Explanation["content"] {
  const reason = "reason" in read ? read.reason : read.kind === "unreadable" ? read.code : null;
  return { outcome: read.kind, hash: read.kind === "document" ? read.document.hash : null, reason };
}

function recipeOf({ extractorVersion: _version, ...recipe }: Recipe): Explanation["recipe"] {
  return recipe;
}

/** The next step for a path that is no file, or by whose name none can be opened; undefined: it may be a file. */
function stepOfNoFile({ path, disk, verdict, known, blocker }: Facts): NextStep | undefined {
  if (path === "") return wholeStep(disk, known, blocker);
  const isMisnamed = disk.kind === "absent" && path.includes(REPLACEMENT);
  if (disk.kind !== "folder" && !isMisnamed) return undefined;
  if (!verdict.wanted) return { action: "nothing", why: verdict.reason };
  return isMisnamed
    ? { action: "refuse", why: "its name, or that of a folder above it, is not valid UTF-8: rename it" }
    : { action: "nothing", why: "a folder is not a document: its files are checked one by one" };
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
