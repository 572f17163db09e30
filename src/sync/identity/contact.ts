import { kindOfName } from "../../formats/kinds.ts";
import type { ActionContext } from "../send/context.ts";
import type { HoldKind } from "../ledger/sources/rows.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { sameShape } from "../plan/decide.ts";
import { fileTag, readMarker } from "../plan/marker.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import type { Again } from "../ledger/contacts.ts";
import type { AcknowledgedRow } from "../ledger/files/rows.ts";
import { parkMs } from "../plan/retry.ts";
import { hasSameBytes } from "../plan/versions.ts";
import { type Applied, type ApplySource, applyComparison } from "./apply.ts";
import { compare, type Comparison, type ListMemory, memoryOfUnapplied, NO_MEMORY } from "./compare.ts";
import { findThere, sampleOf } from "./presence.ts";
import { findOmission } from "./sample.ts";
import {
  copiedWords,
  holdWords,
  incompleteWords,
  NOT_SHOWN,
  PROBE_UNANSWERED,
  UNCLEAR_LISTS,
  unmarkedWords,
} from "./hold-words.ts";
import { gatherTwice } from "./gather-twice.ts";
import { gather, type Gathered } from "./situation.ts";

/**
 * Decides whether a source may send. Before its first write, a source whose ledger is new, old or another installation's is
 * compared with the service's list; later, when several of its resources turn out to be gone. While the result is a hold,
 * nothing is sent until a person approves or a later comparison finds nothing.
 */
export interface Contact {
  /** Reports whether nothing may be sent: held, or about to be compared. */
  isClosed(): boolean;
  /** Called before a check of the folder: compares with the list if that is due. Returns false if nothing may be sent. */
  ready(): Promise<boolean>;
  /** When a held source is compared again. */
  nextCheckMs(): number;
  /**
   * Returns those of the files to send that may be sent now: of a new ledger whose service must first show what it does, one.
   * `isWhole`: the files come from a check of the whole source.
   */
  admit(candidates: readonly Candidate[], isWhole: boolean): readonly Candidate[];
  /** Reports whether the check after the end of a job may admit another file. */
  isProbing(): boolean;
  /** Files that wait for that. Each returns with a check of the whole source. */
  waiting(): ReadonlySet<RelativePath>;
  /** The service's answers, or the folder, raise doubts whether they are the same: compares before the next write. */
  suspect(): void;
  /** Called when a row's resource is gone. True: it may be created again. False: these are many, a comparison comes first. */
  mayRecreate(docId: string): boolean;
  /** Compares now, and holds the source where that must be. Throws `list_refused`. */
  compare(options: { readonly repair: boolean; readonly signal: AbortSignal }): Promise<Compared>;
  /**
   * When, by the system's clock, the source should be compared again although nothing is due, because a list may have lagged;
   * undefined: never.
   */
  againMs(): number | undefined;
  /** A create was sent twice: a later list may show a second resource. */
  compareLater(): void;
}

/** The result of comparing a source. `unlisted`: the collection's id is unknown. `unclear`: two lists differ again and again. */
export type Compared =
  | { readonly kind: "unlisted" }
  | { readonly kind: "unclear" }
  | {
      readonly kind: "held";
      readonly hold: Exclude<HoldKind, "lost">;
      readonly reason: string;
      readonly gathered: Gathered;
    }
  | (Applied & { readonly gathered: Gathered });

export interface ContactOptions {
  readonly context: ActionContext;
  readonly source: ApplySource & { readonly markerId: string };
  /** How far the list may lag behind the service's answers; 0: not at all. */
  readonly lagMs: number;
  /** One pass: if the service refuses a list, the pass ends. */
  readonly once: boolean;
  readonly signal: AbortSignal;
  /** Reports whether files or deletes of the source are in flight. */
  readonly isSending: () => boolean;
  /** Schedules a check of the whole source. */
  readonly scanAt: (atMs: number) => void;
  readonly onWarning: (error: Error) => void;
}

/** Resources that may turn out to be gone within `GONE_MS` before a comparison: single ones are ordinary. */
const GONE_MAX = 3;
const GONE_MS = 10 * 60_000;
/**
 * A list that may have lagged is read again after these multiples of the lag. The last is far beyond any lag: a service with a
 * backlog may act that late on a request that nobody waits for any more.
 */
const AGAIN_LAGS = [1.25, 4, 12, 45];
/** A request that nobody answered may act this much later, even where lists do not lag. */
const LATE_MS = 5000;
/** A source of which a part could not be read is compared again after this. */
const HIDDEN_AGAIN_MS = 10 * 60_000;
/** First wait for a list that shows what was sent; it doubles up to a minute. */
const SHOWN_MS = 1000;
const SHOWN_MS_MAX = 60_000;

