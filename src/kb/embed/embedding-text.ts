import { withoutLabels } from "../../formats/markup/front-matter.ts";
import { oneLine } from "../../lib/one-line.ts";

/** A chunk and its context in the document. */
export interface ChunkContext {
  /** Title of the document. */
  readonly title: string;
  /** Path of headings above it, outermost first. */
  readonly headings: readonly string[];
  readonly text: string;
}

/**
 * Maximum characters of context: about 50 of the 256 tokens that the local model reads. A chunk of the default size needs
 * about 220; a longer context would truncate the chunk.
 */
export const CONTEXT_CHARS_MAX = 200;

/**
 * Version of the output of `embeddingText`. Increase it with every change of the output: vectors of different versions are
 * not comparable, and a backfill replaces the old ones. A test pins output and version. The labels in front matter were once part
 * of version 1: a few words among 200 leave vectors comparable, so nothing is embedded again for them.
 */
export const EMBEDDING_TEXT_VERSION = 1;

/**
 * Returns the fingerprint of an embedder: the model's fingerprint plus the version of the embedded texts. Version 1 adds
 * nothing, so that vectors from before versioning stay valid.
 */
export function embedderFingerprint(model: string, version: number = EMBEDDING_TEXT_VERSION): string {
  return version === 1 ? model : `${model}/text-${version}`;
}

/** Returns the fingerprint of an embedder's model, without the version of the texts. */
export function modelFingerprint(embedder: string): string {
  return embedder.replace(/\/text-\d+$/, "");
}

/**
 * Returns the text to embed for a chunk: the title of its document and the headings above it, a line each, then the text.
 * The context matters because a chunk from the middle of a document seldom names its subject. Omits labels and facts in front
 * matter, so that a changed tag changes no vector. Omits a line that the chunk
 * starts with or that repeats the line before. Shortens a long context by the outermost headings first, then by the end of
 * the title. Pure: equal contexts give equal texts, whose hash is the cache key of vectors.
 */
export function embeddingText({ title, headings, text: whole }: ChunkContext): string {
  const text = withoutLabels(whole);
  const lines: string[] = [];
  for (const line of [title, ...headings].map(oneLine)) {
    if (line !== "" && line !== lines.at(-1) && !beginsWith(text, line)) lines.push(line);
  }
  const [first = "", ...rest] = lines;
  // The title and the innermost heading say most; headings between them are dropped first.
  const inner: string[] = [];
  let charsLeft = CONTEXT_CHARS_MAX - Math.min(first.length, CONTEXT_CHARS_MAX / 2);
  for (const line of rest.toReversed()) {
    if (line.length > charsLeft) break;
    inner.unshift(line);
    charsLeft -= line.length;
  }
  const outer = first.slice(0, CONTEXT_CHARS_MAX - inner.join("").length);
  return [outer, ...inner, text].filter((line) => line !== "").join("\n");
}

/** Whether a text starts with a line, ignoring heading marks before it. */
function beginsWith(text: string, line: string): boolean {
  return text.replace(/^[#\s]+/, "").startsWith(line);
}
