import assert from "node:assert/strict";
import { KbsyncError } from "../../lib/failure.ts";
import { openGate } from "../../lib/gate.ts";
import { lazyWorker } from "../../lib/lazy-worker.ts";
import { siblingModule } from "../../lib/sibling.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import type { Chunking } from "../store/store.ts";
import { chunkRecursive } from "./chunk/recursive.ts";
import type { Span } from "./chunk/span.ts";
import type { ChunkMethods } from "./chunk-worker.ts";
import type { Extractor } from "./extract/extract.ts";
import { MEDIA_TYPES } from "./extract/media-type.ts";
import type { Model } from "./model.ts";

/** Texts up to this long are chunked in place: it takes less than the way to the worker and back. */
export const INLINE_CHARS_MAX = 64 * 1024;
/** Long texts that may wait for the chunking worker: each may hold 32 MB. */
const LONG_LINE_MAX = 64;
/** Resources that may wait for the model: as many requests as the server takes at once. */
const EMBEDDING_LINE_MAX = 1024;
/** Resources embedded at once. The model has its own thread; two keep it busy while one is being chunked. */
const EMBEDDING_WIDTH = 2;

/**
 * A resource of at most so many chunks has its vectors when it is stored, one of more gets them afterwards: so many chunks
 * take some seconds on two cores, a book takes minutes, in which nothing behind it would be answered.
 */
export const EMBEDDED_FIRST_MAX = 64;

/**
 * Most chunks of one resource. With an overlap close to the size a text grows without bound as it is chunked: a million
 * characters at 1000/999 would make a million chunks. 32 MB at the default settings make 37,000.
 */
export const CHUNKS_MAX = 100_000;
/**
 * Most characters of all chunks of one resource: so many times those of its text, and so many more, for short texts may
 * be cut as one likes. Few chunks can be too much as well: 900,000 characters at 4000/3990 would make 360 million.
 */
const CHUNK_CHARS_PER_CHAR = 4;
const CHUNK_CHARS_MORE = 4 * 1024 * 1024;

/** Turns a file into its text, and a text into what the store keeps of it: chunks, and vectors where the tier has them. */
export interface Ingest {
  /**
   * The text of an uploaded file; `asWritten` leaves text as it is, even where it is a page of HTML. Throws what the
   * extractor does.
   */
  textOf(path: string, mediaType: string, asWritten?: boolean): Promise<string>;
  /**
   * Gives no vectors where the resource is to get them later: it has many chunks, or there is no model that works.
   * Throws what `busy` makes when too much is waiting already, and `too_many_chunks`; then nothing was done.
   */
  chunk(text: string, settings: Settings, tier: Tier): Promise<Chunking>;
  /** Recognises text in images, with its places. */
  readonly ocr: Extractor["ocr"];
  close(): Promise<void>;
}

/** What the pipeline works with. It closes the extractor; the model belongs to the caller. */
export interface IngestParts {
  readonly model: Model;
  readonly extractor: Extractor;
  /** Makes the failure for work that finds the line full. */
  readonly busy: () => Error;
}

/** Opens the pipeline. The chunking worker starts with the first long text. */
export function openIngest({ model, extractor, busy }: IngestParts): Ingest {
  const worker = lazyWorker<ChunkMethods>(siblingModule(import.meta.url, "chunk-worker"), "chunking");
  const long = openGate(1, LONG_LINE_MAX, busy);
  const embedding = openGate(EMBEDDING_WIDTH, EMBEDDING_LINE_MAX, busy);

  const spansOf = (text: string, settings: Settings): Promise<readonly Span[]> =>
    text.length <= INLINE_CHARS_MAX
      ? Promise.resolve(chunkRecursive(text, settings))
      : long.run(() => worker.call("chunk", { text, settings }));

  const embed = async (text: string, spans: readonly Span[]): Promise<Chunking> => {
    const embedder = await model.get();
    if (embedder === undefined) return { spans, vectors: undefined, fingerprint: undefined };
    try {
      const vectors = await embedder.embed(spans.map(({ start, end }) => text.slice(start, end)));
      return { spans, vectors, fingerprint: embedder.fingerprint };
    } catch {
      // A model that fails costs the vectors, not the document: words find it, and the backfill tries again. The model's
      // own state and the log tell of the failure.
      return { spans, vectors: undefined, fingerprint: undefined };
    }
  };

  return {
    chunk: async (text, settings, tier) => {
      // With the overlap taken in full each chunk goes forward by the step: told before the work is done, not after.
      const { chunkSize, chunkOverlap } = settings;
      const expected = Math.ceil((text.trim().length - chunkOverlap) / (chunkSize - chunkOverlap)) - 1;
      refuseMany(text, expected, expected * chunkSize);
      const spans = await spansOf(text, settings);
      refuseMany(
        text,
        spans.length,
        spans.reduce((sum, { start, end }) => sum + end - start, 0),
      );
      if (tier === "fastest" || spans.length === 0 || spans.length > EMBEDDED_FIRST_MAX) {
        return { spans, vectors: undefined, fingerprint: undefined };
      }
      return embedding.run(() => embed(text, spans));
    },
    textOf: async (path, mediaType, asWritten = false) => {
      // Rows hold only types that the upload found, so this finds its type back.
      const type = MEDIA_TYPES.find((known) => known === mediaType);
      assert(type !== undefined, `a stored file has the unknown media type ${mediaType}`);
      const { text } = await extractor.extractText({ path, mediaType: type, asWritten });
      return text;
    },
    ocr: extractor.ocr,
    close: async () => {
      extractor.close();
      await worker.close();
    },
  };
}

function refuseMany(text: string, chunks: number, chars: number): void {
  const charsMax = CHUNK_CHARS_PER_CHAR * text.length + CHUNK_CHARS_MORE;
  if (chunks <= CHUNKS_MAX && chars <= charsMax) return;
  const what =
    chunks > CHUNKS_MAX
      ? `more than ${CHUNKS_MAX} chunks`
      : `chunks of more than ${CHUNK_CHARS_PER_CHAR} times its length`;
  throw new KbsyncError(`these settings would split the text into ${what}`, {
    code: "too_many_chunks",
    hint: "choose a larger chunkSize or a smaller chunkOverlap",
  });
}