/** What a comparison could not decide, because it did not see all files. */
interface Hidden {
  /** Tags of files that have a resource and that it did not find. */
  readonly files: ReadonlySet<string>;
  /** There are such files, or the list may lack the resources of files in the parts that it could not read. */
  readonly isOpen: boolean;
  /** Reports whether a path lies in such a part. */
  isUnseen(path: RelativePath): boolean;
}

const NOTHING_HIDDEN: Hidden = { files: new Set(), isOpen: false, isUnseen: () => false };

/** Opens the contact of a source with its service, held if it was so before. */
export function openContact(options: ContactOptions): Contact {
  const { context, source, lagMs, once, signal, scanAt, onWarning } = options;
  const { ledger, now } = context;
  let isHeld = ledger.contacts.loss(source.id) !== undefined;
  let again = ledger.contacts.again(source.id);
  let isDue = isUnknown(context, source) || (once && isAgainDue(context, source, again));
  let isProbing = false;
  const waiting = new Set<RelativePath>();
  /** A single pass has no file left to probe the service with. */
  let areAllParked = false;
  let hidden = NOTHING_HIDDEN;
  let checks = 0;
  let nextMs = 0;
  let memory: ListMemory = NO_MEMORY;
  let goneMs: readonly number[] = [];
  /** What the last comparison found gone, which may be created again for a while. */
  let gone: { readonly docIds: ReadonlySet<string>; readonly untilMs: number } = {
    docIds: new Set(),
    untilMs: -Infinity,
  };
  const isKnownGone = (docId: string): boolean => gone.docIds.has(docId) && now() < gone.untilMs;
  const noteGone = (docIds: ReadonlySet<string>): void => {
    gone = { docIds, untilMs: now() + GONE_MS };
  };
  let turn: Promise<unknown> = Promise.resolve();

  const hold = async (reason: string, waitMs: number, kind: HoldKind): Promise<false> => {
    isHeld = true;
    nextMs = now() + waitMs;
    scanAt(nextMs);
    await ledger.write(() => ledger.contacts.setLoss(source.id, reason, kind));
    return false;
  };
  const holdLong = async (reason: string, kind: HoldKind): Promise<false> => {
    checks += 1;
    return await hold(reason, parkMs(checks), kind);
  };
  /** What a partial comparison left open is decided when its files appear, or later. */
  const noteHidden = (comparison: Comparison, { situation, isUnseen }: Gathered, mayOmit: boolean): void => {
    const files = new Set(comparison.verdicts.flatMap((each) => (each.kind === "hidden" ? [each.file] : [])));
    const isOpen = files.size > 0 || (mayOmit && situation.isPartial);
    hidden = isOpen ? { files, isOpen, isUnseen } : NOTHING_HIDDEN;
  };
  const open = async (): Promise<true> => {
    const isTakenOver = hasOtherSignature(context, source);
    isHeld = false;
    isDue = false;
    isProbing = false;
    goneMs = [];
    checks = 0;
    await ledger.write(() => {
      ledger.contacts.setLoss(source.id, undefined);
      ledger.contacts.setAdopted(source.id);
      if (hidden.isOpen) ledger.contacts.distrust(source.id);
      ledger.contacts.sign(source.id, source.markerId, source.signature.writer);
      if (isTakenOver) ledger.files.reread(source.id);
      for (const intent of ledger.intents.creates(source.id)) {
        if (source.isBusy(intent.path)) continue;
        if (isMade(context, intent)) ledger.intents.remove(intent.id);
        else ledger.intents.doubt(intent.id, null);
      }
    });
    return true;
  };
  const setAgain = (next: Again | undefined): void => {
    again = next;
    ledger.note(() => ledger.contacts.setAgain(source.id, next));
  };
  const compareLater = (round = 0): void => {
    if (hidden.files.size > 0) setAgain({ atMs: Date.now() + HIDDEN_AGAIN_MS, round });
    else {
      const next = againAfter(round, lagMs);
      setAgain(next);
      // What did not act by now is not expected to.
      if (next === undefined) ledger.note(() => ledger.intents.forgetDoubts(source.id));
    }
  };
  if (again === undefined && ledger.intents.doubts(source.id).length > 0) compareLater();

  const compareOnce = async (
    { repair, signal: stop }: { readonly repair: boolean; readonly signal: AbortSignal },
    isApproved: boolean,
  ): Promise<Compared> => {
    const isUnknownNow = isUnknown(context, source);
    const gathered = await (isUnknownNow && lagMs > 0 ? gatherTwice : gather)(context, source, {
      signal: stop,
    });
    if (gathered === undefined) return { kind: "unlisted" };
    if (gathered === "unclear") return { kind: "unclear" };
    const compareAs = (isAgreed: boolean): Comparison =>
      compare({ ...gathered.situation, isApproved: isAgreed, memory, nowMs: Date.now(), lagMs });
    const findOmissionOf = async (found: Comparison): Promise<string | undefined> =>
      isUnknownNow && !isApproved
        ? await findOmission(context, source, omissionOptions(gathered, found, stop))
        : undefined;
    const comparison = compareAs(isApproved);
    const before = memory;
    ({ memory } = comparison);
    noteHidden(comparison, gathered, isUnknownNow && lagMs > 0);
    if (comparison.holds.length > 0) {
      const words = holdWords(gathered, comparison.holds);
      // Who takes over what a list shows would have the rest sent twice.
      const omission = await findOmissionOf(compareAs(true));
      if (omission === undefined) return { kind: "held", hold: "identity", reason: words, gathered };
      return { kind: "held", hold: "unclear", reason: `${words}; ${omission}`, gathered };
    }
    await noteMarkers(context, gathered);
    const applied = await applyComparison(context, source, gathered, comparison, {
      repair,
      isApproved,
      isKnownGone,
      lagMs,
      // What changes the service does not leave under it while the source is paused.
      signal: context.signal,
    });
    if (applied.kind !== "applied" || !repair) memory = memoryOfUnapplied(before, comparison);
    const omission = applied.kind === "applied" ? await findOmissionOf(comparison) : undefined;
    if (omission === undefined) return { ...applied, gathered };
    return { kind: "held", hold: "unclear", reason: omission, gathered };
  };
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const result = turn.then(run, run);
    turn = result.catch(() => undefined);
    return result;
  };

  /** Compares before the next write. Returns whether that may be sent. */
  const contact = async (isApproved: boolean): Promise<boolean> => {
    if (!isApproved && isCopied(context, source))
      return await holdLong(copiedWords(context, source), "identity");
    const compared = await inTurn(() => compareOnce({ repair: true, signal }, isApproved));
    switch (compared.kind) {
      case "unlisted":
        if (!isApproved && (await isProbeUnanswered(context, source)))
          return await holdLong(PROBE_UNANSWERED, "unclear");
        isProbing = true;
        return true;
      case "unclear":
        return await holdLong(UNCLEAR_LISTS, "unclear");
      case "held":
        return await holdLong(compared.reason, compared.hold);
      case "lost":
        return await holdLong(compared.reason, "lost");
      case "incomplete":
        return await holdLong(incompleteWords(compared), "unclear");
      case "applied": {
        const { gathered, unjudged } = compared;
        noteGone(compared.gone);
        const isFirst = !ledger.contacts.isAdopted(source.id);
        const hasCreates = ledger.intents.creates(source.id).length > 0;
        const rows = [...gathered.rows.values()];
        const isShown = ({ docId }: AcknowledgedRow): boolean => gathered.resources.has(docId);
        if (isProbing && !isApproved && gathered.shown === 0 && rows.length > 0 && !rows.some(isShown)) {
          // What the service lost no list can show: the next file is sent instead.
          if ((await findThere(context, sampleOf(rows), signal)) === undefined) return true;
          checks += 1;
          return await hold(NOT_SHOWN, Math.min(SHOWN_MS_MAX, SHOWN_MS * 2 ** (checks - 1)), "unclear");
        }
        if (isFirst && !isApproved && gathered.foreign.count > 0 && gathered.situation.items.length === 0) {
          // Unmarked documents of this owner may be ours if the service keeps no descriptions. One file shows that.
          if (ledger.contacts.keepsMarkers() === false)
            return await holdLong(unmarkedWords(gathered.foreign.count), "identity");
          isProbing = ledger.contacts.keepsMarkers() === undefined;
          if (isProbing) return true;
        }
        if ((isFirst && lagMs > 0) || hasCreates || unjudged > 0 || hidden.files.size > 0) compareLater();
        else if (again !== undefined && again.atMs <= Date.now()) compareLater(again.round + 1);
        if (isApproved) await leaveAlone(context, source, compared);
        return await open();
      }
    }
  };

  return {
    isClosed: () => isHeld || (isDue && !isProbing),
    ready: async () => {
      if (!isHeld && !isDue) return true;
      ledger.flush();
      const isApproved = ledger.contacts.loss(source.id)?.agreed === true;
      if (isHeld && !isApproved && now() < nextMs) return false;
      if (isProbing && options.isSending()) return true;
      try {
        const isReady = await contact(isApproved);
        // A hold of before is over while one file shows what the service does.
        if (isReady && isHeld) {
          isHeld = false;
          ledger.note(() => ledger.contacts.setLoss(source.id, undefined));
        }
        return isReady;
      } catch (error) {
        if (once || context.signal.aborted || signal.aborted) throw error;
        onWarning(error instanceof Error ? error : new Error(String(error)));
        checks += 1;
        nextMs = now() + parkMs(checks);
        scanAt(nextMs);
        return false;
      }
    },
    nextCheckMs: () => nextMs,
    admit: (candidates, isWhole) => {
      if (isWhole || !isProbing) waiting.clear();
      const isHidden = ({ entry: { path }, known }: Candidate): boolean =>
        known === undefined && (hidden.isUnseen(path) || hidden.files.has(fileTag(path)));
      const unseen = isProbing ? [] : candidates.filter(isHidden);
      if (unseen.length > 0) {
        for (const { entry } of unseen) waiting.add(entry.path);
        const rest = candidates.filter((each) => !isHidden(each));
        hidden = NOTHING_HIDDEN;
        isDue = true;
        scanAt(now());
        return rest;
      }
      if (!isProbing) return candidates;
      const isKnown = ({ known }: Candidate): boolean => known !== undefined && known.docId !== null;
      const admitted = candidates.filter(isKnown);
      const fresh = candidates.filter((each) => !isKnown(each));
      // The others do not wait for a file that failed. After a restart its next check may be this one. A single pass has no
      // other check: it tries all.
      const untried = fresh.filter(({ known }) => known?.state !== "parked");
      areAllParked = once && isWhole && fresh.length > 0 && untried.length === 0;
      if (areAllParked) return candidates;
      for (const { entry } of fresh) waiting.add(entry.path);
      const probe = options.isSending() ? undefined : cheapestOf(untried.length > 0 ? untried : fresh);
      if (probe === undefined) return admitted;
      waiting.delete(probe.entry.path);
      return [...admitted, probe];
    },
    isProbing: () => isProbing && !areAllParked,
    waiting: () => waiting,
    suspect: () => {
      if (isHeld || isDue) return;
      isDue = true;
      scanAt(now());
    },
    mayRecreate: (docId) => {
      const nowMs = now();
      // While the collection has no id, there is no list to compare with.
      if (isProbing || isKnownGone(docId)) return true;
      if (isDue) return false;
      goneMs = [...goneMs.filter((atMs) => nowMs - atMs < GONE_MS), nowMs];
      if (goneMs.length <= GONE_MAX) return true;
      isDue = true;
      scanAt(nowMs);
      return false;
    },
    compare: async ({ repair, signal: stop }) => {
      const round = again?.round;
      const compared = await inTurn(() => compareOnce({ repair, signal: stop }, false));
      if (repair && compared.kind === "held") await holdLong(compared.reason, compared.hold);
      if (repair && compared.kind === "lost") await holdLong(compared.reason, "lost");
      if (repair && compared.kind === "applied") {
        noteGone(compared.gone);
        // What an earlier comparison could not see is decided now.
        if (!isHeld && !isDue && !hidden.isOpen && !ledger.contacts.isAdopted(source.id))
          await ledger.write(() => ledger.contacts.setAdopted(source.id));
      }
      // A list that decides nothing counts too, except as the last one: it may stay incomplete for good.
      const lastRound = compared.kind === "applied" ? AGAIN_LAGS.length : AGAIN_LAGS.length - 1;
      if (repair && round !== undefined) compareLater(Math.min(round + 1, lastRound));
      else if (repair && isUndecided(compared)) compareLater();
      return compared;
    },
    againMs: () => again?.atMs,
    compareLater: () => compareLater(),
  };
}

