import { setTimeout as sleep } from "node:timers/promises";
import { acknowledgeCreate, withSettings } from "../actions/acknowledge.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { labelOf, storedAs } from "../actions/observe.ts";
import { compareWithService, type Listed } from "../reconcile-service/compare.ts";
import { openDoubts, twinKey } from "./doubts.ts";
import type { CreateIntent } from "../ledger/intents.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { isAsStored } from "../plan/audit.ts";
import { sameShape } from "../plan/decide.ts";
import type { RelativePath } from "../plan/model.ts";
import { delayMs } from "../plan/retry.ts";
import {
  startSettling,
  type CandidateResource,
  type OpenCreate,
  type Settlement,
  type StoredForms,
} from "../plan/settlement.ts";
import type { Tier } from "../../wire/primitives.ts";

/** Settles the creates of one source whose answer never came. */
export interface Settler {
  /** Settles what a former process left open. To be done before the source's files are compared. */
  recover(): Promise<void>;
  /** Settles one create of this process. Those that come at the same time share one list. */
  settle(intent: CreateIntent): Promise<"adopted" | "absent">;
  /**
   * Looks for extra resources that repeated creates have made, now and once more when none can come any more. True: look
   * again when the source is idle.
   */
  checkDoubts(): Promise<boolean>;
  /** The same, some time later. */
  checkDoubtsIn(ms: number): void;
  stop(): void;
}

export interface SettlerOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "lookAgain" | "deleteLater">;
  /** Ends waiting; requests end by the context's signal. */
  readonly stopped: AbortSignal;
  /** One pass: a list that the service refuses ends it. Otherwise it is asked for again and again. */
  readonly once: boolean;
  readonly onWarning: (error: Error) => void;
  /** Whether the files of the source still look for their resources: one that seems too many may be theirs. Default: no. */
  readonly isAdopting?: () => boolean;
  /** Whether a file is being read or sent. Default: none is. */
  readonly isBusy?: (path: RelativePath) => boolean;
  /** The source left the configuration, and all that it has goes. Default: no. */
  readonly isRemoval?: boolean;
  /** A clock that nobody sets. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/** A change of the clocks' difference that is worth a note: the service tells its time in whole seconds. */
const CLOCK_NOTE_MS = 2000;
/**
 * A create that got no answer is not sent again while a collection's id is unknown because somebody answers who may not be
 * the service. What has answered so for an hour since is the service, which tells no ids: then sending it again is the only
 * way to learn one.
 */
