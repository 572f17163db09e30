import { KbsyncError } from "../../lib/failure.ts";
import { openGate, type WorkOptions } from "../../lib/gate.ts";
import { lazyWorker } from "../../lib/lazy-worker.ts";
import { entryUrl } from "../../lib/package.ts";
import type { Settings, Strategy } from "../../wire/primitives.ts";
import { gateOptions } from "./requester.ts";
import type { Requester } from "./extract/extract.ts";
import { findBoundaries } from "./agentic/boundaries.ts";
import type { Span } from "./chunk/span.ts";
import { CHUNK_METHODS } from "./chunk-methods.ts";
import type { ChunkInput, ChunkMethods } from "./chunk-methods.ts";
import type { LanguageService } from "./language-service.ts";
import type { Model } from "./model.ts";

/** Texts up to this length are split in place: faster than a message to the worker and back. */
export const INLINE_CHARS_MAX = 64 * 1024;
/** Long texts that may wait for the chunking worker: each may hold 32 MB. */
const LONG_LINE_MAX = 86;
/** Waiting long texts of one account, so that others can still queue. */
const LONG_SHARE_MAX = 64;
/** Texts embedded concurrently: the model runs in its own thread, one batch at a time. */
const MEANING_WIDTH = 2;
/** Texts sent to a language model concurrently: it is slow, and may be metered or rate-limited. */
const AGENTIC_WIDTH = 2;
/**
 * Timeout of agentic chunking for one document: a hundred questions of six seconds. Without it, three slow answers to each
 * question could take a day and block all other documents.
 */
const AGENTIC_MS = 10 * 60_000;
/** Texts that may wait for either model: as many as the server's concurrent requests. */
const MEANING_LINE_MAX = 1024;
/** Waiting texts of one account. */
const MEANING_SHARE_MAX = 768;
/** Further texts at either model, of accounts that have none there: a text takes up to ten minutes. */
const MEANING_GUESTS = 2;
/**
 * Maximum units of one text for semantic chunking: about 40 s of the local model on two cores. A longer text has longer units;
 * if they would exceed half a chunk (from 0.5 to 1 MB of text at the default size), the structure decides.
 */
export const UNITS_MAX = 4096;
/** Units per call of the model: a closing service waits for no more. */
const STEP = 64;
/** Timeout of such a call: a hundred times its duration on two cores. */
const STEP_MS = 30_000;

/** Chunks of a text, and the strategy that produced them. */
export interface Split {
  readonly spans: readonly Span[];
  /** Differs from the requested strategy if that is unavailable. */
  readonly strategyUsed: Strategy;
}

/** Splits texts by their settings. */
export interface Splitter {
  /** Throws the error of `busy`, before any work, if too many texts wait. Throws the reason of the requester's signal. */
  split(this: void, text: string, settings: Settings, requester?: Requester): Promise<Split>;
  close(): Promise<void>;
}

/** Dependencies of a splitter. The splitter owns the worker, the caller the rest. */
export interface SplitterParts {
  readonly model: Model;
  /** Undefined: none is configured. */
  readonly language: LanguageService | undefined;
  readonly busy: () => Error;
  /** Called with the reason if a text is split by another strategy than requested. */
  readonly onOtherStrategy: (requested: Strategy, used: Strategy, reason: string) => void;
  /** Timeout of one call of the embedding model. Default 30 s. */
  readonly stepMs?: number;
  /** Timeout of agentic chunking for one document. Default 10 minutes. */
  readonly agenticMs?: number;
}

/** Opens the splitter. The chunking worker starts with the first long text. */
export function openSplitter(parts: SplitterParts): Splitter {
  const { busy, onOtherStrategy } = parts;
  const chunker = openChunker(busy);
  const line = { lineMax: MEANING_LINE_MAX, shareMax: MEANING_SHARE_MAX, guests: MEANING_GUESTS, full: busy };
  const meaning = openGate({ width: MEANING_WIDTH, ...line });
  const agenticGate = openGate({ width: AGENTIC_WIDTH, ...line });
  const stop = new AbortController();

  const stopOf = ({ options: { signal } }: SplitJob): AbortSignal =>
    signal === undefined ? stop.signal : AbortSignal.any([stop.signal, signal]);
  const bestSplit = async (job: SplitJob, requested: Strategy): Promise<Split> => {
    const spans = await meaning.run(() => splitByMeaning(job, parts, chunker, stopOf(job)), job.options);
    if (typeof spans !== "string") return { spans, strategyUsed: "semantic" };
    onOtherStrategy(requested, "recursive", spans);
    return { spans: await chunker.recursive(job.input, job.options), strategyUsed: "recursive" };
  };

  return {
    split: async (text, settings, requester) => {
      const job = {
        input: { text, settings, unitsMax: UNITS_MAX },
        options: gateOptions(requester, text.length),
      };
      switch (settings.strategy) {
        case "recursive":
          return { spans: await chunker.recursive(job.input, job.options), strategyUsed: "recursive" };
        case "semantic":
          return bestSplit(job, "semantic");
        case "agentic": {
          const work = () => splitAtBoundaries(job, parts, chunker, stopOf(job));
          const spans = await agenticGate.run(work, job.options);
          if (typeof spans !== "string") return { spans, strategyUsed: "agentic" };
          const split = await bestSplit(job, "agentic");
          onOtherStrategy("agentic", split.strategyUsed, spans);
          return split;
        }
      }
    },
    close: async () => {
      stop.abort();
      await chunker.close();
    },
  };
}

