import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { KbsyncError } from "../../lib/failure.ts";
import { openGate } from "../../lib/gate.ts";
import type { Settings, Tier } from "../../wire/primitives.ts";
import { embeddingText } from "../embed/embedding-text.ts";
import type { EmbeddedChunk, ModelPlace, ModelStore } from "../store/models.ts";
import type { Chunking, ResourceKey } from "../store/records.ts";
import { chunkText } from "./chunk/span.ts";
import type { Span } from "./chunk/span.ts";
import { gateOptions } from "./behalf.ts";
import type { Behalf, Extraction, Extractor } from "./extract/extract.ts";
import { MEDIA_TYPES } from "./extract/media-type.ts";
import type { TextForm } from "./extract/text-form.ts";
import type { LanguageService } from "./language-service.ts";
import type { Model, ModelEmbedder } from "./model.ts";
import { embedSentences } from "./sentence-vectors.ts";
import { openSplitter } from "./split.ts";
import type { SplitterParts } from "./split.ts";

/** Resources that may wait for the model: as many requests as the server takes at once. */
const EMBEDDING_LINE_MAX = 1024;
/** Of one account, so that another one finds room. */
const EMBEDDING_SHARE_MAX = 768;
/** Resources embedded at once. The model has its own thread; two keep it busy while one is being chunked. */
const EMBEDDING_WIDTH = 2;

/**
 * A resource that has no vectors after so long gets them afterwards: its request would be given up before a model that hangs
 * is. Three times what the most chunks with their sentences take on two cores.
 */
const EMBEDDING_MS = 30_000;

/**
 * A resource of at most so many chunks has its vectors when it is stored, one of more gets them afterwards: so many chunks
 * take some seconds on two cores, a book takes minutes, in which nothing behind it would be answered.
 */
export const EMBEDDED_FIRST_MAX = 64;
/** The same for the vectors of sentences, which cost about as much again (bench/retrieval.ts --ingest). */
export const SENTENCES_FIRST_MAX = 32;

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
   * The text of an uploaded file; `form` is how text is read, by what is declared of it; `behalf` says for whom.
   * Throws what the extractor does.
   */
  textOf(path: string, mediaType: string, form?: TextForm, behalf?: Behalf): Promise<ReadText>;
  /**
   * Gives no vectors where the resource is to get them later: it has many chunks, or there is no model that works.
   * Throws what `busy` makes when too much is waiting already, and `too_many_chunks`; then nothing was done.
   */
  chunk(text: string, settings: Settings, tier: Tier, about?: About): Promise<Chunking>;
  /** Recognises text in images, with its places. */
  readonly ocr: Extractor["ocr"];
  close(): Promise<void>;
}

/** The text of a file, and what of the file it does not hold. */
export type ReadText = Pick<Extraction, "text" | "warning">;

/** What is known of the document a text belongs to. */
export interface About {
  readonly title: string;
  /** Where it is searched. */
  readonly place?: ModelPlace;
  /** The resource whose chunks are replaced, if its title stays: those that stay as they are are not embedded again. */
  readonly before?: ResourceKey | undefined;
  /** What of the document the text does not hold, in words. */
  readonly warning?: string | undefined;
  /** For whom the work is done. */
  readonly behalf?: Behalf;
}

/** What the pipeline works with. It closes the extractor; the model belongs to the caller. */
export interface IngestParts {
  readonly model: Model;
  readonly extractor: Extractor;
  /** Makes the failure for work that finds the line full. */
  readonly busy: () => Error;
  /** Picks boundaries for the strategy `agentic`. Undefined: none is configured. */
  readonly language?: LanguageService | undefined;
  /** Notified of each text that could not be split by the strategy asked for. */
  readonly onOtherStrategy?: SplitterParts["onOtherStrategy"];
  /** The embedder that serves a place. Without it, the model. */
  readonly embedderFor?: (place: ModelPlace) => Promise<ModelEmbedder | undefined>;
  /** What already has a vector. Without it, nothing is known to. */
  readonly embeddedChunks?: ModelStore["embeddedChunks"];
  /** How long the vectors of one resource may take in all before they are left for later. Default 30 s. */
  readonly embeddingMs?: number;
  /** Notified how long each stage took that went well, waiting for its turn included. */
  readonly onStage?: (stage: IngestStage, seconds: number) => void;
}

/** A file becomes text, a text becomes chunks, chunks get vectors. */
export type IngestStage = "extract" | "chunk" | "embed";

