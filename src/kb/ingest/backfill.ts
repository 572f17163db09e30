import { setTimeout as pause } from "node:timers/promises";
import type { Tier } from "../../wire/primitives.ts";
import type { Store } from "../store/store.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { Index, ChunkContext } from "../store/search-index.ts";
import { CLOSE_WAIT_MS, type ModelEmbedder } from "./model.ts";
import { sentencesOfChunks } from "./sentence-vectors.ts";
import { type EmbeddingFailures, openEmbeddingFailures } from "./embedding-failures.ts";
import { openEmbeddingOrder } from "./embedding-order.ts";

/** Tiers whose chunks have vectors. */
const TIERS: readonly Tier[] = ["moderate", "high_accuracy"];
/** Chunks per read and write: the most work that a crash or a shutdown loses, and for which a newer change waits. */
const BATCH = 32;
/** A local model pauses until no text was taken in for so long: a client that sends many leaves shorter gaps. */
const QUIET_MS = 300;
/** Longest pause between two calls of the model, so that documents get vectors even if texts come all the time. */
const PAUSE_MAX_MS = 2000;
/** Vectors deleted per transaction: some milliseconds of the writer. */
const RETIRED_BATCH = 2000;
/** Delay before the next run after a failure, unless woken: a failing model rarely recovers sooner. */
const RETRY_AFTER_MS = 60_000;
/** Longest age of what is known of texts that wait, and of the texts that a run has found while it still has others to embed. */
const AGE_MS_MAX = 1000;
/** Pause before this process looks whether another one still embeds, or what others have written. */
const ELSEWHERE_MS = 5000;

