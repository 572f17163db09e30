import { setTimeout as sleep } from "node:timers/promises";
import { joinPending, type Pending, type SearchAnswer } from "../../wire/search.ts";
import { paceTrouble } from "../send/remote/pacer.ts";
import type { SearchQuery } from "../send/remote/remote.ts";
import type { SourceSync } from "./source/source.ts";
import type { Parts } from "./parts.ts";

/** How long a status or an explanation waits for the service's count. */
const COUNT_MS_MAX = 1000;
/** Age at which it is asked for again. */
const COUNT_AGE_MS = 2000;
/** Interval of the questions of a wait. The service's count is at most a second old. */
const ASK_MS = 1000;
/** A service that searches by words alone for so long has no embedding model. */
const NO_MODEL_MS = 20_000;

/** What waits at the service in the ranges of searches, by its own count. */
export type Meaning = Pending & {
  /** It searches by words alone now, so that nothing is found by meaning. */
  readonly isOff: boolean;
};

/** Asks the service what waits in some ranges. Undefined: it does not say, or not in time, or there are none. */
async function countPending(
  { context, pacer }: Pick<Parts, "context" | "pacer">,
  ranges: readonly SearchQuery["where"][],
  signal: AbortSignal,
): Promise<Meaning | undefined> {
  if (ranges.length === 0 || paceTrouble(pacer.state()) !== undefined) return undefined;
  const answers = await Promise.all(
    ranges.map((where) => context.remote.search({ query: "passages", topK: 1, where }, signal)),
  );
  const found: SearchAnswer[] = [];
  for (const answer of answers) {
    if (answer.kind !== "done" || answer.value.pending === undefined) return undefined;
    found.push(answer.value);
  }
  return { ...joinPending(found), isOff: found.some(({ fallback }) => fallback === "words") };
}

/** The same within a second. */
async function countSoon(
  parts: Parts,
  ranges: readonly SearchQuery["where"][],
  signal: AbortSignal,
): Promise<Meaning | undefined> {
  const deadline = AbortSignal.timeout(COUNT_MS_MAX);
  return countPending(parts, ranges, AbortSignal.any([signal, deadline])).catch((error: unknown) => {
    // An answer without this count is complete.
    if (deadline.aborted) return undefined;
    throw error;
  });
}

/** Returns whether a search by meaning finds a document; undefined: the service does not say. */
export async function hasMeaning(
  parts: Parts,
  docId: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const counted = await countSoon(parts, [{ docId }], signal);
  return counted && counted.embed === 0 && !counted.isOff;
}

/** Opens the count of all sources, which is asked for at most every two seconds. */
export function openMeaning(
  parts: Parts,
  sources: () => readonly SourceSync[],
): (signal: AbortSignal) => Promise<Meaning | undefined> {
  let last: { readonly atMs: number; readonly counted: Meaning | undefined } | undefined;
  return async (signal) => {
    const nowMs = performance.now();
    if (last === undefined || nowMs - last.atMs > COUNT_AGE_MS)
      last = { atMs: nowMs, counted: await countSoon(parts, rangesOf(parts, sources()), signal) };
    return last.counted;
  };
}

/** The ranges of sources that are searched by meaning. */
function rangesOf({ context }: Parts, sources: readonly SourceSync[]): SearchQuery["where"][] {
  const ranges = sources.flatMap(({ rules: { source } }) => {
    const collectionId = context.collections.id(source.collection);
    if (source.collection === "fastest" || collectionId === undefined) return [];
    return [{ collectionId, ownerId: source.ownerId }];
  });
  return distinct(ranges);
}

function distinct(ranges: readonly SearchQuery["where"][]): SearchQuery["where"][] {
  return [...new Map(ranges.map((range) => [JSON.stringify(range), range])).values()];
}

/**
 * Resolves when everything in some sources, or one file, is found by meaning too; with the reason if that does not come true
 * by waiting.
 */
export async function waitForMeaning(
  parts: Parts,
  targets: readonly { readonly source: SourceSync; readonly docId: string | undefined }[],
  signal: AbortSignal,
  onWaiting: (documents: number) => void,
): Promise<string | undefined> {
  const ranges = distinct(
    targets.flatMap(({ source, docId }) => {
      if (docId === undefined) return rangesOf(parts, [source]);
      return source.rules.source.collection === "fastest" ? [] : [{ docId }];
    }),
  );
  const startMs = performance.now();
  for (;;) {
    if (ranges.length === 0) return undefined;
    const isOpen = paceTrouble(parts.pacer.state()) === undefined;
    const counted = await countPending(parts, ranges, signal);
    if (counted === undefined && isOpen) return "the service does not say what is found by meaning";
    if (counted?.isOff === true) {
      if (performance.now() - startMs > NO_MODEL_MS)
        return "the service searches by words alone: its embedding model is missing or does not answer";
    } else if (counted !== undefined) {
      if (counted.embed === 0) return undefined;
      onWaiting(counted.embed);
    }
    await sleep(ASK_MS, undefined, { signal });
  }
}