const UNCLEAR_MS = 3_600_000;
/** Resources of ours that a list is compared by, to see what the service makes of texts and descriptions. */
const EVIDENCE_MAX = 20;
/** One pass asks so often, which takes some seconds. */
const UNCLEAR_TRIES_ONCE = 6;
/** A create that was given a resource with another text is looked for in the list this soon. */
const INEXACT_MS = 1000;
/** A daemon says after so many tries why it waits. */
const WARN_TRIES = 3;
/** So often it is looked whether another source's create of the same has been answered. */
const TRAVELLING_MS = 1000;
/** Opens the settler of a source. */
export function openSettler({
  context,
  source,
  stopped,
  once,
  onWarning,
  isAdopting = () => false,
  isBusy = () => false,
  isRemoval = false,
  elapsedMs = () => performance.now(),
}: SettlerOptions): Settler {
  const { ledger, collections, timing } = context;
  let waiting: {
    intent: CreateIntent;
    resolve: (how: "adopted" | "absent") => void;
    reject: (error: unknown) => void;
  }[] = [];
  let running = false;

  /** As it was when the intents of former processes were written: our clock may have been set since. */
  const offsetBeforeMs = ledger.intents.clockOffset() ?? (hasOpen(context, source.id) ? 0 : undefined);
  let notedOffsetMs = offsetBeforeMs;
  /** The service's clock minus ours, the least and the most that may hold: what is too old by one of them may be ours all the same. */
  const clockOffsets = (nowMs: number): readonly [leastMs: number, mostMs: number] => {
    if (Math.abs(nowMs - (notedOffsetMs ?? Infinity)) > CLOCK_NOTE_MS) {
      notedOffsetMs = nowMs;
      ledger.note(() => ledger.intents.setClockOffset(nowMs));
    }
    const beforeMs = offsetBeforeMs ?? nowMs;
    return [Math.min(nowMs, beforeMs), Math.max(nowMs, beforeMs)];
  };

  /**
   * Lists what the creates may have made, until the service has answered; undefined if it does not tell a collection's id.
   * Doubts do not wait for an unclear answer: nothing is sent again for them.
   */
  const compare = async (
    creates: readonly CreateIntent[],
    areDoubts = false,
  ): Promise<Settlement | undefined> => {
    const places = Map.groupBy(
      creates,
      ({ observed }) => `${observed.shape.tier}\n${observed.shape.ownerId}`,
    );
    const settlements: Settlement[] = [];
    for (const group of places.values()) {
      const shape = group[0]?.observed.shape;
      const settlement = shape && (await compareIn(shape.tier, shape.ownerId, group, areDoubts));
      if (settlement === undefined) return undefined;
      settlements.push(settlement);
    }
    return {
      adopted: settlements.flatMap(({ adopted }) => adopted),
      extra: settlements.flatMap(({ extra }) => extra),
      queued: settlements.flatMap(({ queued }) => queued),
      absent: settlements.flatMap(({ absent }) => absent),
    };
  };

  /** Whoever answers may not be the service: waits before it is asked again. One pass does not wait for ever. */
  const clearUp = async (tries: number): Promise<void> => {
    if (tries === (once ? UNCLEAR_TRIES_ONCE : WARN_TRIES)) {
      const error = unclear();
      if (once) throw error;
      onWarning(error);
    }
    await sleep(delayMs(tries, undefined, context.random(), timing.retryMs), undefined, { signal: stopped });
  };

  /** A row owns it, or will when its create ends; or it was deleted: a list may still show it for some time. */
  const isTaken = (docId: string): boolean =>
    ledger.files.ownsDoc(docId) || ledger.intents.isDeleted(docId) || context.following.has(docId);

  const compareIn = async (
    tier: Tier,
    ownerId: string,
    creates: readonly CreateIntent[],
    areDoubts: boolean,
  ): Promise<Settlement | undefined> => {
    let unclearTries = 0;
    let isWarned = false;
    for (let failures = 1; ; failures += 1) {
      stopped.throwIfAborted();
      const asked = await collections.ask(tier, context.signal);
      if (asked.id === undefined) {
        // After no answer the gate waits before the next.
        if (asked.why === "unanswered") continue;
        const isLong = creates.every(({ atMs }) => context.now() - atMs >= UNCLEAR_MS);
        if (asked.why === "untold" || areDoubts || isLong) return undefined;
        unclearTries += 1;
        await clearUp(unclearTries);
        continue;
      }
      try {
        let settling = startSettling([], isTaken);
        let forms = openForms();
        const visit = (listed: Listed): void => {
          forms.see(listed);
          const { url, title } = listed.record;
          if (settling.interested({ url: url ?? undefined, title })) settling.see(candidateOf(listed));
        };
        const compared = await compareWithService(context, { tier, ownerId }, () => {
          settling = startSettling(creates.map(openCreateOf), isTaken);
          forms = openForms();
          return visit;
        });
        ledger.flush();
        if (compared === undefined) continue;
        // A collection that is gone holds nothing, so that no time of it matters.
        if (compared.clockOffsetMs === undefined) return settling.finish(0);
        const [leastMs, mostMs] = clockOffsets(compared.clockOffsetMs);
        return settling.finish(leastMs, forms.found(), mostMs);
      } catch (error) {
        if (!(error instanceof KbsyncError) || error.code !== "list_refused") throw error;
        if (once) throw nothingSent(error);
        // Nothing may be sent before this is known, so it is asked for as long as it takes.
        if (!isWarned) onWarning(nothingSent(error));
        isWarned = true;
        await sleep(delayMs(failures, undefined, context.random(), timing.retryMs), undefined, {
          signal: stopped,
        });
      }
    }
  };

  /** The resource that a create's file has got otherwise, as by an adoption: it is just what was to be created. */
  const resourceOf = ({ path, observed }: CreateIntent): string | undefined => {
    const row = ledger.files.get(ledger.files.living(source.id, path)?.id ?? 0);
    const isSame =
      row?.state === "agreed" && row.hash === observed.hash && sameShape(row.shape, observed.shape);
    return isSame ? (row.docId ?? undefined) : undefined;
  };

  /**
   * Writes down what was found. Returns the creates that got their resource: another source, which was making the same
   * and looked at the list at the same time, may have been given it a moment ago.
   */
  const apply = async (
    creates: readonly CreateIntent[],
    settlement: Settlement,
  ): Promise<ReadonlySet<number>> => {
    const byId = new Map(creates.map((create) => [create.id, create]));
    const adopted = new Set<number>();
    await ledger.write(() => {
      for (const { id, docId, exact, label, settings, warning } of settlement.adopted) {
        const intent = byId.get(id);
        if (intent === undefined) continue;
        const kept = resourceOf(intent);
        if (kept !== undefined && kept !== docId) {
          // It has two now, or the other one is of somebody who makes the same: the doubts find out, and ask before they delete.
          ledger.intents.doubt(id, kept);
          adopted.add(id);
          if (!once) doubts.checkIn(INEXACT_MS);
          continue;
        }
        const create = withSettings(intent, settings);
        const left = acknowledgeCreate(ledger, create, docId, exact, storedAs(label, intent.observed));
        if (left === "taken") continue;
        adopted.add(id);
        ledger.files.warn(docId, warning);
        if (left !== undefined) source.deleteLater(left);
        if (exact) continue;
        source.lookAgain(intent.path);
        // The resource that the create made may be shown later.
        if (!once) doubts.checkIn(INEXACT_MS);
      }
      // What is too many stays for now: a create that was sent more than once is in doubt from here on.
    });
    return adopted;
  };

  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await sleep(timing.gatherMs, undefined, { signal: stopped });
      const group = waiting;
      waiting = [];
      try {
        const creates = group.map(({ intent }) => intent);
        const settlement = await compare(creates);
        const adopted = settlement && (await apply(creates, settlement));
        for (const { intent, resolve } of group)
          resolve(adopted?.has(intent.id) === true ? "adopted" : "absent");
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
  };

  /**
   * The same, when no create of this process is on its way that would make the same: other sources have begun to send
   * by then, and a resource whose answer is still to come would be taken for one of a former process.
   */
  const compareAlone = async (creates: readonly CreateIntent[]): Promise<Settlement | undefined> => {
    const before = new Set(ledger.intents.allCreates().map(({ key }) => key));
    const ours = new Set(creates.map(twinKey));
    for (;;) {
      const settlement = await compare(creates);
      const travelling = ledger.intents.allCreates().filter(({ key }) => !before.has(key));
      if (!travelling.some((each) => ours.has(twinKey(each)))) return settlement;
      await sleep(TRAVELLING_MS, undefined, { signal: stopped });
    }
  };

  const doubts = openDoubts({
    context,
    source,
    stopped,
    once,
    isRemoval,
    isAdopting,
    isBusy,
    elapsedMs,
    compare: (creates) => compare(creates, true),
  });
  return {
    recover: async () => {
      const creates = ledger.intents.creates(source.id);
      if (creates.length > 0) {
        const settlement = await compareAlone(creates);
        const adopted = settlement && (await apply(creates, settlement));
        // What the list does not show may yet appear, and without a collection's id there is no list at all.
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
    stop: () => doubts.stop(),
  };
}

/** Whether a former process left creates. Where it saw no list, nobody knows what its clock was: it counts as right. */
function hasOpen({ ledger }: ActionContext, source: number): boolean {
  return ledger.intents.creates(source).length > 0 || ledger.intents.doubts(source).length > 0;
}

function nothingSent(error: KbsyncError): KbsyncError {
  const { code, subject } = error;
  return new KbsyncError(error.message, {
    code,
    ...(subject !== undefined && { subject }),
    retryable: true,
    hint: "what became of files that were being sent cannot be known without it, so nothing is sent",
    cause: error,
  });
}

function unclear(): KbsyncError {
  return new KbsyncError("the service's answer about its collections is not to be understood", {
    code: "list_refused",
    retryable: true,
    hint: "what became of a file that was being sent cannot be known without it, so nothing is sent; is a proxy answering?",
  });
}

function openCreateOf(intent: CreateIntent): OpenCreate {
  const { observed } = intent;
  return {
    id: intent.id,
    atMs: intent.atMs,
    attempts: intent.attempts,
    answered: intent.docId !== null,
    url: observed.fileUrl,
    unique: observed.shape.kind === "file",
    title: observed.title,
    digest: observed.digest,
    label: observed.label,
    settings: observed.shape.settings,
  };
}

/**
 * Learns how the service stores texts and descriptions from resources that are known to be ours: others that it stored in
 * such a form may be ours, too.
 */
function openForms(): { see(listed: Listed): void; found(): StoredForms } {
  let evidence = 0;
  let forms: StoredForms = {};
  return {
    see: (listed) => {
      const { record } = listed;
      if (
        evidence >= EVIDENCE_MAX ||
        (record.url ?? undefined) !== undefined ||
        (record.content ?? "") === ""
      )
        return;
      const row = listed.owner;
      if (row === undefined || typeof row === "string" || row.state !== "agreed" || row.kind !== "content")
        return;
      const { digest, updatedMs } = listed.resource;
      // A stale list shows a text from before.
      if (!isAsStored(row.storedMs, { updatedMs })) return;
      evidence += 1;
      const isOtherLabel = labelOf(row.title, record.description) !== row.label;
      forms = {
        texts: forms.texts === true || digest !== row.digest,
        descriptions: forms.descriptions === true || isOtherLabel,
      };
    },
    found: () => forms,
  };
}

function candidateOf({ record, resource }: Listed): CandidateResource {
  const isTextHidden = resource.url === undefined && (record.content ?? "") === "";
  return {
    ...resource,
    labelUnder: (title) => labelOf(title, record.description),
    isDescriptionHidden: record.description === "",
    isTextHidden,
    isQueued: record.metadata?.status === "queued",
  };
}
