import { setTimeout as pause } from "node:timers/promises";
import type { Tier } from "../../wire/primitives.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { Store } from "../store/store.ts";
import type { Chunking, RowContext } from "../store/records.ts";
import { CLOSE_WAIT_MS } from "./model.ts";
import { giveSentences } from "./sentence-vectors.ts";
import { openEmbeddingFailures } from "./embedding-failures.ts";

/** Tiers whose chunks have vectors. */
const TIERS: readonly Tier[] = ["moderate", "high_accuracy"];
/** Chunks looked up at a time: finding them may take a walk over all that have vectors. */
const PAGE = 256;
/** Chunks written at a time: a crash or a shutdown costs at most this work. */
const BATCH = 64;
/** Vectors taken away in one transaction: some milliseconds of the writer's time. */
const RETIRED_BATCH = 2000;
/** After a failure the next run waits so long, unless it is woken: a model that fails rarely works sooner. */
const RETRY_AFTER_MS = 60_000;

/** Gives vectors, in the background, to chunks that were stored without, or with those of another model. */
export interface Backfill {
  /** Begins; during a run, lets it look once more when it is through. One run at a time. */
  wake(this: void): void;
  /** Whether a run is under way: some chunks may be found less well than they will be. */
  isRunning(): boolean;
  /** Stops after the step under way, or after some seconds where that hangs. */
  close(): Promise<void>;
}

/** What came of a run: chunks that got a vector, and why it ended early. */
export interface BackfillReport {
  readonly chunks: number;
  readonly error?: unknown;
}

/** What a backfill works on. */
export interface BackfillParts {
  readonly store: Pick<
    Store,
    | "chunksWithoutVector"
    | "putVectors"
    | "serveComplete"
    | "dropRetired"
    | "chunksWithoutSentences"
    | "putSentences"
  >;
  readonly model: () => Promise<Embedder | undefined>;
  /** Notified of each run that did something or failed. */
  readonly report: (report: BackfillReport) => void;
  /** Notified that the model serves where another one did. */
  readonly onChangedOver?: () => void;
  /** Notified after each run how many chunks the model cannot embed, though it works. */
  readonly onLeft?: (chunks: number) => void;
  /** Default one minute. */
  readonly retryAfterMs?: number;
}

/** Opens the backfill; it does nothing before `wake`. */
export function openBackfill(parts: BackfillParts): Backfill {
  const { store, model, report, onChangedOver, onLeft, retryAfterMs } = parts;
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  let again = false;
  // Also at the start: a process that was killed may have left some.
  let retiring = true;
  const failures = openEmbeddingFailures();
  /** Chunks whose sentences the model fails on: until the process ends. */
  const leftSentences = new Set<number>();
  let retry: NodeJS.Timeout | undefined;

  const wakeLater = (): void => {
    clearTimeout(retry);
    retry = setTimeout(wake, retryAfterMs ?? RETRY_AFTER_MS).unref();
  };
  const give = async (embedder: Embedder, chunks: readonly RowContext[]): Promise<number> => {
    const vectors = await failures.embed(embedder, chunks, stop.signal);
    await store.putVectors(embedder.fingerprint, vectors);
    return vectors.length;
  };
  /** Lets the model serve where it has all vectors. Those of the one before go later: searches under way use them. */
  const changeOver = async ({ fingerprint }: Embedder): Promise<void> => {
    const changed = await store.serveComplete(fingerprint, TIERS, failures.left());
    if (changed === 0) return;
    onChangedOver?.();
    wakeLater();
    retiring = true;
  };
  const retire = async ({ fingerprint }: Embedder): Promise<void> => {
    if (!retiring) return;
    retiring = false;
    while (!stop.signal.aborted && (await store.dropRetired(fingerprint, RETIRED_BATCH)) === RETIRED_BATCH);
  };

  const run = async (): Promise<void> => {
    let chunks = 0;
    try {
      const embedder = await model();
      if (embedder === undefined) {
        // Nobody else may ask again, and it may be a matter of minutes that there is none.
        wakeLater();
        return;
      }
      await retire(embedder);
      const suspects: RowContext[] = [];
      let after = -1;
      for (let pages = 1; !stop.signal.aborted; pages++) {
        const page = await store.chunksWithoutVector(embedder.fingerprint, TIERS, PAGE, after);
        const last = page.at(-1);
        if (last === undefined) break;
        after = last.row;
        suspects.push(...page.filter(({ row }) => failures.isSuspected(row) && !failures.isLeft(row)));
        const plain = page.filter(({ row }) => !failures.isSuspected(row));
        for (let at = 0; at < plain.length; at += BATCH)
          chunks += await give(embedder, plain.slice(at, at + BATCH));
        // Each look walks over what is there already: with doubling distances all of them together walk over it twice.
        if (Math.log2(pages) % 1 === 0) await changeOver(embedder);
      }
      stop.signal.throwIfAborted();
      for (const suspect of suspects) {
        stop.signal.throwIfAborted();
        const vector = await failures.embedAlone(embedder, suspect);
        if (vector !== undefined) await store.putVectors(embedder.fingerprint, [vector]);
        if (vector !== undefined) chunks++;
      }
      if (suspects.some(({ row }) => failures.isSuspected(row) && !failures.isLeft(row))) wakeLater();
      await changeOver(embedder);
      // After the vectors of all chunks: these find, those of the sentences only put in order.
      chunks += await giveSentences(store, embedder, stop.signal, leftSentences);
      onLeft?.(new Set([...failures.left(), ...leftSentences]).size);
      if (chunks > 0) report({ chunks });
    } catch (error) {
      if (stop.signal.aborted) return;
      report({ chunks, error });
      // Not at once, whoever asked for it during the run: one text that fails every time would make it run for ever.
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
    wake,
    isRunning: () => running !== undefined,
    close: async () => {
      stop.abort();
      clearTimeout(retry);
      // A model that hangs ends with the process; what it makes later is made again by the next start.
      await Promise.race([running, pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}

/**
 * The same store; `wake` is notified of every resource committed without the vectors its tier has. `isChanging` tells whether
 * an earlier model serves.
 */
export function noticeMissingVectors(
  store: Store,
  wake: () => void,
  isChanging: () => boolean = () => false,
): Store {
  // While an earlier model serves, it gives new chunks their vectors, and those of the present one are lacking.
  const isLacking = (chunking: Chunking, tier: Tier): boolean =>
    lacksVectors(chunking, tier) || (isChanging() && TIERS.includes(tier));
  return {
    ...store,
    createResource: async (resource, chunking, alongside) => {
      const created = await store.createResource(resource, chunking, alongside);
      if (isLacking(chunking, created.tier)) wake();
      return created;
    },
    updateResource: async (change, chunking, alongside) => {
      const updated = await store.updateResource(change, chunking, alongside);
      if (updated === undefined) return updated;
      // A title is part of what is embedded: another one makes the vectors of all chunks stale.
      const isRetitled = chunking === undefined && change.title !== undefined && TIERS.includes(updated.tier);
      if (isRetitled || (chunking !== undefined && isLacking(chunking, updated.tier))) wake();
      return updated;
    },
  };
}

function lacksVectors({ spans, vectors, sentences }: Chunking, tier: Tier): boolean {
  if (spans.length === 0 || !TIERS.includes(tier)) return false;
  return vectors === undefined || (tier === "high_accuracy" && sentences === undefined);
}
