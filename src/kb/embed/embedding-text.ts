import { oneLine } from "../../lib/one-line.ts";

/** A chunk and where it stands. */
export interface ChunkContext {
  /** Of its document. */
  readonly title: string;
  /** Path of headings above it, outermost first. */
  readonly headings: readonly string[];
  readonly text: string;
}

/**
 * Most characters of context: some 50 tokens of the 256 that the local model reads. A chunk of the default size needs
 * about 220; a longer context would push the end of the chunk out.
 */
export const CONTEXT_CHARS_MAX = 200;

/**
 * To be raised with every change of what `embeddingText` makes of a chunk: vectors of two versions are not of one kind, and
 * the old ones are replaced in the background. A test holds its texts to it.
 */
export const EMBEDDING_TEXT_VERSION = 1;

/**
 * The fingerprint of an embedder, given that of its model: with the version of the texts it gets. The first version stands
 * for itself, so that stores from before versions were told keep their vectors.
 */
export function embedderFingerprint(model: string, version: number = EMBEDDING_TEXT_VERSION): string {
  return version === 1 ? model : `${model}/text-${version}`;
}

/** The fingerprint of the model, whatever texts it got. */
export function modelFingerprint(embedder: string): string {
  return embedder.replace(/\/text-\d+$/, "");
}

/**
 * What is embedded for a chunk: the title of its document and the headings above it, a line each, then its text. A
 * chunk from the middle of a document seldom names what it is about. A line that the chunk itself begins with, or that
 * repeats the one before, is left out; where the context is too long, the outermost headings go first, then the end of
 * the title. Pure: the same context gives the same text, by whose hash vectors are kept.
 */
export function embeddingText({ title, headings, text }: ChunkContext): string {
  const lines: string[] = [];
  for (const line of [title, ...headings].map(oneLine)) {
    if (line !== "" && line !== lines.at(-1) && !beginsWith(text, line)) lines.push(line);
  }
  const [first = "", ...rest] = lines;
  // The title names the subject and the innermost heading the matter; what lies between them gives way.
  const inner: string[] = [];
  let room = CONTEXT_CHARS_MAX - Math.min(first.length, CONTEXT_CHARS_MAX / 2);
  for (const line of rest.toReversed()) {
    if (line.length > room) break;
    inner.unshift(line);
    room -= line.length;
  }
  const outer = first.slice(0, CONTEXT_CHARS_MAX - inner.join("").length);
  return [outer, ...inner, text].filter((line) => line !== "").join("\n");
}

/** Whether a text begins with a line, marks of a heading before it left aside. */
function beginsWith(text: string, line: string): boolean {
  return text.replace(/^[#\s]+/, "").startsWith(line);
}
