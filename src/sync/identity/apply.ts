import { kindOfName } from "../../formats/kinds.ts";
import { type ActionContext, reportCompared } from "../send/context.ts";
import type { AssignedResource } from "../ledger/files/files.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import { type Alteration, lossReason } from "../plan/alterations.ts";
import { fileTag, readMarker } from "../plan/marker.ts";
import type { DocumentKind, RelativePath, ScanEntry } from "../plan/model.ts";
import { absentName, acknowledgedTag, fileOf, hashOfTag } from "../plan/versions.ts";
import type { Comparison, Verdict } from "./compare.ts";
import { askPresence, findThere, type OwnedResource, sampleOf } from "./presence.ts";
import type { Altered, FoundResource, IdentitySource } from "./listed.ts";
import type { Gathered } from "./situation.ts";

/** The source of a comparison that is applied. */
export interface ApplySource extends IdentitySource {
  /** Reports whether a file is being read or sent: its own job decides about it. */
  isBusy(path: RelativePath): boolean;
  /** Has a path checked; undefined: the whole source. */
  hint(path: RelativePath | undefined): void;
  deleteLater(deletion: Deletion): void;
}

export interface ApplyOptions {
  /** Changes the ledger as the comparison says. Otherwise the differences are only reported. */
  readonly repair: boolean;
  /** A person agreed to send again what the service lost. */
  readonly isApproved: boolean;
  /** Reports whether a resource was found gone before, and may be created again. */
  isKnownGone(docId: string): boolean;
  /** How far the list may lag behind the service's answers, in milliseconds. */
  readonly lagMs: number;
  readonly signal: AbortSignal;
}

/** What became of a comparison. */
export type Applied =
  | {
      readonly kind: "applied";
      readonly findings: readonly Found[];
      readonly unjudged: number;
      /** Resources that the service no longer has, and that may be created again. */
      readonly gone: ReadonlySet<string>;
    }
  /** The list lacks what the service has, that of `path`, or may not show yet whether most is lost: it decides nothing. */
  | { readonly kind: "incomplete"; readonly path: RelativePath | undefined; readonly missing: number }
  /** The service lost most of what the ledger knows: nothing is sent again before a person agrees. */
  | { readonly kind: "lost"; readonly reason: string };

/** A difference that a comparison found. */
export interface Found {
  readonly path: RelativePath;
  readonly docId: string;
  readonly title: string;
  readonly kind: "missing" | "altered" | "twice" | "returned";
  readonly what: string;
  readonly isRepaired: boolean;
}

type Of<K extends Verdict["kind"]> = Extract<Verdict, { readonly kind: K }>;

/** Rows written in one transaction. */
const WRITE_ROWS = 500;
/** More files than this are covered by one check of the whole source. */
const HINTS_MAX = 1000;

/**
 * Applies a comparison to the ledger: each file's row says what its resource's marker says, and the next check sends what
 * differs. Asks first for resources that the list lacks, and before a second one is deleted, for the file's own.
 */