/** Makes all vectors of documents, in the background: of chunks that have none, or one of another model. */
export interface Backfill {
  /** Call it whenever a text is taken in: a local model pauses meanwhile. */
  noteText(this: void): void;
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
    | "embeddingScopes"
    | "documentsLacking"
    | "chunksLacking"
    | "putVectors"
    | "putSentences"
    | "serveComplete"
    | "dropRetired"
  >;
  readonly model: () => Promise<ModelEmbedder | undefined>;
  /** Whether texts wait to be taken in, here or in another process. Asked once a second at most. */
  readonly textsWait: () => Promise<boolean>;
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
  /** Called with the duration of each call of the model. */
  readonly onEmbedded?: (seconds: number) => void;
  /** Default one minute. */
  readonly retryAfterMs?: number;
  /** Default five seconds. */
  readonly elsewhereMs?: number;
  /** Pauses of a local model while texts are taken in. Default 300 ms without a text, and at most two seconds. */
  readonly pauses?: { readonly quietMs: number; readonly maxMs: number };
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
  let textMs = -Infinity;
  let askedMs = -Infinity;
  let isTextWaiting = false;
  /** Waits while texts are taken in, or wait for that. Throws the signal's reason. */
  const idle = async (): Promise<void> => {
    const { quietMs, maxMs } = parts.pauses ?? { quietMs: QUIET_MS, maxMs: PAUSE_MAX_MS };
    const endMs = performance.now() + maxMs;
    for (;;) {
      stop.signal.throwIfAborted();
      if (performance.now() > askedMs + AGE_MS_MAX) {
        askedMs = performance.now();
        isTextWaiting = await parts.textsWait();
      }
      if (isTextWaiting) textMs = performance.now();
      const leftMs = Math.min(endMs, textMs + quietMs) - performance.now();
      if (leftMs <= 0) return;
      await pause(leftMs, undefined, { signal: stop.signal, ref: false });
    }
  };
  const takeWake = (): boolean => {
    const isWoken = again;
    again = false;
    return isWoken;
  };
  const embedAll = openEmbedding(parts, { signal: stop.signal, idle, takeWake, wakeLater });

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
    noteText: () => {
      textMs = performance.now();
    },
    // While another process embeds, the timer looks again: otherwise each new document would ask the database.
    wake: () => {
      if (!isElsewhere) wake();
    },
    resume: async () => {
      if ((await index.embeddingScopes(TIERS)).length > 0) wake();
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

/** What a run of the backfill depends on. */
interface RunControl {
  readonly signal: AbortSignal;
  /** Waits until the processors are free. Throws the signal's reason. */
  readonly idle: () => Promise<void>;
  /** Returns whether chunks were written since the last call. */
  readonly takeWake: () => boolean;
  readonly wakeLater: () => void;
}

/**
 * Returns a function that embeds all chunks without a vector of the model. It passes the number of each batch to `count`, and
 * calls `wakeLater` if work is left for a later run. Throws what the model and the store throw, and the signal's reason.
 */
function openEmbedding(
  { index, onChangedOver, onLeft, onEmbedded }: BackfillParts,
  { signal, idle, takeWake, wakeLater }: RunControl,
): (embedder: ModelEmbedder, count: (chunks: number) => void) => Promise<void> {
  const failures = openEmbeddingFailures();
  /** Chunks whose sentences the model cannot embed; given up until the process ends. */
  const leftSentences = new Set<ChunkRef>();
  // True at start: a killed process may have left retired vectors.
  let retiring = true;
  let orders: EmbeddingOrders | undefined;

  /** Switches complete scopes to the model. Deletes the earlier vectors later: searches in flight use them. */
  const changeOver = async ({ fingerprint }: ModelEmbedder): Promise<void> => {
    const changed = await index.serveComplete(fingerprint, TIERS, failures.givenUp());
    if (changed === 0) return;
    onChangedOver?.();
    wakeLater();
    retiring = true;
  };
  const retire = async ({ fingerprint }: ModelEmbedder): Promise<void> => {
    if (!retiring) return;
    retiring = false;
    while (!signal.aborted && (await index.dropRetired(fingerprint, RETIRED_BATCH)) === RETIRED_BATCH);
  };
  const timed = (embedder: ModelEmbedder): ModelEmbedder => ({
    ...embedder,
    embed: async (...given) => {
      const startMs = performance.now();
      const vectors = await embedder.embed(...given);
      onEmbedded?.((performance.now() - startMs) / 1000);
      return vectors;
    },
  });

  return async (embedder, count) => {
    await retire(embedder);
    if (orders?.fingerprint !== embedder.fingerprint) orders = openOrders(index, embedder.fingerprint);
    const order = orders;
    // Unless all is done, what was examined is examined again.
    orders = undefined;
    const isLeft = await embedInOrder(timed(embedder), order, {
      index,
      signal,
      ready: async () => {
        signal.throwIfAborted();
        if (embedder.kind === "local") await idle();
      },
      takeWake,
      failures,
      leftSentences,
      changeOver: () => changeOver(embedder),
      count,
    });
    if (isLeft) wakeLater();
    else orders = order;
    await changeOver(embedder);
    onLeft?.(new Set([...failures.givenUp(), ...leftSentences]).size);
  };
}

type EmbeddingOrders = ReturnType<typeof openOrders>;

/** Opens the orders in which a model embeds chunks, and then their sentences. */
function openOrders(index: BackfillParts["index"], fingerprint: string) {
  return {
    fingerprint,
    vectors: openEmbeddingOrder(index, TIERS, { lacks: "vectors", fingerprint }),
    sentences: openEmbeddingOrder(index, ["high_accuracy"], { lacks: "sentences", fingerprint }),
  };
}

/** What embedding in an order depends on. */
interface OrderedRun extends Pick<BackfillParts, "index">, Pick<RunControl, "signal" | "takeWake"> {
  /** Waits until the model may be called. Throws the signal's reason. */
  readonly ready: () => Promise<void>;
  readonly failures: EmbeddingFailures;
  readonly leftSentences: Set<ChunkRef>;
  /** Switches scopes to the model that have all its vectors by now. */
  readonly changeOver: () => Promise<void>;
  readonly count: (chunks: number) => void;
}

/** Embeds all that the orders show. Returns whether a chunk is left that is tried again later. */
async function embedInOrder(
  embedder: ModelEmbedder,
  { fingerprint, vectors, sentences }: EmbeddingOrders,
  { index, signal, ready, takeWake, failures, leftSentences, changeOver, count }: OrderedRun,
): Promise<boolean> {
  const isOpenSuspect = ({ ref }: ChunkContext): boolean =>
    failures.isSuspected(ref) && !failures.isGivenUp(ref);
  const suspects: ChunkContext[] = [];
  let tried = 0;
  let refreshedMs = -Infinity;
  let isWoken = false;
  const refresh = async (): Promise<void> => {
    refreshedMs = performance.now();
    isWoken = false;
    await Promise.all([vectors.refresh(), sentences.refresh()]);
  };
  for (let batches = 1; ; batches++) {
    signal.throwIfAborted();
    isWoken = takeWake() || isWoken;
    // Other processes do not wake this one.
    if (performance.now() > refreshedMs + (isWoken ? AGE_MS_MAX : ELSEWHERE_MS)) await refresh();
    const chunks = await vectors.next(BATCH);
    if (chunks.length > 0) {
      suspects.push(...chunks.filter(isOpenSuspect));
      const plain = chunks.filter(({ ref }) => !failures.isSuspected(ref));
      const made = await failures.embed(embedder, plain, ready);
      await index.putVectors(fingerprint, made);
      count(made.length);
      // Each call scans the chunks that an earlier model serves. At doubling intervals, all calls together scan them twice.
      if (Math.log2(batches) % 1 === 0) await changeOver();
      continue;
    }
    if (isWoken) {
      await refresh();
      continue;
    }
    const suspect = suspects[tried];
    if (suspect !== undefined) {
      tried += 1;
      await ready();
      const vector = await failures.embedAlone(embedder, suspect);
      if (vector === undefined) continue;
      await index.putVectors(fingerprint, [vector]);
      count(1);
      continue;
    }
    // Come after all chunk vectors: these find chunks, sentence vectors only rerank them.
    const deep = await sentences.next(BATCH);
    if (deep.length === 0) return suspects.some(isOpenSuspect);
    const made = await sentencesOfChunks(embedder, deep, ready, leftSentences);
    await index.putSentences(fingerprint, made);
    count(made.length);
  }
}

/**
 * Wraps a store: notes each text that is taken in, and wakes the backfill after each commit of a resource whose chunks may lack
 * vectors of its tier.
 */
export function noticeTexts(store: Store, { noteText, wake }: Pick<Backfill, "noteText" | "wake">): Store {
  const { records } = store;
  return {
    ...store,
    records: {
      ...records,
      createResource: async (resource, chunking, sameTransaction) => {
        noteText();
        const created = await records.createResource(resource, chunking, sameTransaction);
        noteText();
        if (chunking.spans.length > 0 && TIERS.includes(created.tier)) wake();
        return created;
      },
      updateResource: async (change, chunking, sameTransaction) => {
        noteText();
        const updated = await records.updateResource(change, chunking, sameTransaction);
        noteText();
        // The title is part of the embedded text: a new title makes all vectors stale.
        const mayLack = chunking === undefined ? change.title !== undefined : chunking.spans.length > 0;
        if (updated !== undefined && mayLack && TIERS.includes(updated.tier)) wake();
        return updated;
      },
    },
  };
}
