import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { KbsyncError } from "../../lib/failure.ts";
import { openGate } from "../../lib/gate.ts";
import { withoutLabels } from "../../lib/markup/front-matter.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import { embeddingText } from "../embed/embedding-text.ts";
import type { EmbeddedChunk, ModelScope, Index } from "../store/search-index.ts";
import type { Chunking } from "../store/chunks.ts";
import type { ResourceKey } from "../store/resources.ts";
import { chunkText } from "./chunk/span.ts";
import type { Span } from "./chunk/span.ts";
import { gateOptions } from "./requester.ts";
import type { Requester, Extraction, Extractor } from "./extract/extract.ts";
import { MEDIA_TYPES } from "./extract/media-type.ts";
import type { TextForm } from "./extract/text-form.ts";
import type { LanguageService } from "./language-service.ts";
import type { Model, ModelEmbedder } from "./model.ts";
import { embedSentences } from "./sentence-vectors.ts";
import { openSplitter } from "./split.ts";
import type { SplitterParts } from "./split.ts";

/** Resources that may wait for the model: as many as the server's concurrent requests. */
const EMBEDDING_LINE_MAX = 1024;
/** Waiting resources of one account, so that others can still queue. */
const EMBEDDING_SHARE_MAX = 768;
/** Resources embedded concurrently. The model has its own thread; two keep it busy while one is being chunked. */
const EMBEDDING_WIDTH = 2;
/** Further ones of accounts that have none there: no account waits for the documents of another to finish. */
const EMBEDDING_GUESTS = 1;

/**
 * Timeout of embedding before a resource is stored. Beyond it, the backfill embeds the resource: the client would give up before
 * a hanging model does. Three times the duration of the largest resource with its sentences on two cores.
 */
const EMBEDDING_MS = 30_000;

/**
 * A resource with at most this many chunks is embedded before it is stored, a larger one by the backfill. This many chunks take
 * some seconds on two cores; a book takes minutes, which would block all requests behind it.
 */
export const EMBEDDED_FIRST_MAX = 64;
/** The same bound for sentence vectors, which cost about as much again (bench/retrieval.ts --ingest). */
export const SENTENCES_FIRST_MAX = 32;

/**
 * Maximum chunks of a resource. With an overlap close to the size, chunks multiply the text: a million characters at 1000/999
 * would make a million chunks. 32 MB at the default settings make 37,000.
 */
export const CHUNKS_MAX = 100_000;
/**
 * Maximum characters of all chunks of a resource: a multiple of its text plus a constant, which leaves short texts free. Bounds
 * few but large chunks: 900,000 characters at 4000/3990 would make 360 million.
 */
const CHUNK_CHARS_PER_CHAR = 4;
const CHUNK_CHARS_MORE = 4 * 1024 * 1024;

/** Turns a file into text, and a text into chunks, with vectors if the tier has them. */
export interface Ingest {
  /**
   * Extracts the text of an uploaded file. `form` is the declared form of a text file, `requester` the tenant. Throws the errors of
   * the extractor.
   */
  textOf(path: string, mediaType: string, form?: TextForm, requester?: Requester): Promise<ReadText>;
  /**
   * Splits and embeds a text. Returns no vectors if the backfill embeds the resource later: it has many chunks, or no model
   * works. Throws the error of `busy` if too many resources wait, and `too_many_chunks`; both before any work.
   */
  chunk(text: string, settings: Settings, tier: Tier, about?: About): Promise<Chunking>;
  /** Recognises text in images, with its position. */
  readonly ocr: Extractor["ocr"];
  close(): Promise<void>;
}

/** The text of a file with its locations and metadata, and a warning if it is incomplete. */
export type ReadText = Pick<Extraction, "text" | "locations" | "fileMetadata" | "warning">;

/** The document that a text belongs to. */
export interface About {
  readonly title: string;
  /** The scope that the document belongs to. */
  readonly scope?: ModelScope;
  /** The resource whose chunks are replaced, if it keeps its title: unchanged chunks keep their vectors. */
  readonly before?: ResourceKey | undefined;
  /** Describes the part of the document that the text lacks. */
  readonly warning?: string | undefined;
  /** The tenant of the work. */
  readonly requester?: Requester;
}

/** Dependencies of the pipeline. It closes the extractor; the caller owns the model. */
export interface IngestParts {
  readonly model: Model;
  readonly extractor: Extractor;
  /** Creates the error for work that finds the queue full. */
  readonly busy: () => Error;
  /** Chooses boundaries for the strategy `agentic`. Undefined: none is configured. */
  readonly language?: LanguageService | undefined;
  /** Called for each text that is split by another strategy than requested. */
  readonly onOtherStrategy?: SplitterParts["onOtherStrategy"];
  /** Returns the embedder that serves a scope. Default: the model. */
  readonly embedderFor?: (scope: ModelScope) => Promise<ModelEmbedder | undefined>;
  /** Returns the chunks that have a vector already. Default: none. */
  readonly embeddedChunks?: Index["embeddedChunks"];
  /** Timeout of embedding one resource before it is left to the backfill. Default 30 s. */
  readonly embeddingMs?: number;
  /** Called with the duration of each successful stage, queueing included. */
  readonly onStage?: (stage: IngestStage, seconds: number) => void;
}

/** Stages of ingest: file to text, text to chunks, chunks to vectors. */
export type IngestStage = "extract" | "chunk" | "embed";

/** The vectors of a chunking. */
type Embedded = Pick<Chunking, "vectors" | "fingerprint" | "sentences">;