export async function applyComparison(
  context: ActionContext,
  source: ApplySource,
  gathered: Gathered,
  { verdicts }: Comparison,
  options: ApplyOptions,
): Promise<Applied> {
  // Acknowledgements in one millisecond have later times than that.
  const settledMs = options.lagMs === 0 ? Infinity : Date.now() - options.lagMs;
  const asks = verdicts.filter((each) => each.kind === "ask");
  // A row without a version was found gone before: sending its file decides, if it is ever sent.
  const isFoundGone = (each: Of<"ask">): boolean =>
    each.instead === undefined && gathered.rows.get(each.docId)?.hash === "" && !isKept(gathered, each);
  const unlisted = asks.filter((each) => !isFoundGone(each));
  // A list may be older than what was just sent: it may lack that, or show the version before. An old ledger sent that before it
  // was copied: whether it is there, only the service says.
  const isOld = ({ instead }: Of<"ask">): boolean => gathered.situation.isDistrusted && instead !== undefined;
  const absent = unlisted.filter(
    (each) => isOld(each) || (gathered.rows.get(each.docId)?.acknowledgedMs ?? 0) <= settledMs,
  );
  const there = await findThere(context, askedFor(gathered, absent), options.signal);
  if (there !== undefined && !options.isApproved)
    return { kind: "incomplete", path: there.path, missing: absent.length };

  // What was found gone before is being created again.
  const isExpected = ({ hash, docId }: { readonly hash: string; readonly docId: string }): boolean =>
    hash !== "" && !options.isKnownGone(docId);
  const acknowledged = gathered.shown + [...gathered.rows.values()].filter(isExpected).length;
  const lostWrites = verdicts.filter(({ kind }) => kind === "send-again").length;
  const lossOf = (gone: readonly Of<"ask">[], changed: readonly Altered[]): string | undefined =>
    lossReason({
      acknowledged,
      missing: gone.filter(({ docId }) => !options.isKnownGone(docId)).length,
      altered: lostWrites + changed.filter(({ isAsStored }) => !isAsStored).length,
    });
  const altered = gathered.altered.filter(({ row }) => row.acknowledgedMs <= settledMs);
  // A person who agreed to send by such a list has not agreed to more.
  const missing = there === undefined ? absent : [];
  const reason = lossOf(missing, altered);
  if (reason !== undefined && !options.isApproved) return { kind: "lost", reason };
  // What the list may not show yet may be lost as well. Then a later list decides about all of it.
  const isLoss = missing.length + altered.length > 0 && lossOf(unlisted, gathered.altered) !== undefined;
  if (isLoss && !options.isApproved) return { kind: "incomplete", path: undefined, missing: unlisted.length };

  const work = openWork(context, source, gathered, {
    repair: options.repair,
    isOther: isAnotherFolder(gathered, verdicts),
  });
  // A file that is being sent finds out by itself.
  const settled = new Set(missing.filter(({ path }) => !source.isBusy(path)));
  for (const verdict of verdicts) if (verdict.kind !== "ask" || settled.has(verdict)) work.take(verdict);
  for (const each of altered) work.resend(each);
  for (const each of settled)
    if (isKept(gathered, each)) work.findings.push(await settleKept(context, gathered, each, options));
  const surplus = verdicts.filter((each) => each.kind === "surplus");
  const unjudged = unlisted.length - settled.size + gathered.altered.length - altered.length;
  // A person who approved knows of what a lagging list may not show, too.
  const lost = options.isApproved && there === undefined ? unlisted : missing;
  const gone = new Set([...asks.filter(isFoundGone), ...lost].map(({ docId }) => docId));
  if (!options.repair) {
    const doubles = surplus.map((each) => foundTwice(gathered, each));
    return { kind: "applied", findings: [...work.findings, ...doubles], unjudged, gone };
  }
  await work.write();
  const doubles: Found[] = [];
  const texts = surplus.length > 0 ? textsOf(gathered) : new Map();
  for (const each of surplus)
    doubles.push(await settleSurplus(context, source, gathered, texts, each, options.signal));
  const findings = [...work.findings, ...doubles];
  for (const { path, docId, what, isRepaired } of findings)
    if (isRepaired) reportCompared(context, source, path, docId, what);
  return { kind: "applied", findings, unjudged, gone };
}

/** Returns the resources that are asked for. One that is replaced by another resource of its file must be gone for certain. */
function askedFor({ rows }: Gathered, asks: readonly Of<"ask">[]): readonly OwnedResource[] {
  const isReplaced = ({ instead }: Of<"ask">): boolean => instead !== undefined;
  const sample = [...asks.filter(isReplaced), ...sampleOf(asks.filter((each) => !isReplaced(each)))];
  return sample.map(({ docId, path }) => ({ docId, path, title: rows.get(docId)?.title ?? path }));
}

/** Reports whether a resource stays although its file is gone. */
function isKept({ rows }: Gathered, { docId }: Of<"ask">): boolean {
  return rows.get(docId)?.state === "held";
}

/** Forgets a resource that stayed although its file is gone, if the service no longer has it: nothing can be sent again. */
async function settleKept(
  context: ActionContext,
  { rows }: Gathered,
  { path, docId }: Of<"ask">,
  { repair, signal }: ApplyOptions,
): Promise<Found> {
  const { ledger } = context;
  const { id, title } = rows.get(docId) ?? { id: 0, title: "" };
  const isGone = repair && (await askPresence(context, { docId, title, path }, signal)) === "gone";
  if (isGone)
    await ledger.write(() => {
      // Its file may be back.
      if (ledger.files.get(id)?.state === "held") ledger.files.remove(id);
    });
  const what = "the service no longer has it, and its file is gone";
  return { path, docId, title, kind: "missing", what, isRepaired: isGone };
}

