import { setTimeout as sleep } from "node:timers/promises";
import { acknowledgeCreate, asFound } from "../actions/acknowledge.ts";
import { type ActionContext, type ActionSource, reportCompared } from "../actions/context.ts";
import { labelOf, storedAs } from "../actions/observe.ts";
import { compareWithService, type Listed } from "../reconcile-service/compare.ts";
import { openDoubts, serviceAgeMs, twinKey } from "./doubts.ts";
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
  stop(): void;
}

export interface SettlerOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "checkAgain" | "deleteLater">;
  /** Ends waits and lists. Other requests end by the context's signal. */
  readonly stopped: AbortSignal;
  /** One pass: if the service refuses a list, the pass ends. Otherwise the list is requested again and again. */
  readonly once: boolean;
  readonly onWarning: (error: Error) => void;
  /** Reports whether the source still has candidates: a surplus resource may be theirs. Default: no. */
  readonly isAdopting?: () => boolean;
  /** Reports whether a file is being read or sent. Default: none is. */
  readonly isBusy?: (path: RelativePath) => boolean;
  /** The source left the configuration, and all its resources are being deleted. Default: no. */
  readonly isRemoval?: boolean;
  /** A monotonic clock. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/**
 * A create without an answer is not sent again while a collection's id is unknown because something answers that may
 * not be the service. After an hour of such answers it is the service, which supplies no ids. Sending the create again
 * is then the only way to learn one.
 */
