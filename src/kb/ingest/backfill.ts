import type { Tier } from "../../wire/primitives.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { RowText, RowVector, Store } from "../store/store.ts";

/** Tiers whose chunks have vectors. */
const TIERS: readonly Tier[] = ["moderate"];
/** Chunks looked up at a time: finding them may take a walk over all that have vectors. */
const PAGE = 256;
/** Chunks written at a time: a crash or a shutdown costs at most this work. */
const BATCH = 64;
/** Chunks handed to the model at a time: what is being created meanwhile waits for no more than these. */
const STEP = 4;
/** After a failure the next run waits so long, unless it is woken: a model that fails rarely works sooner. */
const RETRY_AFTER_MS = 60_000;

/** Gives vectors, in the background, to chunks that were stored without, or with those of another model. */
export interface Backfill {
  /** Begins; during a run, lets it look once more when it is through. One run at a time. */
  wake(this: void): void;
  /** Stops after the step under way. */
  close(): Promise<void>;
}

/** What came of a run: chunks that got a vector, and why it ended early. */
export interface BackfillReport {
  readonly chunks: number;
  readonly error?: unknown;
}

/** What a backfill works on. */
export interface BackfillParts {
  readonly store: Pick<Store, "chunksWithoutVector" | "putVectors">;
  readonly model: () => Promise<Embedder | undefined>;
  /** Hears of each run that did something or failed. */
  readonly report: (report: BackfillReport) => void;
  /** Default one minute. */
  readonly retryAfterMs?: number;
}

/** Opens the backfill; it does nothing before `wake`. */
export function openBackfill({ store, model, report, retryAfterMs }: BackfillParts): Backfill {
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  let again = false;
  let retry: NodeJS.Timeout | undefined;

  const run = async (): Promise<void> => {
    let chunks = 0;
    try {
      const embedder = await model();
      if (embedder === undefined) return;
      while (!stop.signal.aborted) {
        const { fingerprint } = embedder;
        const page = await store.chunksWithoutVector(fingerprint, TIERS, PAGE);
        if (page.length === 0) break;
        for (let at = 0; at < page.length; at += BATCH) {
          const vectors = await embed(embedder, page.slice(at, at + BATCH), stop.signal);
          await store.putVectors(fingerprint, vectors);
          chunks += vectors.length;
        }
      }
      if (chunks > 0) report({ chunks });
    } catch (error) {
      if (stop.signal.aborted) return;
      report({ chunks, error });
      // Not at once, whoever asked for it during the run: one text that fails every time would make it run for ever.
      again = false;
      retry = setTimeout(wake, retryAfterMs ?? RETRY_AFTER_MS).unref();
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
    close: async () => {
      stop.abort();
      clearTimeout(retry);
      await running;
    },
  };
}

async function embed(
  embedder: Embedder,
  chunks: readonly RowText[],
  signal: AbortSignal,
): Promise<RowVector[]> {
  const pairs: RowVector[] = [];
  for (let at = 0; at < chunks.length; at += STEP) {
    const step = chunks.slice(at, at + STEP);
    signal.throwIfAborted();
    // Without the signal: a model must not be closed in the middle of a call, and a call is short.
    const vectors = await embedder.embed(step.map(({ text }) => text));
    for (const [place, { row }] of step.entries()) {
      const vector = vectors[place];
      if (vector === undefined) throw new Error(`${vectors.length} vectors for ${step.length} texts`);
      pairs.push({ row, vector });
    }
  }
  return pairs;
}

/** The same store; `wake` hears of every resource committed without the vectors its tier has. */
export function noticeMissingVectors(store: Store, wake: () => void): Store {
  return {
    ...store,
    createResource: async (resource, chunking, alongside) => {
      const created = await store.createResource(resource, chunking, alongside);
      if (chunking.vectors === undefined && chunking.spans.length > 0 && TIERS.includes(created.tier)) wake();
      return created;
    },
    updateResource: async (change, chunking, alongside) => {
      const updated = await store.updateResource(change, chunking, alongside);
      const lacks = chunking !== undefined && chunking.vectors === undefined && chunking.spans.length > 0;
      if (lacks && updated !== undefined && TIERS.includes(updated.tier)) wake();
      return updated;
    },
  };
}
