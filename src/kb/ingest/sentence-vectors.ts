import type { Embedder } from "../embed/embedder.ts";
import type { RowSentences } from "../store/sentences.ts";
import type { RowText, Store } from "../store/store.ts";
import { sentencesOf } from "./sentence-texts.ts";

/** Chunks looked up at a time. */
const PAGE = 256;
/** Chunks written at a time: a crash or a shutdown costs at most this work. */
const BATCH = 32;
/** Chunks handed to the model at a time: what is being created meanwhile waits for no more than their sentences. */
const STEP = 2;

/** Vectors of the sentences of each text, in order. The model is called once. */
export async function embedSentences(
  embedder: Embedder,
  texts: readonly string[],
): Promise<Float32Array[][]> {
  const sentences = texts.map(sentencesOf);
  const vectors = await embedder.embed(sentences.flat());
  let from = 0;
  return sentences.map(({ length }) => vectors.slice(from, (from += length)));
}

/**
 * Gives the chunks of the tier `high_accuracy` that lack them the vectors of their sentences; returns how many. Ends early
 * for the signal. Throws what the model and the store do; what was written until then stays.
 */
export async function giveSentences(
  store: Pick<Store, "chunksWithoutSentences" | "putSentences">,
  embedder: Embedder,
  signal: AbortSignal,
): Promise<number> {
  let given = 0;
  // Behind the last one looked at, so that a chunk deleted between look and write does not come again for ever.
  let after = 0;
  while (!signal.aborted) {
    const page = await store.chunksWithoutSentences(embedder.fingerprint, after, PAGE);
    for (let at = 0; at < page.length; at += BATCH) {
      const chunks = await sentencesOfChunks(embedder, page.slice(at, at + BATCH), signal);
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
): Promise<RowSentences[]> {
  const done: RowSentences[] = [];
  for (let at = 0; at < chunks.length; at += STEP) {
    signal.throwIfAborted();
    const step = chunks.slice(at, at + STEP);
    // Without the signal: a model must not be closed in the middle of a call, and a call is short.
    const vectors = await embedSentences(
      embedder,
      step.map(({ text }) => text),
    );
    done.push(...step.map(({ row }, place) => ({ row, vectors: vectors[place] ?? [] })));
  }
  return done;
}