/** The changes of the ledger that a comparison leads to. */
interface Work {
  readonly findings: Found[];
  take(verdict: Verdict): void;
  resend(altered: Altered): void;
  write(): Promise<void>;
}

function openWork(
  context: ActionContext,
  source: ApplySource,
  gathered: Gathered,
  { repair, isOther }: { readonly repair: boolean; readonly isOther: boolean },
): Work {
  const { ledger } = context;
  const { rows, resources, entries, descriptions } = gathered;
  const findings: Found[] = [];
  const changes: (() => void)[] = [];
  const paths: RelativePath[] = [];
  const deletions: Deletion[] = [];
  const sent = new Map(gathered.situation.rows.map((row) => [row.docId, row.sent]));

  const change = (path: RelativePath, apply: () => void): void => {
    paths.push(path);
    // A file whose job began meanwhile is left to that.
    changes.push(() => {
      if (!source.isBusy(path)) apply();
    });
  };
  const find = (
    path: RelativePath,
    docId: string,
    kind: Found["kind"],
    what: string,
    isRepaired = true,
  ): void => {
    const title = rows.get(docId)?.title ?? resources.get(docId)?.title ?? "";
    findings.push({
      path,
      docId,
      title,
      kind,
      what,
      isRepaired: repair && isRepaired && !source.isBusy(path),
    });
  };
  /** Nothing shows that the folder is the one that the documents came from: a person decides. */
  const hold = (id: number): void => {
    ledger.files.hold(id);
    ledger.sources.setHold(source.id, { halted: null, reason: OTHER_FOLDER });
  };
  /** The text may not be the one that the marker names, so the file that gets the resource sends its own. */
  const doubt = (id: number): void => ledger.files.setState(id, "unsure");
  const assign = (path: RelativePath, docId: string, then?: (id: number) => void): void => {
    const resource = resources.get(docId);
    const reading = readMarker(descriptions.get(docId));
    if (resource === undefined || reading.kind !== "whole") return;
    const { bytes, file } = reading.marker;
    const entry = entries.get(path) ?? { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 };
    change(path, () => {
      const owner = ledger.files.byDoc(docId);
      // The file that has it is being sent: afterwards, the marker is that file's.
      if (owner !== undefined && source.isBusy(owner.path)) return;
      const id = ledger.files.assign(source.id, assignedOf(source, entry, resource, { bytes, file }));
      ledger.files.warn(docId, resource.warning);
      then?.(id);
    });
  };
  /** The ledger's row is what this ledger sent, or older than the marker. */
  const isKnown = (path: RelativePath, docId: string): boolean => {
    const row = rows.get(docId);
    if (row?.path !== path) return false;
    const reading = readMarker(descriptions.get(docId));
    if (reading.kind !== "whole" || reading.marker.source !== source.signature.source) return true;
    const { file, bytes } = reading.marker;
    if (gathered.situation.isDistrusted) return file === fileTag(path) && bytes === acknowledgedTag(row);
    return sent.get(docId)?.some((each) => each.file === file && each.bytes === bytes) === true;
  };

  return {
    findings,
    take: (verdict) => {
      switch (verdict.kind) {
        case "same":
        case "update":
          if (!isKnown(verdict.path, verdict.docId)) assign(verdict.path, verdict.docId);
          return;
        case "move":
          assign(verdict.path, verdict.docId, verdict.isUncertain === true ? doubt : undefined);
          return;
        case "ask": {
          if (isKept(gathered, verdict) && verdict.instead === undefined) return;
          const row = rows.get(verdict.docId);
          find(verdict.path, verdict.docId, "missing", "the service no longer has it");
          if (verdict.instead !== undefined) assign(verdict.path, verdict.instead, doubt);
          // Sending the file finds out: only the resource's own 404 proves that it is gone.
          else if (row !== undefined) change(verdict.path, () => ledger.files.distrust(row.id));
          return;
        }
        case "send-again": {
          const row = rows.get(verdict.docId);
          find(verdict.path, verdict.docId, "altered", "the service lost a change that it had acknowledged");
          if (row !== undefined) change(verdict.path, () => ledger.files.setState(row.id, "unsure"));
          return;
        }
        case "lost":
          find(
            verdict.path,
            verdict.docId,
            "altered",
            "the service answered twice that it stored this version, and shows an older one",
            false,
          );
          return;
        case "delete":
        case "hidden": {
          const { docId } = verdict;
          const row = rows.get(docId);
          if (row?.state === "held" || (row !== undefined && isKnown(row.path, docId))) return;
          // That the file of a row is gone is for the plan, with its moves and brakes. Renamed since an old ledger, its name may
          // be another file's.
          if (row !== undefined && verdict.file === fileOf(row)) assign(row.path, docId);
          else if (verdict.kind === "delete")
            assign(
              absentName(resources.get(docId)?.title ?? "", docId),
              docId,
              isOther ? hold : gathered.situation.isDistrusted ? undefined : doubt,
            );
          return;
        }
        case "delete-again": {
          const { docId } = verdict;
          // Its delete is under way or refused: that is no news.
          if (ledger.files.ownsDoc(docId)) return;
          const path = absentName(resources.get(docId)?.title ?? "", docId);
          find(path, docId, "returned", "kbsync deleted it, and it exists again; was the service restored?");
          changes.push(() => {
            if (ledger.files.ownsDoc(docId)) return;
            deletions.push({ id: ledger.intents.delete(source.id, path, docId), path, docId });
          });
          return;
        }
        case "wait":
        case "surplus":
        case "create":
      }
    },
    resend: ({ row, alterations, resource, isAsStored, isUnmarked }) => {
      // Where markers are kept, a description without one is no form of the service's own: a person may remove it often. That
      // changes the document.
      const isLost = isAsStored && isUnmarked;
      find(row.path, row.docId, "altered", isLost ? LOST_NAMES : alterationWords(alterations), !isLost);
      if (isLost) return;
      change(row.path, () => {
        const now = ledger.files.acknowledged(row.docId);
        // It may have been sent since.
        if (now?.acknowledgedMs !== row.acknowledgedMs) return;
        // Of a file that is gone nothing can be sent: the resource stays as it is.
        if (now.state !== "held" && now.state !== "doomed") ledger.files.setState(row.id, "unsure");
        ledger.files.setStored(row.id, isUnmarked ? { ...resource, label: row.label } : resource);
      });
    },
    write: async () => {
      for (let at = 0; at < changes.length; at += WRITE_ROWS)
        await ledger.write(() => {
          for (const apply of changes.slice(at, at + WRITE_ROWS)) apply();
        });
      for (const deletion of deletions) source.deleteLater(deletion);
      if (paths.length > HINTS_MAX) source.hint(undefined);
      else for (const path of paths) source.hint(path);
    },
  };
}

