import { withoutLabels } from "../../formats/markup/front-matter.ts";
import type { Embedder } from "../embed/embedder.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { ChunkSentences, ChunkText } from "../store/search-index.ts";
import { PROBE } from "./embedding-failures.ts";
import { newStops, nextSentenceEnd } from "./chunk/sentences.ts";

/** Chunks per call of the model. */
const STEP = 2;
/** Bound on tracked chunks. If more fail, the cause is not the texts. */
const LEFT_MAX = 10_000;

/** Embeds the sentences of each text, in order and without the labels in front matter, with one call of the model. */
export async function embedSentences(
  embedder: Embedder,
  texts: readonly string[],
): Promise<Float32Array[][]> {
  const sentences = texts.map((text) => sentencesOf(withoutLabels(text)));
  const vectors = await embedder.embed(sentences.flat());
  let from = 0;
  return sentences.map(({ length }) => vectors.slice(from, (from += length)));
}

/**
 * Embeds the sentences of chunks. Calls `ready` before each call of the model, and throws its error. Adds a chunk that
 * the working model cannot embed to `left` and skips it from then on; such a chunk keeps its rank by words and vector. Throws other
 * errors of the model.
 */
export async function sentencesOfChunks(
  embedder: Embedder,
  chunks: readonly ChunkText[],
  ready: () => Promise<void>,
  left: Set<ChunkRef> = new Set(),
): Promise<ChunkSentences[]> {
  const wanted = chunks.filter(({ ref }) => !left.has(ref));
  const done: ChunkSentences[] = [];
  for (let at = 0; at < wanted.length; at += STEP) {
    await ready();
    const step = wanted.slice(at, at + STEP);
    try {
      done.push(...(await sentencesOfStep(embedder, step)));
    } catch {
      for (const chunk of step) done.push(...(await sentencesAlone(embedder, chunk, ready, left)));
    }
  }
  return done;
}

/** Embeds the sentences of one chunk of a failed call. Returns nothing if only the chunk fails; throws if the model fails. */
async function sentencesAlone(
  embedder: Embedder,
  chunk: ChunkText,
  ready: () => Promise<void>,
  left: Set<ChunkRef>,
): Promise<ChunkSentences[]> {
  await ready();
  try {
    return await sentencesOfStep(embedder, [chunk]);
  } catch (error) {
    await embedder.embed([PROBE]);
    // If so many fail, the cause is not the texts.
    if (left.size >= LEFT_MAX) throw error;
    left.add(chunk.ref);
    return [];
  }
}

// Passes no signal: a call is short, and the model must not be closed during one.
async function sentencesOfStep(embedder: Embedder, chunks: readonly ChunkText[]): Promise<ChunkSentences[]> {
  const texts = chunks.map(({ text }) => text);
  const vectors = await embedSentences(embedder, texts);
  return chunks.map(({ ref }, at) => ({ ref, vectors: vectors[at] ?? [] }));
}

/** Shorter pieces (a heading, `No.`) carry too little meaning: they join the next sentence. */
const SENTENCE_CHARS_MIN = 20;
/**
 * Maximum sentences of a chunk: those of the largest chunk, 4000 characters, in plain prose. Beyond it (a long list),
 * neighbours are grouped, so that the whole chunk counts and its vectors stay bounded.
 */
export const SENTENCES_MAX = 32;

/**
 * Returns the sentences of a chunk in order, trimmed, each with a letter or a digit. Blank lines and lines that start like a
 * heading, list item, quotation or table row also end a sentence. At most SENTENCES_MAX. Pure.
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

/** Line breaks that start a new block: before a blank line or a line with a Markdown mark. */
const BLOCK_END = /\n(?=[ \t]*(?:\r?\n|[-*+>|#]|\d{1,3}[.)] ))/;

/** Groups neighbours, so that at most SENTENCES_MAX remain. */
function grouped(sentences: readonly string[]): string[] {
  const size = Math.ceil(sentences.length / SENTENCES_MAX);
  if (size <= 1) return [...sentences];
  const groups: string[] = [];
  for (let at = 0; at < sentences.length; at += size) groups.push(sentences.slice(at, at + size).join(" "));
  return groups;
}