/** Reports whether a later list decides about what this one may not have shown yet. */
function isUndecided(compared: Compared): boolean {
  if (compared.kind === "applied") return compared.unjudged > 0;
  return compared.kind === "incomplete" && compared.path === undefined;
}

/** Returns the comparison of a round, for a list that may lag; undefined: there is none. */
export function againAfter(round: number, lagMs: number): Again | undefined {
  const lags = AGAIN_LAGS[round];
  return lags === undefined ? undefined : { atMs: Date.now() + lags * Math.max(lagMs, LATE_MS), round };
}

/**
 * Reports whether the ledger cannot be trusted before a comparison: it is new, restored from a backup, or another installation's,
 * or a process ended before its creates were answered.
 */
function isUnknown(context: ActionContext, source: ContactOptions["source"]): boolean {
  const { contacts, intents, flush } = context.ledger;
  flush();
  const hasCreates = intents.creates(source.id).length > 0;
  return hasOtherSignature(context, source) || !contacts.isAdopted(source.id) || hasCreates;
}

/** Reports whether a single pass, which has no later moment, compares what an earlier one could not. */
function isAgainDue(
  { ledger }: ActionContext,
  { id }: ContactOptions["source"],
  again: Again | undefined,
): boolean {
  return again !== undefined && (again.atMs <= Date.now() || ledger.intents.doubts(id).length > 0);
}

