import { setTimeout as pause } from "node:timers/promises";
import type { Tier } from "../../wire/primitives.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { Store } from "../store/store.ts";
import type { Chunking, ChunkRef } from "../store/chunks.ts";
import type { Index, ChunkContext } from "../store/search-index.ts";
import { CLOSE_WAIT_MS } from "./model.ts";
import { giveSentences } from "./sentence-vectors.ts";
import { openEmbeddingFailures } from "./embedding-failures.ts";

/** Tiers whose chunks have vectors. */
const TIERS: readonly Tier[] = ["moderate", "high_accuracy"];
/** Chunks per read: a read may have to scan all chunks with vectors. */
const PAGE = 256;
/** Chunks per write: the most work that a crash or a shutdown loses. */
const BATCH = 64;
/** Vectors deleted per transaction: some milliseconds of the writer. */
const RETIRED_BATCH = 2000;
/** Delay before the next run after a failure, unless woken: a failing model rarely recovers sooner. */
const RETRY_AFTER_MS = 60_000;
/** Pause before this process looks whether another one still embeds. */
const ELSEWHERE_MS = 5000;

/** Embeds, in the background, chunks that have no vector or one of another model. */
export interface Backfill {
  /** Starts a run, or schedules another one after the current run. */
  wake(this: void): void;
  /** Resumes the work of an earlier process. Opens no model if no collection whose tier needs vectors has chunks. */
  resume(): Promise<void>;
  /** Whether a run is in progress, here or in another process: searches may not find some chunks by meaning yet. */
  isRunning(): boolean;
  /** Stops after the current step, or after some seconds if that hangs. */
  close(): Promise<void>;
}

/** Result of a run: the number of embedded chunks, and the error that ended it early. */
export interface BackfillReport {
  readonly chunks: number;
  readonly error?: unknown;
}

/** Dependencies of a backfill. */
export interface BackfillParts {
  readonly index: Pick<
    Index,
    | "chunksWithoutVector"
    | "putVectors"
    | "serveComplete"
    | "dropRetired"
    | "chunksWithoutSentences"
    | "putSentences"
  >;
  readonly model: () => Promise<Embedder | undefined>;
  /** Lets one process of a store at a time embed with a model. */
  readonly turns: { runIfFree(name: string, work: () => Promise<void>): Promise<boolean> };
  /** Called after each run that embedded chunks or failed. */
  readonly report: (report: BackfillReport) => void;
  /** Called when the model takes over a scope from an earlier one. */
  readonly onChangedOver?: () => void;
  /** Called when another process has ended a run, in which the model may have taken over scopes. */
  readonly onElsewhere?: () => void;
  /** Called after each run with the number of chunks that the working model cannot embed. */
  readonly onLeft?: (chunks: number) => void;
  /** Default one minute. */
  readonly retryAfterMs?: number;
  /** Default five seconds. */
  readonly elsewhereMs?: number;
}

