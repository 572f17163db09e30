import { setTimeout as pause } from "node:timers/promises";
import type { Tier } from "../../wire/primitives.ts";
import { CITED_MAX, type DocumentReceipt, FRESH_SECONDS_DEFAULT, type Receipt } from "../../wire/receipt.ts";
import type { SearchFallback } from "../../wire/search.ts";
import type { Scope, Unfinished } from "../store/search-index.ts";
import type { KnowledgeBase } from "./knowledge-base.ts";

/**
 * Questions that wait for a fresh answer at a time, of all accounts. An account has a share of them. Each holds a request in
 * flight, and reads the store some times.
 */
export const FRESH_WAITS_MAX = 128;
/** Intervals at which a wait reads the store. They double, so that most waits end soon after their reason. */
const FIRST_READ_MS = 100;
const LAST_READ_MS = 1000;

/** The range of a question. */
export interface Searched {
  readonly scope: Scope;
  readonly tier: Tier;
}

/** The fields of a question that ask for a fresh answer. */
export interface Freshness {
  readonly freshness?: "current" | undefined;
  readonly wait_seconds?: number | undefined;
}

/** The facts from before a search, so that its receipt claims no more than the search could see. */
export type KnownBefore = Pick<Receipt, "current" | "folders" | "foldersUnknown" | "documents" | "gaveUp">;

/**
 * Reads how fresh the answers of searches will be. With `freshness`, waits before for everything that was saved by now, as long
 * as asked at most. Throws the signal's reason.
 */
export async function readBefore(
  kb: KnowledgeBase,
  accountId: string,
  searched: readonly Searched[],
  { freshness, wait_seconds: seconds = FRESH_SECONDS_DEFAULT }: Freshness,
  signal: AbortSignal,
): Promise<KnownBefore> {
  if (freshness === undefined) return knownNow(kb, searched);
  if (!kb.freshWaits.take(accountId, 1))
    return { ...(await knownNow(kb, searched)), current: false, gaveUp: "busy" };
  try {
    return await wait(kb, searched, seconds, signal);
  } finally {
    kb.freshWaits.give(accountId, 1);
  }
}

/** Completes the receipt of an answer that cites these documents. */
export async function receiptOf(
  kb: KnowledgeBase,
  { current, ...before }: KnownBefore,
  cited: readonly string[],
  fallback: SearchFallback | undefined,
): Promise<Receipt> {
  const documents = [...new Set(cited)].slice(0, CITED_MAX);
  const known = documents.length === 0 ? undefined : await kb.askFolders?.({ scopes: [], cited: documents });
  return { current: current && fallback !== "words", ...before, changed: [...(known?.changed ?? [])] };
}

async function knownNow(kb: KnowledgeBase, searched: readonly Searched[]): Promise<KnownBefore> {
  const [known, states] = await Promise.all([foldersOf(kb, searched), unfinished(kb, searched)]);
  const documents = documentsOf(states);
  const isDone = documents.waiting === 0 && documents.failed === 0 && documents.withoutVectors === 0;
  return { current: isDone && known.folders.every(({ current }) => current), ...known, documents };
}

async function wait(
  kb: KnowledgeBase,
  searched: readonly Searched[],
  seconds: number,
  signal: AbortSignal,
): Promise<KnownBefore> {
  const endMs = performance.now() + seconds * 1000;
  // First the folders: they send documents that are waited for next.
  const known = await foldersOf(kb, searched, seconds, signal);
  let states = await unfinished(kb, searched);
  const upToJob = Math.max(0, ...states.map(({ lastJob }) => lastJob));
  let isOlderWaiting = states.some(({ waiting }) => waiting > 0);
  const isWaiting = (): boolean =>
    isOlderWaiting || (kb.isEmbedding() && states.some(({ withoutVectors }) => withoutVectors > 0));
  for (let readMs = FIRST_READ_MS; isWaiting(); readMs = Math.min(2 * readMs, LAST_READ_MS)) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || kb.isEnding()) break;
    await pause(Math.min(readMs, leftMs), undefined, { signal });
    states = await unfinished(kb, searched, upToJob);
    isOlderWaiting = states.some((state) => state.isOlderWaiting);
  }
  const documents = documentsOf(states);
  const isDone = !isOlderWaiting && documents.failed === 0 && documents.withoutVectors === 0;
  const current = isDone && known.folders.every((folder) => folder.current);
  const isOver = !current && performance.now() >= endMs;
  return { current, ...known, documents, ...(isOver && { gaveUp: "timeout" }) };
}

async function foldersOf(
  kb: KnowledgeBase,
  searched: readonly Searched[],
  waitSeconds?: number,
  signal?: AbortSignal,
): Promise<Pick<KnownBefore, "folders" | "foldersUnknown">> {
  if (searched.length === 0) return { folders: [] };
  const scopes = searched.map(({ scope }) =>
    "resourceId" in scope
      ? { documentId: scope.resourceId }
      : { collectionId: scope.collectionId, ownerId: scope.ownerId },
  );
  const known = await kb.askFolders?.(
    { scopes, cited: [], ...(waitSeconds !== undefined && { waitSeconds }) },
    signal,
  );
  return known === undefined ? { folders: [], foldersUnknown: true } : { folders: [...known.folders] };
}

/** Reads what is unfinished in each scope. */
function unfinished(
  kb: KnowledgeBase,
  searched: readonly Searched[],
  upToJob = 0,
): Promise<readonly Unfinished[]> {
  return Promise.all(
    searched.map(async ({ scope, tier }) => {
      const model = tier === "fastest" ? undefined : await kb.embedderFor(scope);
      const vectors = model === undefined ? "no-model" : { fingerprint: model.fingerprint };
      return kb.index.unfinished({ scope, vectors: tier === "fastest" ? "none" : vectors, upToJob });
    }),
  );
}

function documentsOf(states: readonly Unfinished[]): DocumentReceipt {
  const sum = (count: (state: Unfinished) => number): number =>
    states.reduce((total, state) => total + count(state), 0);
  return {
    waiting: sum(({ waiting }) => waiting),
    failed: sum(({ failed }) => failed),
    withoutVectors: sum(({ withoutVectors }) => withoutVectors),
  };
}
