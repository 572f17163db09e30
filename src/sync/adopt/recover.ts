import { lstatSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { acknowledgeCreate, asFound } from "../actions/acknowledge.ts";
import { type ActionContext, type ActionSource, reportCompared } from "../actions/context.ts";
import { storedAs } from "../actions/observe.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { sameShape } from "../plan/decide.ts";
import type { RelativePath } from "../plan/model.ts";
import { CLOCK_SLACK_MS, type Settlement } from "../plan/settlement.ts";
import { openCreateLists, type CreateListsOptions } from "./create-lists.ts";
import { twinKey } from "./doubted-resources.ts";
import { openDoubts, type Doubts } from "./doubts.ts";

/** Settles the creates of one source whose answer never came. */
export interface Settler {
  /** Settles what a former process left open. Call it before the source's files are compared. */
  recover(): Promise<void>;
  /** Settles one create of this process. Simultaneous ones share a list. */
  settle(intent: CreateIntent): Promise<"adopted" | "absent">;
  /**
   * Checks for extra resources that repeated creates have made, for the last time when none can appear any more.
   * Returns true if it must run again when the source is idle.
   */
  checkDoubts(): Promise<boolean>;
  /** The same, some time later. */
  checkDoubtsIn(ms: number): void;
  /** A request for the resource has succeeded: a second one may be waiting for that. */
  answered(docId: string): void;
  stop(): void;
}

export interface SettlerOptions extends CreateListsOptions {
  readonly source: Pick<ActionSource, "id" | "checkAgain" | "deleteLater">;
  /** Reports whether the source still has candidates: a surplus resource may be theirs. Default: no. */
  readonly isAdopting?: () => boolean;
  /** Reports whether a file is being read or sent. Default: none is. */
  readonly isBusy?: (path: RelativePath) => boolean;
  /** The source left the configuration, and all its resources are being deleted. Default: no. */
  readonly isRemoval?: boolean;
  /** A monotonic clock. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/** After a create was matched with a resource of another text, the list is checked again this soon. */
const INEXACT_MS = 1000;
/** Opens the settler of a source. */
export function openSettler(options: SettlerOptions): Settler {
  const { context, source, stopped, once } = options;
  const { ledger, timing } = context;
  let waiting: {
    intent: CreateIntent;
    resolve: (how: "adopted" | "absent") => void;
    reject: (error: unknown) => void;
  }[] = [];
  let running = false;

  const { compare, compareAlone } = openCreateLists(options);

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await sleep(timing.gatherMs, undefined, { signal: stopped });
      const group = waiting;
      waiting = [];
      try {
        const creates = group.map(({ intent }) => intent);
        const settlement = await compare(creates);
        const adopted = settlement && (await apply(options, doubts, creates, settlement));
        for (const { intent, resolve } of group)
          resolve(adopted?.has(intent.id) === true ? "adopted" : "absent");
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
  };

  const doubts = openDoubts({
    context,
    source,
    stopped,
    once,
    isRemoval: options.isRemoval ?? false,
    isAdopting: options.isAdopting ?? (() => false),
    isBusy: options.isBusy ?? (() => false),
    elapsedMs: options.elapsedMs ?? (() => performance.now()),
    compare: (creates) => compare(creates, true),
  });
  return {
    recover: async () => {
      const creates = ledger.intents.creates(source.id);
      if (creates.length > 0) {
        const settlement = await compareAlone(creates);
        const mine = creates.filter((each) => !isForAnother(context, each));
        const adopted = settlement && (await apply(options, doubts, mine, settlement));
        // Resources missing from the list may still appear, and without a collection's id there is no list at all.
        await ledger.write(() => {
          for (const { id } of creates) if (adopted?.has(id) !== true) ledger.intents.doubt(id, null);
        });
      }
      if (ledger.intents.doubts(source.id).length > 0) await doubts.check();
    },
    settle: (intent) =>
      new Promise((resolve, reject) => {
        waiting.push({ intent, resolve, reject });
        if (running) return;
        running = true;
        run()
          .catch((error: unknown) => {
            for (const each of waiting) each.reject(error);
            waiting = [];
          })
          .finally(() => {
            running = false;
          });
      }),
    checkDoubts: () => doubts.check(),
    checkDoubtsIn: (ms) => doubts.checkIn(ms),
    answered: (docId) => doubts.answered(docId),
    stop: () => doubts.stop(),
  };
}

/**
 * Records what was found. Returns the creates that received their resource. Another source that was making the same,
 * and checked the list at the same time, may have received it a moment ago.
 */
async function apply(
  { context, source, once }: Pick<SettlerOptions, "context" | "source" | "once">,
  doubts: Doubts,
  creates: readonly CreateIntent[],
  settlement: Settlement,
): Promise<ReadonlySet<number>> {
  const { ledger } = context;
  const byId = new Map(creates.map((create) => [create.id, create]));
  const adopted = new Set<number>();
  const found: { readonly path: RelativePath; readonly docId: string }[] = [];
  /** Resources up to here may be a former ledger's, which its list did not show yet when the source was adopted. */
  const formerMs = (ledger.drift.recheck(source.id)?.boundMs ?? -Infinity) + CLOCK_SLACK_MS;
  await ledger.write(() => {
    const doubted = ledger.intents.doubts(source.id);
    for (const adoption of settlement.adopted) {
      const { id, docId, label, warning } = adoption;
      const intent = byId.get(id);
      if (intent === undefined) continue;
      const isShared = intent.observed.fileUrl === undefined;
      const isFormer = isShared && (adoption.createdMs ?? Infinity) < formerMs;
      const isEarlier = doubted.some((each) => mayHaveMade(each, intent));
      const exact = adoption.exact && !isEarlier;
      const existing = resourceOf(context, source.id, intent);
      if (existing !== undefined && existing !== docId) {
        // The file has two now, or the other one belongs to somebody who makes the same. The doubts find out, and
        // check before they delete.
        ledger.intents.doubt(id, existing);
        if (isOlderThan(context, existing, intent)) ledger.intents.again(id);
        adopted.add(id);
        if (!once) doubts.checkIn(INEXACT_MS);
        continue;
      }
      // Its own resource may appear later, as after a second attempt.
      if (isFormer) ledger.intents.again(id);
      const create = asFound(isFormer ? { ...intent, attempts: intent.attempts + 1 } : intent, adoption);
      const left = acknowledgeCreate(ledger, create, docId, exact, storedAs(label, intent.observed));
      if (left === "taken") continue;
      if (isEarlier) ledger.intents.forgetFound(docId);
      adopted.add(id);
      found.push({ path: intent.path, docId });
      ledger.files.warn(docId, warning);
      if (left !== undefined) source.deleteLater(left);
      // Its metadata may be other metadata than was sent.
      if (!exact || create.observed.metadataHash !== intent.observed.metadataHash)
        source.checkAgain(intent.path);
      if (exact && !isFormer) continue;
      // The resource that the create made may appear later.
      if (!once) doubts.checkIn(INEXACT_MS);
    }
    // Surplus resources stay for now: a create that was sent more than once is in doubt from here on.
  });
  for (const { path, docId } of found) reportCompared(context, source, path, docId);
  return adopted;
}

/**
 * Reports whether an equal create of another source has more use for a resource than one whose file is gone: nobody can
 * tell which of them made it.
 */
function isForAnother({ ledger }: ActionContext, create: CreateIntent): boolean {
  if (isThere(ledger, create)) return false;
  const isTwin = (each: CreateIntent): boolean =>
    each.source !== create.source && twinKey(each) === twinKey(create) && isThere(ledger, each);
  return ledger.intents.allCreates().some(isTwin);
}

function isThere({ sources }: ActionContext["ledger"], { source, path }: CreateIntent): boolean {
  try {
    return lstatSync(join(sources.get(source).path, path), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true; // It cannot be checked, so it may be there.
  }
}

/**
 * Returns the resource that a create's file received in another way, as by an adoption, if it is exactly what the
 * create would have made.
 */
function resourceOf(
  { ledger }: ActionContext,
  source: number,
  { path, observed }: CreateIntent,
): string | undefined {
  const row = ledger.files.get(ledger.files.living(source, path)?.id ?? 0);
  const isSame =
    row?.state === "agreed" && row.hash === observed.hash && sameShape(row.shape, observed.shape);
  return isSame ? (row.docId ?? undefined) : undefined;
}

/** Reports whether a resource was there before a create was planned. Then the create has made another one, if any. */
function isOlderThan(
  { ledger }: ActionContext,
  docId: string,
  { atMs, clockOffsetMs }: CreateIntent,
): boolean {
  const offsetMs = clockOffsetMs ?? ledger.intents.clockOffset() ?? 0;
  const storedMs = ledger.drift.byDoc(docId)?.storedMs ?? Infinity;
  return storedMs < atMs + offsetMs - CLOCK_SLACK_MS;
}

/**
 * Reports whether what seems to be a create's resource may be that of an earlier create of the file, whose text differs
 * only in what services change in texts, such as blanks at line ends.
 */
function mayHaveMade({ observed: earlier }: CreateIntent, { observed }: CreateIntent): boolean {
  return (
    earlier.label === observed.label && earlier.digest === observed.digest && earlier.hash !== observed.hash
  );
}
