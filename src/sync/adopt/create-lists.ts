import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { labelOf } from "../actions/observe.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { isAsStored } from "../plan/audit.ts";
import { delayMs } from "../plan/retry.ts";
import { startSettling, type Settlement, type StoredForms } from "../plan/settlement.ts";
import type { CandidateResource, OpenCreate } from "../plan/create-likeness.ts";
import { compareWithService, type Listed } from "../reconcile-service/compare.ts";
import { twinKey } from "./doubted-resources.ts";
import { serviceAgeMs } from "./doubts.ts";

/** Compares creates without an answer with the service's lists. */
export interface CreateLists {
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

export interface CreateListsOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id">;
  /** Ends waits and lists. Other requests end by the context's signal. */
  readonly stopped: AbortSignal;
  /** One pass: if the service refuses a list, the pass ends. Otherwise the list is requested again and again. */
  readonly once: boolean;
  readonly onWarning: (error: Error) => void;
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
/** After this many attempts a daemon reports why it waits. */
const WARN_TRIES = 3;
/** Interval at which another source's equal create is checked for an answer. */
const IN_FLIGHT_MS = 1000;

/** Opens the comparison for a source. */
export function openCreateLists(options: CreateListsOptions): CreateLists {
  const { context, source, stopped, once, onWarning } = options;
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

  const compareIn = async (
    tier: Tier,
    ownerId: string,
    creates: readonly CreateIntent[],
    areDoubts: boolean,
  ): Promise<Settlement | undefined> => {
    let unclearTries = 0;
    let isWarned = false;
    let isAskedAgain = false;
    for (let failures = 1; ; failures += 1) {
      stopped.throwIfAborted();
      const asked = await collections.ask(tier, context.signal);
      if (asked.id === undefined) {
        // After no answer, the gate waits before the next request.
        if (asked.why === "unanswered") continue;
        // A gateway may have said so. Without a list a create may be repeated that was acted on.
        if (asked.why === "unsupported" && !areDoubts && !isAskedAgain) {
          isAskedAgain = (await collections.renew(tier, context.signal)).isAnswered;
          continue;
        }
        ledger.flush();
        const nowMs = context.now();
        const isLong = creates.every((intent) => serviceAgeMs(context, intent, nowMs) >= UNCLEAR_MS);
        if (asked.why === "unsupported" || areDoubts || isLong) return undefined;
        unclearTries += 1;
        await clearUp(unclearTries);
        continue;
      }
      try {
        const settlement = await listOnce(options, { tier, ownerId }, creates, unknownOffsetMs);
        if (settlement !== undefined) return settlement;
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

/** Returns undefined if the collection's id changed meanwhile. */
async function listOnce(
  { context, stopped }: CreateListsOptions,
  { tier, ownerId }: { readonly tier: Tier; readonly ownerId: string },
  creates: readonly CreateIntent[],
  unknownOffsetMs: number | undefined,
): Promise<Settlement | undefined> {
  const { ledger } = context;
  /** A row owns it, or will when its create ends; or it was deleted, and a list may still show it for some time. */
  const isTaken = (docId: string): boolean =>
    ledger.drift.ownerOf(docId) !== undefined || context.following.has(docId);
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
  if (compared === undefined) return undefined;
  // A missing collection holds nothing, so its clock does not matter.
  if (compared.clockOffsetMs === undefined) return settling.finish(0);
  return settling.finish(compared.clockOffsetMs, forms.found());
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
