import type { Embedder } from "../embed/embedder.ts";
import type { RowSentences } from "../store/sentences.ts";
import type { Store } from "../store/store.ts";
import type { RowText } from "../store/records.ts";
import { PROBE } from "./embedding-failures.ts";
import { sentencesOf } from "./sentence-texts.ts";

/** Chunks looked up at a time. */
const PAGE = 256;
/** Chunks written at a time: a crash or a shutdown costs at most this work. */
const BATCH = 32;
/** Chunks handed to the model at a time: what is being created meanwhile waits for no more than their sentences. */
const STEP = 2;
/** Chunks remembered as failing; with more it is not the texts. */
const LEFT_MAX = 10_000;

/** Vectors of the sentences of each text, in order. The model is called once. */
export async function embedSentences(
  embedder: Embedder,
  texts: readonly string[],
  signal?: AbortSignal,
): Promise<Float32Array[][]> {
  const sentences = texts.map(sentencesOf);
  const vectors = await embedder.embed(sentences.flat(), signal);
  let from = 0;
  return sentences.map(({ length }) => vectors.slice(from, (from += length)));
}

/**
 * Gives the chunks of the tier `high_accuracy` that lack them the vectors of their sentences; returns how many. Ends early
 * for the signal. A chunk that the model fails on though it works is put into `left`, whose chunks are passed over: it
 * keeps the place that its words and its vector give it. Throws what the model and the store do otherwise; what was
 * written until then stays.
 */
export async function giveSentences(
  store: Pick<Store, "chunksWithoutSentences" | "putSentences">,
  embedder: Embedder,
  signal: AbortSignal,
  left: Set<number> = new Set(),
): Promise<number> {
  let given = 0;
  // Behind the last one looked at, so that a chunk deleted between look and write does not come again for ever.
  let after = 0;
  while (!signal.aborted) {
    const page = await store.chunksWithoutSentences(embedder.fingerprint, after, PAGE);
    for (let at = 0; at < page.length; at += BATCH) {
      const wanted = page.slice(at, at + BATCH).filter(({ row }) => !left.has(row));
      const chunks = await sentencesOfChunks(embedder, wanted, signal, left);
      await store.putSentences(embedder.fingerprint, chunks);
      given += chunks.length;
    }
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.row;
  }
  return given;
}

async function sentencesOfChunks(
  embedder: Embedder,
  chunks: readonly RowText[],
  signal: AbortSignal,
  left: Set<number>,
): Promise<RowSentences[]> {
  const done: RowSentences[] = [];
  for (let at = 0; at < chunks.length; at += STEP) {
    signal.throwIfAborted();
    const step = chunks.slice(at, at + STEP);
    try {
      done.push(...(await sentencesOfStep(embedder, step)));
    } catch {
      for (const chunk of step) done.push(...(await sentencesAlone(embedder, chunk, signal, left)));
    }
  }
  return done;
}

/** Of a chunk beside which the model failed: none where the chunk is to blame. Throws where the model is. */
async function sentencesAlone(
  embedder: Embedder,
  chunk: RowText,
  signal: AbortSignal,
  left: Set<number>,
): Promise<RowSentences[]> {
  signal.throwIfAborted();
  try {
    return await sentencesOfStep(embedder, [chunk]);
  } catch (error) {
    await embedder.embed([PROBE]);
    // So many that it cannot be the texts.
    if (left.size >= LEFT_MAX) throw error;
    left.add(chunk.row);
    return [];
  }
}

// Without the signal: a model must not be closed in the middle of a call, and a call is short.
async function sentencesOfStep(embedder: Embedder, chunks: readonly RowText[]): Promise<RowSentences[]> {
  const vectors = await embedSentences(
    embedder,
    chunks.map(({ text }) => text),
  );
  return chunks.map(({ row }, place) => ({ row, vectors: vectors[place] ?? [] }));
}