/** Opens the backfill. It runs only after `wake`. */
export function openBackfill(parts: BackfillParts): Backfill {
  const { index, model, report, retryAfterMs } = parts;
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  let again = false;
  let retry: NodeJS.Timeout | undefined;
  /** Whether another process embeds with this model. */
  let isElsewhere = false;

  const wakeLater = (afterMs = retryAfterMs ?? RETRY_AFTER_MS): void => {
    clearTimeout(retry);
    retry = setTimeout(wake, afterMs).unref();
  };
  const embedAll = openEmbedding(parts, stop.signal, wakeLater);

  const run = async (): Promise<void> => {
    let chunks = 0;
    try {
      const embedder = await model();
      if (embedder === undefined) {
        // Retries by itself: a missing model may be available in minutes, and no other caller may ask.
        wakeLater();
        return;
      }
      const isFree = await parts.turns.runIfFree(`backfill ${embedder.fingerprint}`, async () => {
        if (isElsewhere) parts.onElsewhere?.();
        isElsewhere = false;
        await embedAll(embedder, (count) => (chunks += count));
      });
      isElsewhere = !isFree;
      // The run of the other process may have passed the chunks that woke this one, and the process may fail.
      if (isElsewhere) wakeLater(parts.elsewhereMs ?? ELSEWHERE_MS);
      if (chunks > 0) report({ chunks });
    } catch (error) {
      if (stop.signal.aborted) return;
      report({ chunks, error });
      // Delays the next run even if it was requested: a text that always fails would cause an endless loop.
      again = false;
      wakeLater();
    }
  };

  const wake = (): void => {
    if (stop.signal.aborted) return;
    clearTimeout(retry);
    again = running !== undefined;
    running ??= run().finally(() => {
      running = undefined;
      if (again) wake();
    });
  };

  return {
    // While another process embeds, the timer looks again: otherwise each new document would ask the database.
    wake: () => {
      if (!isElsewhere) wake();
    },
    resume: async () => {
      // No model has this fingerprint, so that any chunk of these tiers is found.
      if ((await index.chunksWithoutVector("", TIERS, 1)).length > 0) wake();
    },
    isRunning: () => running !== undefined || isElsewhere,
    close: async () => {
      stop.abort();
      clearTimeout(retry);
      // A hanging model ends with the process; the next start repeats its work.
      await Promise.race([running, pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}

/**
 * Returns a function that embeds all chunks without a vector of the model. It passes the number of each batch to `count`, and
 * calls `wakeLater` if work is left for a later run. Throws what the model and the store throw, and the signal's reason.
 */
function openEmbedding(
  { index, onChangedOver, onLeft }: BackfillParts,
  signal: AbortSignal,
  wakeLater: () => void,
): (embedder: Embedder, count: (chunks: number) => void) => Promise<void> {
  const failures = openEmbeddingFailures();
  /** Chunks whose sentences the model cannot embed; given up until the process ends. */
  const leftSentences = new Set<ChunkRef>();
  // True at start: a killed process may have left retired vectors.
  let retiring = true;

  const isOpenSuspect = ({ ref }: ChunkContext): boolean =>
    failures.isSuspected(ref) && !failures.isGivenUp(ref);
  const embedChunks = async (embedder: Embedder, chunks: readonly ChunkContext[]): Promise<number> => {
    const vectors = await failures.embed(embedder, chunks, signal);
    await index.putVectors(embedder.fingerprint, vectors);
    return vectors.length;
  };
  /** Switches complete scopes to the model. Deletes the earlier vectors later: searches in flight use them. */
  const changeOver = async ({ fingerprint }: Embedder): Promise<void> => {
    const changed = await index.serveComplete(fingerprint, TIERS, failures.givenUp());
    if (changed === 0) return;
    onChangedOver?.();
    wakeLater();
    retiring = true;
  };
  const retire = async ({ fingerprint }: Embedder): Promise<void> => {
    if (!retiring) return;
    retiring = false;
    while (!signal.aborted && (await index.dropRetired(fingerprint, RETIRED_BATCH)) === RETIRED_BATCH);
  };
  /** Embeds page by page. Returns the chunks that made an earlier request fail, which it leaves out. */
  const embedPages = async (embedder: Embedder, count: (chunks: number) => void): Promise<ChunkContext[]> => {
    const suspects: ChunkContext[] = [];
    let after: ChunkRef | undefined;
    for (let pages = 1; !signal.aborted; pages++) {
      const page = await index.chunksWithoutVector(embedder.fingerprint, TIERS, PAGE, after);
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.ref;
      suspects.push(...page.filter(isOpenSuspect));
      const plain = page.filter(({ ref }) => !failures.isSuspected(ref));
      for (let at = 0; at < plain.length; at += BATCH)
        count(await embedChunks(embedder, plain.slice(at, at + BATCH)));
      // Each call scans all chunks so far. At doubling intervals, all calls together scan them twice.
      if (Math.log2(pages) % 1 === 0) await changeOver(embedder);
    }
    signal.throwIfAborted();
    return suspects;
  };

  return async (embedder, count) => {
    await retire(embedder);
    const suspects = await embedPages(embedder, count);
    for (const suspect of suspects) {
      signal.throwIfAborted();
      const vector = await failures.embedAlone(embedder, suspect);
      if (vector === undefined) continue;
      await index.putVectors(embedder.fingerprint, [vector]);
      count(1);
    }
    if (suspects.some(isOpenSuspect)) wakeLater();
    await changeOver(embedder);
    // Comes after all chunk vectors: these find chunks, sentence vectors only rerank them.
    count(await giveSentences(index, embedder, signal, leftSentences));
    onLeft?.(new Set([...failures.givenUp(), ...leftSentences]).size);
  };
}

/**
 * Wraps a store: calls `wake` after each commit of a resource that lacks vectors of its tier. `isEarlier` returns whether
 * vectors of this fingerprint are of an earlier model: their commit may come after the current model took over.
 */
export function noticeMissingVectors(
  store: Store,
  wake: () => void,
  isEarlier: (fingerprint: string) => boolean = () => false,
): Store {
  const isLacking = (chunking: Chunking, tier: Tier): boolean =>
    lacksVectors(chunking, tier) || (chunking.fingerprint !== undefined && isEarlier(chunking.fingerprint));
  const { records } = store;
  return {
    ...store,
    records: {
      ...records,
      createResource: async (resource, chunking, sameTransaction) => {
        const created = await records.createResource(resource, chunking, sameTransaction);
        if (isLacking(chunking, created.tier)) wake();
        return created;
      },
      updateResource: async (change, chunking, sameTransaction) => {
        const updated = await records.updateResource(change, chunking, sameTransaction);
        if (updated === undefined) return updated;
        // The title is part of the embedded text: a new title makes all vectors stale.
        const isRetitled =
          chunking === undefined && change.title !== undefined && TIERS.includes(updated.tier);
        if (isRetitled || (chunking !== undefined && isLacking(chunking, updated.tier))) wake();
        return updated;
      },
    },
  };
}

function lacksVectors({ spans, vectors, sentences }: Chunking, tier: Tier): boolean {
  if (spans.length === 0 || !TIERS.includes(tier)) return false;
  return vectors === undefined || (tier === "high_accuracy" && sentences === undefined);
}