/** Returns a row for a resource that a list shows. */
function assignedOf(
  { rules }: ApplySource,
  entry: ScanEntry,
  { docId, url, title, label, settings, metadataHash, scope, isUnfinished = false }: FoundResource,
  { bytes, file }: { readonly bytes: string; readonly file: string },
): AssignedResource {
  const kind: DocumentKind =
    url === undefined ? "content" : kindOfName(entry.path).kind === "link" ? "link" : "file";
  return {
    entry,
    docId,
    hash: hashOfTag(bytes),
    title,
    label,
    sent: `${file}.${bytes}`,
    shape: { kind, ...scope, settings: { ...rules.source.settings, ...settings } },
    fileUrl: url,
    metadataHash,
    // If the service does not end its work on it, its file is sent again.
    isUnfinished,
  };
}

/** Why the deletes of all resources that a list shows are held. */
const OTHER_FOLDER = "none of the documents that the service has are of files in this folder";

const LOST_NAMES = "the service answered that it stored its title and description, and shows others";

/** Reports whether no resource of the source has a file, but for one that was just made to learn the collection's id. */
function isAnotherFolder(
  { shown, rows, situation: { isNew } }: Gathered,
  verdicts: readonly Verdict[],
): boolean {
  const isOfFile = (verdict: Verdict): boolean => {
    const { kind } = verdict;
    if (kind === "delete" || kind === "delete-again" || kind === "create" || kind === "surplus") return false;
    return !(isNew && rows.has(verdict.docId));
  };
  return shown === 0 && !verdicts.some(isOfFile);
}