/** Reports whether the markers that this ledger sent have another id of the source, or were written by another installation. */
function hasOtherSignature(context: ActionContext, source: ContactOptions["source"]): boolean {
  const { markerId = source.markerId } = context.ledger.contacts.signature(source.id);
  return markerId !== source.markerId || isCopied(context, source);
}

/** Reports whether the ledger is a copy of another installation's, which may still write. A new ledger is this one's. */
function isCopied({ ledger }: ActionContext, { id, signature }: ContactOptions["source"]): boolean {
  return (ledger.contacts.signature(id).writer ?? signature.writer) !== signature.writer;
}

/**
 * Reports whether nobody answered the create of a file that was sent to learn the collection's id, by a service that does not say
 * whether it names its collections. The create of another file would not be answered either.
 */
async function isProbeUnanswered(
  { ledger, collections, signal }: ActionContext,
  { id, rules }: ContactOptions["source"],
): Promise<boolean> {
  if (!ledger.intents.doubts(id).some(({ docId }) => docId === null)) return false;
  const asked = await collections.ask(rules.source.collection, signal);
  return asked.id === undefined && asked.why !== "unsupported";
}

/** Reports whether a file has the resource that a create was to make. One that the create was to replace is another. */
function isMade({ ledger }: ActionContext, { source, path, observed }: CreateIntent): boolean {
  const known = ledger.files.living(source, path);
  const row = known && ledger.files.get(known.id);
  if (row === undefined || row.docId === null || !sameShape(row.shape, observed.shape)) return false;
  return hasSameBytes(observed, row);
}

