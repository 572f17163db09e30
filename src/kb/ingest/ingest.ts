import assert from "node:assert/strict";
import { KbsyncError } from "../../lib/failure.ts";
import type { Settings } from "../../wire/primitives.ts";
import type { Chunking } from "../store/chunks.ts";
import type { Requester, Extraction, Extractor } from "./extract/extract.ts";
import { MEDIA_TYPES } from "./extract/media-type.ts";
import type { TextForm } from "./extract/text-form.ts";
import type { LanguageService } from "./language-service.ts";
import type { Model } from "./model.ts";
import { openSplitter } from "./split.ts";
import type { SplitterParts } from "./split.ts";

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

/** Turns a file into text, and a text into chunks. The backfill makes their vectors. */
export interface Ingest {
  /**
   * Extracts the text of an uploaded file. `form` is the declared form of a text file, `requester` the tenant. Throws the errors of
   * the extractor.
   */
  textOf(path: string, mediaType: string, form?: TextForm, requester?: Requester): Promise<ReadText>;
  /**
   * Splits a text. Waits for a model only if the strategy needs one. Throws the error of `busy` if too many texts wait, and
   * `too_many_chunks`; both before any work.
   */
  chunk(text: string, settings: Settings, about?: About): Promise<Chunking>;
  /** Recognises text in images, with its position. */
  readonly ocr: Extractor["ocr"];
  close(): Promise<void>;
}

/** The text of a file with its locations and metadata, and a warning if it is incomplete. */
export type ReadText = Pick<Extraction, "text" | "locations" | "fileMetadata" | "warning">;

/** What a text comes with. */
export interface About {
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
  /** Timeout of one call of the embedding model. Default 30 s. */
  readonly stepMs?: SplitterParts["stepMs"];
  /** Called with the duration of each successful stage, queueing included. */
  readonly onStage?: (stage: IngestStage, seconds: number) => void;
}

/** Stages of ingest: file to text, text to chunks. */
export type IngestStage = "extract" | "chunk";

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
    onOtherStrategy: onOtherStrategy ?? (() => undefined),
    ...(given.stepMs === undefined ? {} : { stepMs: given.stepMs }),
  });

  return {
    chunk: async (text, settings, { warning, requester } = {}) => {
      // With full overlap each chunk advances by the step. Refuses before the work, not after it.
      const { chunkSize, chunkOverlap } = settings;
      const expected = Math.ceil((text.trim().length - chunkOverlap) / (chunkSize - chunkOverlap)) - 1;
      refuseMany(text, expected, expected * chunkSize);
      const { spans, strategyUsed } = await timed("chunk", () => splitter.split(text, settings, requester));
      refuseMany(
        text,
        spans.length,
        spans.reduce((sum, { start, end }) => sum + end - start, 0),
      );
      return {
        spans,
        ...(strategyUsed === settings.strategy ? {} : { strategyUsed }),
        ...(warning === undefined ? {} : { warning }),
      };
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