const NOT_EMBEDDED: Embedded = { vectors: undefined, fingerprint: undefined };
const UNTITLED: About = { title: "" };
/** Identifies a chunk among those of the same title by its embedded text. */
const keyOf = ({ headings, text }: EmbeddedChunk): string =>
  hash("sha256", JSON.stringify([headings, withoutLabels(text)]), "base64");
const ignored = (): void => undefined;

/** Opens the pipeline. The chunking worker starts with the first long text. */
export function openIngest(given: IngestParts): Ingest {
  const { model, extractor, busy, language, onOtherStrategy } = given;
  const timed = async <T>(stage: IngestStage, work: () => Promise<T>): Promise<T> => {
    const startMs = performance.now();
    const done = await work();
    given.onStage?.(stage, (performance.now() - startMs) / 1000);
    return done;
  };
  const splitter = openSplitter({
    model,
    language,
    busy,
    onOtherStrategy: onOtherStrategy ?? ignored,
    ...(given.embeddingMs === undefined ? {} : { stepMs: given.embeddingMs }),
  });
  const embedding = openGate({
    width: EMBEDDING_WIDTH,
    lineMax: EMBEDDING_LINE_MAX,
    shareMax: EMBEDDING_SHARE_MAX,
    guests: EMBEDDING_GUESTS,
    full: busy,
  });

  return {
    chunk: async (text, settings, tier, about = UNTITLED) => {
      // With full overlap each chunk advances by the step. Refuses before the work, not after it.
      const { chunkSize, chunkOverlap } = settings;
      const expected = Math.ceil((text.trim().length - chunkOverlap) / (chunkSize - chunkOverlap)) - 1;
      refuseMany(text, expected, expected * chunkSize);
      const { spans, strategyUsed } = await timed("chunk", () =>
        splitter.split(text, settings, about.requester),
      );
      refuseMany(
        text,
        spans.length,
        spans.reduce((sum, { start, end }) => sum + end - start, 0),
      );
      const chunking = {
        spans,
        ...(strategyUsed === settings.strategy ? {} : { strategyUsed }),
        ...(about.warning === undefined ? {} : { warning: about.warning }),
      };
      // All chunks of a new text lack vectors; skips the lookup.
      const isLater = about.before === undefined && spans.length > EMBEDDED_FIRST_MAX;
      if (tier === "fastest" || spans.length === 0 || isLater) return { ...chunking, ...NOT_EMBEDDED };
      const embedded = await timed("embed", () =>
        embedding.run(
          () => embed(given, text, spans, tier, about),
          gateOptions(about.requester, text.length),
        ),
      );
      return { ...chunking, ...embedded };
    },
    textOf: async (path, mediaType, form = "undeclared", requester) => {
      // Rows contain only types that the upload detected, so the lookup succeeds.
      const type = MEDIA_TYPES.find((known) => known === mediaType);
      assert(type !== undefined, `a stored file has the unknown media type ${mediaType}`);
      return await timed("extract", () => extractor.extractText({ path, mediaType: type, form, requester }));
    },
    ocr: extractor.ocr,
    close: async () => {
      extractor.close();
      await splitter.close();
    },
  };
}

/** Embeds the chunks without a known vector, unless there are so many that the backfill does it. */
async function embed(
  { model, embedderFor, embeddedChunks, embeddingMs = EMBEDDING_MS }: IngestParts,
  text: string,
  spans: readonly Span[],
  tier: Tier,
  { title, scope, before }: About,
): Promise<Embedded> {
  const embedder = await (scope === undefined || embedderFor === undefined
    ? model.get()
    : embedderFor(scope));
  if (embedder === undefined || embedder.isResting?.() === true) return NOT_EMBEDDED;
  const { fingerprint } = embedder;
  const earlier = before === undefined ? undefined : await embeddedChunks?.(before, fingerprint);
  const known = new Set(earlier?.map(keyOf));
  const chunks = spans.map((span) => {
    const context = { title, headings: span.headings, text: chunkText(text, span) };
    return { ...context, isKnown: known.has(keyOf(context)) };
  });
  const missing = chunks.filter(({ isKnown }) => !isKnown);
  if (missing.length > EMBEDDED_FIRST_MAX) return NOT_EMBEDDED;
  try {
    const timeout = AbortSignal.timeout(embeddingMs);
    const vectors = await embedder.embed(missing.map(embeddingText), timeout, scope?.accountId);
    const isDeep = tier === "high_accuracy" && missing.length <= SENTENCES_FIRST_MAX;
    const texts = missing.map((chunk) => chunk.text);
    const sentences = isDeep ? await embedSentences(embedder, texts, timeout, scope?.accountId) : undefined;
    /** Aligns new vectors with their chunks. The store keeps known vectors. */
    const aligned = <T>(of: readonly T[]): (T | undefined)[] => {
      let at = 0;
      return chunks.map(({ isKnown }) => (isKnown ? undefined : of[at++]));
    };
    return { vectors: aligned(vectors), fingerprint, sentences: sentences && aligned(sentences) };
  } catch {
    // Stores the document without vectors: searches find it by words, and the backfill retries. The model's state and the
    // log report the failure.
    return NOT_EMBEDDED;
  }
}

function refuseMany(text: string, chunks: number, chars: number): void {
  const charsMax = CHUNK_CHARS_PER_CHAR * text.length + CHUNK_CHARS_MORE;
  if (chunks <= CHUNKS_MAX && chars <= charsMax) return;
  const result =
    chunks > CHUNKS_MAX
      ? `more than ${CHUNKS_MAX} chunks`
      : `chunks of more than ${CHUNK_CHARS_PER_CHAR} times its length`;
  throw new KbsyncError(`these settings would split the text into ${result}`, {
    code: "too_many_chunks",
    hint: "choose a larger chunkSize or a smaller chunkOverlap",
  });
}