/** Says what of a resource was changed at the service. */
function alterationWords(alterations: readonly Alteration[]): string {
  const were = alterations.length === 1 ? "was" : "were";
  return `its ${alterations.join(" and ")} ${were} changed at the service`;
}

function foundTwice({ resources }: Gathered, { docId, ofDocId, isOurs }: Of<"surplus">, path = ""): Found {
  const title = resources.get(docId)?.title ?? "";
  const what = isOurs
    ? `it is a second document of the file of ${ofDocId}`
    : `it is a second document of the file of ${ofDocId}, which another kbsync wrote: it is left alone`;
  return { path, docId, title, kind: "twice", what, isRepaired: false };
}

/**
 * Deletes a second resource of a file, if this installation made it and the file's own has answered a read. A copy that a person
 * made and changed is only reported.
 */
async function settleSurplus(
  context: ActionContext,
  source: ApplySource,
  gathered: Gathered,
  texts: Texts,
  verdict: Of<"surplus">,
  signal: AbortSignal,
): Promise<Found> {
  const { ledger } = context;
  const { docId, ofDocId, isOurs } = verdict;
  const row = ledger.files.acknowledged(ofDocId);
  const path = row?.path ?? "";
  const found = foundTwice(gathered, verdict, path);
  if (!isOurs || row === undefined || source.isBusy(path)) return found;
  if (isAnotherText(gathered, texts, docId))
    return { ...found, what: `${found.what}, with another text: it is left alone` };
  if ((await askPresence(context, row, signal)) !== "there") return found;
  let deletion: Deletion | undefined;
  await ledger.write(() => {
    const gone = ledger.files.byDoc(docId);
    if (gone?.state === "held") ledger.files.remove(gone.id);
    if (!ledger.files.ownsDoc(docId))
      deletion = { id: ledger.intents.delete(source.id, path, docId), path, docId };
  });
  if (deletion === undefined) return found;
  source.deleteLater({ ...deletion, isSpare: true });
  return { ...found, isRepaired: true };
}

/** The texts that claim to be one version, as the digests of what list and ledger show. */
type Texts = ReadonlyMap<string | undefined, readonly { readonly docId: string; readonly digest: string }[]>;

/** Returns all texts by the tag of the bytes that they claim. */
function textsOf(gathered: Gathered): Texts {
  const { resources, rows } = gathered;
  const listed = [...resources.values()]
    .filter(({ url, isUnfinished }) => url === undefined && isUnfinished !== true)
    .map(({ docId, digest }) => ({ docId, digest, bytes: claimOf(gathered, docId) }));
  // Those that the list shows as the ledger knows them.
  const known = [...rows.values()]
    .filter(({ docId, shape }) => !resources.has(docId) && shape.kind === "content")
    .flatMap((row) =>
      [row.digest, row.storedDigest ?? ""].map((digest) => ({
        docId: row.docId,
        digest,
        bytes: acknowledgedTag(row),
      })),
    );
  const texts = [...listed, ...known].filter(({ digest }) => digest !== "");
  return Map.groupBy(texts, ({ bytes }) => bytes);
}

function claimOf({ descriptions }: Gathered, docId: string): string | undefined {
  const reading = readMarker(descriptions.get(docId));
  return reading.kind === "whole" ? reading.marker.bytes : undefined;
}

/** Reports whether a second resource has another text than files' own that claim its version, or, if none does, than any other. */
function isAnotherText(gathered: Gathered, texts: Texts, docId: string): boolean {
  const alike = texts.get(claimOf(gathered, docId)) ?? [];
  const second = alike.find((each) => each.docId === docId);
  const { own = [], copies = [] } = Object.groupBy(
    alike.filter((each) => each.docId !== docId),
    (each) => (gathered.rows.has(each.docId) ? "own" : "copies"),
  );
  const others = own.length > 0 ? own : copies;
  return second !== undefined && others.length > 0 && !others.some(({ digest }) => digest === second.digest);
}