/** A text with the options of its waits. */
interface SplitJob {
  readonly input: ChunkInput;
  readonly options: WorkOptions;
}

/** Splits by meaning, or returns the reason why it cannot. */
async function splitByMeaning(
  { input, options }: SplitJob,
  { model, stepMs = STEP_MS }: SplitterParts,
  chunker: Chunker,
  stop: AbortSignal,
): Promise<readonly Span[] | string> {
  const { text, settings } = input;
  const embedder = await model.get();
  if (embedder === undefined) return "there is no embedding model";
  if (embedder.isResting?.() === true) return "the embedding model did not answer a moment ago";
  if (text.length <= settings.chunkSize) return chunker.recursive(input, options);
  const units = await chunker.units(input, options);
  if (units === undefined) return "the text is too long for semantic chunking";
  const vectors = new Float32Array(units.length * embedder.dimensions);
  try {
    for (let at = 0; at < units.length; at += STEP) {
      stop.throwIfAborted();
      const texts = units.slice(at, at + STEP).map(({ start, end }) => text.slice(start, end));
      const signal = AbortSignal.any([stop, AbortSignal.timeout(stepMs)]);
      for (const [offset, vector] of (await embedder.embed(texts, signal)).entries())
        vectors.set(vector, (at + offset) * embedder.dimensions);
    }
  } catch {
    // The model's state and the log report the failure.
    stop.throwIfAborted();
    return "the embedding model failed";
  }
  return chunker.semantic({ ...input, meaning: { vectors, dimensions: embedder.dimensions } }, options);
}

/** Splits at the boundaries that a language model chooses, or returns the reason why it cannot. */
async function splitAtBoundaries(
  { input, options }: SplitJob,
  { language, agenticMs = AGENTIC_MS }: SplitterParts,
  chunker: Chunker,
  stop: AbortSignal,
): Promise<readonly Span[] | string> {
  const { text, settings } = input;
  if (language === undefined) return "no language model is configured";
  if (text.length <= settings.chunkSize) return chunker.recursive(input, options);
  const units = await chunker.units(input, options);
  if (units === undefined) return "the text is too long for agentic chunking";
  const texts = units.map(({ start, end }) => text.slice(start, end));
  const timeout = AbortSignal.timeout(agenticMs);
  const signal = AbortSignal.any([stop, timeout]);
  let begins: readonly number[];
  try {
    begins = await language.run((chat) => findBoundaries(texts, settings.chunkSize, chat, signal));
  } catch (error) {
    stop.throwIfAborted();
    if (timeout.aborted) return "the language model takes longer for it than one document may";
    if (!(error instanceof KbsyncError)) throw error;
    return error.message;
  }
  return chunker.sections({ ...input, begins }, options);
}

/** Opens the chunking methods, which run on short texts in place, and on long ones in the chunking worker. */
function openChunker(full: () => Error) {
  const worker = lazyWorker<ChunkMethods>(entryUrl("kb/ingest/chunk-worker"), "chunking");
  // No guests: they would wait for the one thread, which takes a second for 32 MB. Accounts take turns at it.
  const long = openGate({ width: 1, lineMax: LONG_LINE_MAX, shareMax: LONG_SHARE_MAX, full });
  const either =
    <I extends ChunkInput, T>(inline: (input: I) => T, inWorker: (input: I) => Promise<T>) =>
    async (input: I, options: WorkOptions): Promise<T> =>
      input.text.length <= INLINE_CHARS_MAX ? inline(input) : long.run(() => inWorker(input), options);
  return {
    recursive: either(CHUNK_METHODS.recursive, (input) => worker.call("recursive", input)),
    units: either(CHUNK_METHODS.units, (input) => worker.call("units", input)),
    semantic: either(CHUNK_METHODS.semantic, (input) => worker.call("semantic", input)),
    sections: either(CHUNK_METHODS.sections, (input) => worker.call("sections", input)),
    close: () => worker.close(),
  };
}

type Chunker = ReturnType<typeof openChunker>;