const UNCLEAR_MS = 3_600_000;
/** Number of our resources that are compared with a list, to learn how the service stores texts and descriptions. */
const EVIDENCE_MAX = 20;
/** A single pass asks this often, which takes some seconds. */
const UNCLEAR_TRIES_ONCE = 6;
/** After a create was matched with a resource of another text, the list is checked again this soon. */
const INEXACT_MS = 1000;
/** After this many attempts a daemon reports why it waits. */
const WARN_TRIES = 3;
/** Interval at which another source's equal create is checked for an answer. */
const IN_FLIGHT_MS = 1000;
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
  const { ledger, timing } = context;
  let waiting: {
    intent: CreateIntent;
    resolve: (how: "adopted" | "absent") => void;
    reject: (error: unknown) => void;
  }[] = [];
  let running = false;

  const { compare, compareAlone } = openMatching({ context, source, stopped, once, onWarning });

  /**
   * Records what was found. Returns the creates that received their resource. Another source that was making the same,
   * and checked the list at the same time, may have received it a moment ago.
   */
  const apply = async (
    creates: readonly CreateIntent[],
    settlement: Settlement,
  ): Promise<ReadonlySet<number>> => {
    const byId = new Map(creates.map((create) => [create.id, create]));
    const adopted = new Set<number>();
    const found: { readonly path: RelativePath; readonly docId: string }[] = [];
    await ledger.write(() => {
      const doubted = ledger.intents.doubts(source.id);
      for (const adoption of settlement.adopted) {
        const { id, docId, label, warning } = adoption;
        const intent = byId.get(id);
        if (intent === undefined) continue;
        const isEarlier = doubted.some((each) => mayHaveMade(each, intent));
        const exact = adoption.exact && !isEarlier;
        const existing = resourceOf(context, source.id, intent);
        if (existing !== undefined && existing !== docId) {
          // The file has two now, or the other one belongs to somebody who makes the same. The doubts find out, and
          // check before they delete.
          ledger.intents.doubt(id, existing);
          adopted.add(id);
          if (!once) doubts.checkIn(INEXACT_MS);
          continue;
        }
        const create = asFound(intent, adoption);
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
        if (exact) continue;
        // The resource that the create made may appear later.
        if (!once) doubts.checkIn(INEXACT_MS);
      }
      // Surplus resources stay for now: a create that was sent more than once is in doubt from here on.
    });
    for (const { path, docId } of found) reportCompared(context, source, path, docId);
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
        // What the list does not show may still appear, and without a collection's id there is no list at all.
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

/** Compares creates without an answer with the service's lists. */
interface Matching {
  /**
   * Lists what the creates may have made, until the service has answered. Returns undefined if it does not supply a
   * collection's id. Doubts do not wait for a clear answer, because nothing is sent again for them.
   */
  readonly compare: (
    creates: readonly CreateIntent[],
    areDoubts?: boolean,
  ) => Promise<Settlement | undefined>;
  /**
   * The same, once no equal create of this process is in flight. Other sources are sending by then, and a resource
   * whose answer is outstanding would be mistaken for one of a former process.
   */
  readonly compareAlone: (creates: readonly CreateIntent[]) => Promise<Settlement | undefined>;
}

function openMatching({
  context,
  source,
  stopped,
  once,
  onWarning,
}: Pick<SettlerOptions, "context" | "source" | "stopped" | "once" | "onWarning">): Matching {
  const { ledger, collections, timing } = context;
  /** A former process that got no answer before its creates did not learn its clock's offset. It counts as none. */
  const unknownOffsetMs = hasOpen(context, source.id) ? 0 : undefined;

  const compare = async (
    creates: readonly CreateIntent[],
    areDoubts = false,
  ): Promise<Settlement | undefined> => {
    const scopes = Map.groupBy(
      creates,
      ({ observed }) => `${observed.shape.tier}\n${observed.shape.ownerId}`,
    );
    const settlements: Settlement[] = [];
    for (const group of scopes.values()) {
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

  /**
   * Something answers that may not be the service. Waits before the next request; a single pass does not wait for ever.
   */
  const clearUp = async (tries: number): Promise<void> => {
    if (tries === (once ? UNCLEAR_TRIES_ONCE : WARN_TRIES)) {
      const error = unclear();
      if (once) throw error;
      onWarning(error);
    }
    await sleep(delayMs(tries, undefined, context.random(), timing.retryMs), undefined, { signal: stopped });
  };

  /** A row owns it, or will when its create ends; or it was deleted, and a list may still show it for some time. */
  const isTaken = (docId: string): boolean =>
    ledger.drift.ownerOf(docId) !== undefined || context.following.has(docId);

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
        // After no answer, the gate waits before the next request.
        if (asked.why === "unanswered") continue;
        ledger.flush();
        const nowMs = context.now();
        const isLong = creates.every((intent) => serviceAgeMs(context, intent, nowMs) >= UNCLEAR_MS);
        if (asked.why === "unsupported" || areDoubts || isLong) return undefined;
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
        const begin = (): typeof visit => {
          settling = startSettling(
            creates.map((intent) => openCreateOf(intent, unknownOffsetMs)),
            isTaken,
          );
          forms = openForms();
          return visit;
        };
        const compared = await compareWithService(context, { tier, ownerId }, begin, stopped);
        ledger.flush();
        if (compared === undefined) continue;
        // A missing collection holds nothing, so its clock does not matter.
        if (compared.clockOffsetMs === undefined) return settling.finish(0);
        return settling.finish(compared.clockOffsetMs, forms.found());
      } catch (error) {
        if (!(error instanceof KbsyncError) || error.code !== "list_refused") throw error;
        if (once) throw nothingSent(error);
        // Nothing may be sent before this is known, so the request is repeated for as long as it takes.
        if (!isWarned) onWarning(nothingSent(error));
        isWarned = true;
        await sleep(delayMs(failures, undefined, context.random(), timing.retryMs), undefined, {
          signal: stopped,
        });
      }
    }
  };

  const compareAlone = async (creates: readonly CreateIntent[]): Promise<Settlement | undefined> => {
    const before = new Set(ledger.intents.allCreates().map(({ key }) => key));
    const ours = new Set(creates.map(twinKey));
    for (;;) {
      const settlement = await compare(creates);
      const inFlight = ledger.intents.allCreates().filter(({ key }) => !before.has(key));
      if (!inFlight.some((each) => ours.has(twinKey(each)))) return settlement;
      await sleep(IN_FLIGHT_MS, undefined, { signal: stopped });
    }
  };

  return { compare, compareAlone };
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

/**
 * Reports whether what seems to be a create's resource may be that of an earlier create of the file, whose text differs
 * only in what services change in texts, such as blanks at line ends.
 */
function mayHaveMade({ observed: earlier }: CreateIntent, { observed }: CreateIntent): boolean {
  return (
    earlier.label === observed.label && earlier.digest === observed.digest && earlier.hash !== observed.hash
  );
}

/** Reports whether a former process left creates. */
function hasOpen({ ledger }: ActionContext, source: number): boolean {
  return ledger.intents.creates(source).length > 0 || ledger.intents.doubts(source).length > 0;
}

function nothingSent(error: KbsyncError): KbsyncError {
  const { code, subject } = error;
  return new KbsyncError(error.message, {
    code,
    ...(subject !== undefined && { subject }),
    retryable: true,
    hint: "without it kbsync cannot find out what became of files in flight, so it sends nothing",
    cause: error,
  });
}

function unclear(): KbsyncError {
  return new KbsyncError("the service's answer about its collections cannot be understood", {
    code: "list_refused",
    retryable: true,
    hint: "without it kbsync cannot find out what became of a file in flight, so it sends nothing; is a proxy answering?",
  });
}

function openCreateOf(intent: CreateIntent, unknownOffsetMs: number | undefined): OpenCreate {
  const { observed } = intent;
  return {
    id: intent.id,
    atMs: intent.atMs,
    clockOffsetMs: intent.clockOffsetMs ?? unknownOffsetMs,
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
 * Learns how the service stores texts and descriptions from resources known to be ours: others that it stored in such a
 * form may be ours too.
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
      // A stale list shows an earlier text.
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
