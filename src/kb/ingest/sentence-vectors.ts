import type { Embedder } from "../embed/embedder.ts";
import type { RowSentences } from "../store/sentences.ts";
import type { Store } from "../store/store.ts";
import type { RowText } from "../store/records.ts";
import { PROBE } from "./embedding-failures.ts";
import { newStops, nextSentenceEnd } from "./chunk/sentences.ts";

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

/** Shorter pieces (a heading, `No.`) say too little alone: they begin the next sentence. */
const SENTENCE_CHARS_MIN = 20;
/**
 * Most sentences of one chunk: a chunk of 4000 characters, the largest there is, of plain prose. What comes beyond
 * (a long list) is put together by neighbours, so that all of a chunk counts and its vectors stay bounded.
 */
export const SENTENCES_MAX = 32;

/**
 * The sentences of a chunk, in order, white space around them gone; each holds a letter or a digit. Blank lines and lines
 * that begin like a heading, an item of a list, a quotation or a row of a table divide as well. At most SENTENCES_MAX. Pure.
 */
export function sentencesOf(text: string): string[] {
  const sentences: string[] = [];
  let waiting = "";
  for (const block of text.split(BLOCK_END)) {
    const stops = newStops(block);
    for (let from = 0; from < block.length;) {
      const to = nextSentenceEnd(block, stops, from, block.length);
      waiting = `${waiting} ${block.slice(from, to).trim().replaceAll(/\s+/g, " ")}`.trim();
      from = to;
      if (waiting.length < SENTENCE_CHARS_MIN) continue;
      sentences.push(waiting);
      waiting = "";
    }
  }
  if (waiting !== "") sentences.push(waiting);
  return grouped(sentences.filter((sentence) => /[\p{L}\p{N}]/u.test(sentence)));
}

/** Line breaks where a new block begins: before a blank line, or before a line with a mark of Markdown. */
const BLOCK_END = /\n(?=[ \t]*(?:\r?\n|[-*+>|#]|\d{1,3}[.)] ))/;

/** Neighbours put together, so that there are no more than SENTENCES_MAX. */
function grouped(sentences: readonly string[]): string[] {
  const size = Math.ceil(sentences.length / SENTENCES_MAX);
  if (size <= 1) return [...sentences];
  const groups: string[] = [];
  for (let at = 0; at < sentences.length; at += size) groups.push(sentences.slice(at, at + size).join(" "));
  return groups;
}