/** What a chunking says of its vectors. */
type Embedded = Pick<Chunking, "vectors" | "fingerprint" | "sentences">;

const NOT_EMBEDDED: Embedded = { vectors: undefined, fingerprint: undefined };
const UNTITLED: About = { title: "" };
/** Tells chunks of one title apart by what is embedded of them. */
const keyOf = ({ headings, text }: EmbeddedChunk): string =>
  hash("sha256", JSON.stringify([headings, text]), "base64");
const ignored = (): void => undefined;

/** Opens the pipeline. The chunking worker starts with the first long text. */
export function openIngest(given: IngestParts): Ingest {
  const { model, extractor, busy, language, onOtherStrategy, embedderFor, embeddedChunks } = given;
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
    // So that nobody waits for the end of another account's documents.
    guests: 1,
    full: busy,
  });

  /** Vectors of the chunks that are not known yet, unless they are so many that they come later. */
  const embed = async (text: string, spans: readonly Span[], tier: Tier, about: About): Promise<Embedded> => {
    const { place } = about;
    const embedder = await (place === undefined || embedderFor === undefined
      ? model.get()
      : embedderFor(place));
    if (embedder === undefined || embedder.isResting?.() === true) return NOT_EMBEDDED;
    const { fingerprint } = embedder;
    const known = await knownChunks(about, fingerprint);
    const chunks = spans.map((span) => {
      const context = { title: about.title, headings: span.headings, text: chunkText(text, span) };
      return { ...context, isKnown: known.has(keyOf(context)) };
    });
    const missing = chunks.filter(({ isKnown }) => !isKnown);
    if (missing.length > EMBEDDED_FIRST_MAX) return NOT_EMBEDDED;
    try {
      const inTime = AbortSignal.timeout(given.embeddingMs ?? EMBEDDING_MS);
      const made = await embedder.embed(missing.map(embeddingText), inTime);
      const isDeep = tier === "high_accuracy" && missing.length <= SENTENCES_FIRST_MAX;
      const texts = missing.map((chunk) => chunk.text);
      const parts = isDeep ? await embedSentences(embedder, texts, inTime) : undefined;
      /** What was made stands at its chunk's place; the store keeps what is known. */
      const placed = <T>(of: readonly T[]): (T | undefined)[] => {
        let at = 0;
        return chunks.map(({ isKnown }) => (isKnown ? undefined : of[at++]));
      };
      return { vectors: placed(made), fingerprint, sentences: parts && placed(parts) };
    } catch {
      // A model that fails costs the vectors, not the document: words find it, and the backfill tries again. The model's
      // own state and the log tell of the failure.
      return NOT_EMBEDDED;
    }
  };
  const knownChunks = async ({ before }: About, fingerprint: string): Promise<ReadonlySet<string>> => {
    const chunks = before === undefined ? undefined : await embeddedChunks?.(before, fingerprint);
    return new Set(chunks?.map(keyOf));
  };

  return {
    chunk: async (text, settings, tier, about = UNTITLED) => {
      // With the overlap taken in full each chunk goes forward by the step: told before the work is done, not after.
      const { chunkSize, chunkOverlap } = settings;
      const expected = Math.ceil((text.trim().length - chunkOverlap) / (chunkSize - chunkOverlap)) - 1;
      refuseMany(text, expected, expected * chunkSize);
      const { spans, strategyUsed } = await timed("chunk", () =>
        splitter.split(text, settings, about.behalf),
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
      // Of a new text all are missing: nobody needs to be asked.
      const isLater = about.before === undefined && spans.length > EMBEDDED_FIRST_MAX;
      if (tier === "fastest" || spans.length === 0 || isLater) return { ...chunking, ...NOT_EMBEDDED };
      const embedded = await timed("embed", () =>
        embedding.run(() => embed(text, spans, tier, about), gateOptions(about.behalf, text.length)),
      );
      return { ...chunking, ...embedded };
    },
    textOf: async (path, mediaType, form = "undeclared", behalf) => {
      // Rows hold only types that the upload found, so this finds its type back.
      const type = MEDIA_TYPES.find((known) => known === mediaType);
      assert(type !== undefined, `a stored file has the unknown media type ${mediaType}`);
      return await timed("extract", () => extractor.extractText({ path, mediaType: type, form, behalf }));
    },
    ocr: extractor.ocr,
    close: async () => {
      extractor.close();
      await splitter.close();
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
