import { setTimeout as sleep } from "node:timers/promises";
import { KbsyncError } from "../../lib/failure.ts";
import { acknowledgeCreate, asFound } from "../send/acknowledge.ts";
import { type ActionContext, type ActionSource, reportCompared } from "../send/context.ts";
import { storedAs } from "../send/observe.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { AcknowledgedRow } from "../ledger/files/rows.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import { bytesTag, fileTag, readMarker } from "../plan/marker.ts";
import type { ListedResource } from "../plan/model.ts";
import { delayMs } from "../plan/retry.ts";
import { sameShape } from "../plan/decide.ts";
import { findThere, sampleOf } from "./presence.ts";
import { gatherListed, type IdentitySource } from "./listed.ts";

/** Finds out what became of creates that nobody answered. */
export interface Unanswered {
  /**
   * Reads the list until it shows the create's resource, or two lists in a row, read after the create failed, do not. Creates that
   * ask at the same time share the lists. `unclear`: they lack what the service has.
   */
  findCreated(intent: CreateIntent): Promise<"adopted" | "absent" | "unclear">;
}

export interface UnansweredOptions {
  readonly context: ActionContext;
  readonly source: IdentitySource & Pick<ActionSource, "agenda" | "deleteLater">;
  readonly lagMs: number;
  /** One pass: if the service refuses a list, the pass ends. Otherwise the list is requested again and again. */
  readonly once: boolean;
  readonly signal: AbortSignal;
  readonly onWarning: (error: Error) => void;
}

/** A create that waits for the lists. */
interface Waiting {
  readonly intent: CreateIntent;
  resolve(how: "adopted" | "absent" | "unclear"): void;
  reject(error: unknown): void;
}

/** A resource that a list shows and no row has, and what its marker names. */
interface Sighting {
  readonly resource: ListedResource;
  readonly file: string;
  readonly bytes: string;
}

export function openUnanswered(options: UnansweredOptions): Unanswered {
  const { context, lagMs, signal } = options;
  const { timing } = context;
  let waiting: Waiting[] = [];
  let isRunning = false;

  const settleWaiting = async (): Promise<void> => {
    await sleep(timing.gatherMs, undefined, { signal });
    let left = waiting;
    waiting = [];
    try {
      const missing = new Map<string, AcknowledgedRow>();
      for (let lists = lagMs === 0 ? 1 : 2; lists > 0 && left.length > 0; lists -= 1) {
        const found = await find(options);
        for (const row of found.missing) missing.set(row.docId, row);
        const adopted = await adopt(options, left, found.shown);
        for (const each of left) if (adopted.has(each.intent.id)) each.resolve("adopted");
        left = left.filter(({ intent }) => !adopted.has(intent.id));
        if (lists > 1 && left.length > 0) await sleep(timing.listAgainMs, undefined, { signal });
      }
      if (left.length === 0) return;
      // Lists that lack what was acknowledged before may lack what the creates made, too.
      const there = await findThere(context, sampleOf([...missing.values()]), signal);
      for (const each of left) each.resolve(there === undefined ? "absent" : "unclear");
    } catch (error) {
      for (const each of left) each.reject(error);
    }
  };
  const run = async (): Promise<void> => {
    try {
      while (waiting.length > 0) await settleWaiting();
    } catch (error) {
      for (const each of waiting) each.reject(error);
      waiting = [];
    } finally {
      // In the turn of the last check, so that no create comes in between.
      isRunning = false;
    }
  };
  return {
    findCreated: (intent) =>
      new Promise((resolve, reject) => {
        waiting.push({ intent, resolve, reject });
        if (isRunning) return;
        isRunning = true;
        void run();
      }),
  };
}

/** What a list shows of creates. */
interface Found {
  /** By the tag of the file. */
  readonly shown: ReadonlyMap<string, readonly Sighting[]>;
  /** What the list lacks of the ledger's resources. */
  readonly missing: readonly AcknowledgedRow[];
}

/** Reads the list, again and again while the service refuses it. A collection without an id shows nothing. */
async function find({ context, source, once, signal, onWarning }: UnansweredOptions): Promise<Found> {
  const { ledger, timing } = context;
  for (let failures = 1; ; failures += 1) {
    try {
      const found = await gatherListed(context, source, { signal });
      if (found === undefined) return { shown: new Map(), missing: [] };
      const sightings = found.listed.items.flatMap(({ docId, description }): Sighting[] => {
        const reading = readMarker(description);
        const resource = found.listed.resources.get(docId);
        if (reading.kind !== "whole" || resource === undefined || ledger.files.knows(docId)) return [];
        const { marker } = reading;
        const isOurs = marker.source === source.signature.source && marker.writer === source.signature.writer;
        return isOurs ? [{ resource, file: marker.file, bytes: marker.bytes }] : [];
      });
      const missing = found.missing.filter(({ state }) => state === "agreed");
      return { shown: Map.groupBy(sightings, ({ file }) => file), missing };
    } catch (error) {
      if (!(error instanceof KbsyncError) || error.code !== "list_refused") throw error;
      if (once) throw nothingSent(error);
      // Nothing may be sent before this is known, so the request is repeated for as long as it takes.
      if (failures === 1) onWarning(nothingSent(error));
      const waitMs = delayMs(failures, undefined, context.random(), timing.retryMs);
      await sleep(waitMs, undefined, { signal });
    }
  }
}

/** Gives the creates the resources that were found. Returns the intents of those. */
async function adopt(
  { context, source }: UnansweredOptions,
  creates: readonly Waiting[],
  shown: ReadonlyMap<string, readonly Sighting[]>,
): Promise<ReadonlySet<number>> {
  const { ledger } = context;
  const adopted = new Map<number, { readonly path: string; readonly docId: string }>();
  const replaced: Deletion[] = [];
  await ledger.write(() => {
    for (const { intent } of creates) {
      const sent = bytesTag(intent.observed.hash, intent.observed.extractorVersion);
      const sightings = shown.get(fileTag(intent.path)) ?? [];
      const own = sightings.find(({ bytes }) => bytes === sent) ?? sightings[0];
      if (own === undefined) continue;
      const { resource } = own;
      const found = asFound(intent, resource);
      const hasShape = sameShape(found.observed.shape, intent.observed.shape);
      const { metadataHash } = intent.observed;
      const hasMetadata = metadataHash === undefined || metadataHash === resource.metadataHash;
      const isExact = own.bytes === sent && resource.isUnfinished !== true && hasShape && hasMetadata;
      const stored = storedAs(resource.label, intent.observed);
      const left = acknowledgeCreate(ledger, found, resource.docId, isExact, stored);
      if (left === "taken") continue;
      if (left !== undefined) replaced.push(left);
      ledger.files.warn(resource.docId, resource.warning);
      if (!isExact) source.agenda.checkAgain(intent.path);
      adopted.set(intent.id, { path: intent.path, docId: resource.docId });
    }
  });
  for (const deletion of replaced) source.deleteLater(deletion);
  for (const { path, docId } of adopted.values()) reportCompared(context, source, path, docId);
  return new Set(adopted.keys());
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