/** Returns the file that is soonest searchable: the smallest that the service need not read. */
function cheapestOf(candidates: readonly Candidate[]): Candidate | undefined {
  const costOf = ({ entry }: Candidate): number =>
    entry.sizeBytes + (kindOfName(entry.path).kind === "content" ? 0 : Number.MAX_SAFE_INTEGER / 2);
  const least = candidates.reduce((cost, candidate) => Math.min(cost, costOf(candidate)), Infinity);
  return candidates.find((candidate) => costOf(candidate) === least);
}

/** Records whether the service keeps markers, as far as this list shows. */
async function noteMarkers({ ledger }: ActionContext, { shown, unmarked }: Gathered): Promise<void> {
  if (shown === 0 || ledger.contacts.keepsMarkers() === true) return;
  await ledger.write(() => ledger.contacts.setKeepsMarkers(shown > unmarked));
}

/** Records the resources that a person, who saw them, left alone: with a damaged marker, and second ones with another text. */
async function leaveAlone(
  { ledger }: ActionContext,
  { id }: ContactOptions["source"],
  { gathered: { descriptions, rows }, findings }: Extract<Compared, { readonly kind: "applied" }>,
): Promise<void> {
  const damaged = [...descriptions]
    .filter(([docId, description]) => !rows.has(docId) && readMarker(description).kind === "damaged")
    .map(([docId]) => docId);
  const second = findings.filter(({ kind, isRepaired }) => kind === "twice" && !isRepaired);
  const left = [...damaged, ...second.map(({ docId }) => docId)];
  if (left.length > 0) await ledger.write(() => ledger.contacts.setLeftAlone(id, left));
}

function omissionOptions(
  { entries, unowned, elsewhere, rows }: Gathered,
  { verdicts }: Comparison,
  signal: AbortSignal,
): Parameters<typeof findOmission>[2] {
  const fresh = verdicts.flatMap((each) => (each.kind === "create" ? (entries.get(each.path) ?? []) : []));
  return { shown: new Set([...unowned, ...elsewhere, ...rows.keys()]), entries: fresh, signal };
}
