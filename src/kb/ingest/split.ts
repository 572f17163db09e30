import { KbsyncError } from "../../lib/failure.ts";
import { openGate, type WorkOptions } from "../../lib/gate.ts";
import { lazyWorker } from "../../lib/lazy-worker.ts";
import { siblingModule } from "../../lib/sibling.ts";
import type { Settings, Strategy } from "../../wire/primitives.ts";
import { gateOptions } from "./behalf.ts";
import type { Behalf } from "./extract/extract.ts";
import { findBoundaries } from "./agentic/boundaries.ts";
import type { Meaning } from "./chunk/semantic.ts";
import type { Span } from "./chunk/span.ts";
import type { Range } from "./chunk/units.ts";
import { CHUNK_METHODS } from "./chunk-methods.ts";
import type { ChunkMethods } from "./chunk-methods.ts";
import type { LanguageService } from "./language-service.ts";
import type { Model } from "./model.ts";

/** Texts up to this long are split in place: it takes less than the way to the worker and back. */
export const INLINE_CHARS_MAX = 64 * 1024;
/** Long texts that may wait for the chunking worker: each may hold 32 MB. */
const LONG_LINE_MAX = 86;
/** Of one account: as many as the lines of a bulk that are worked on at once, and others still find room. */
const LONG_SHARE_MAX = 64;
/** Texts whose meaning is looked at, at once: the model works in a thread of its own, one after the other. */
const MEANING_WIDTH = 2;
/** Texts shown to a language model at once: it is slow, and may charge or limit. */
const ASKING_WIDTH = 2;
/**
 * Longest time a language model has for one document: a hundred questions of six seconds. Without it three answers to each
 * question, some minutes each, could take a day, and all others that ask wait behind.
 */
const AGENTIC_MS = 10 * 60_000;
/** Texts that may wait for either: as many requests as the server takes at once. */
const MEANING_LINE_MAX = 1024;
/** Of one account. */
const MEANING_SHARE_MAX = 768;
/**
 * Units whose meaning is looked at in one text: some 40 s of the local model on two cores. Units of a longer text are
 * longer; where they would be longer than half a chunk (from 0.5 to 1 MB at the default size) the structure decides.
 */
export const UNITS_MAX = 4096;
/** Units embedded at a time: a service that is closing waits for no more. */
const STEP = 64;
/** Longest wait for them: a hundred times what they take on two cores. A model that hangs is given up then. */
const STEP_MS = 30_000;

/** Chunks, and by which strategy they came about. */
export interface Split {
  readonly spans: readonly Span[];
  /** Not the one asked for where that one cannot be had. */
  readonly strategyUsed: Strategy;
}

/** Splits texts by their settings. */
export interface Splitter {
  /** Throws what `busy` makes when too much is waiting already; then nothing was done. */
  split(this: void, text: string, settings: Settings, behalf?: Behalf): Promise<Split>;
  close(): Promise<void>;
}

/** What a splitter works with; all but the worker belongs to the caller. */
export interface SplitterParts {
  readonly model: Model;
  /** Undefined: none is configured. */
  readonly language: LanguageService | undefined;
  readonly busy: () => Error;
  /** Notified why a text was not split as it was asked for. */
  readonly onOtherStrategy: (asked: Strategy, used: Strategy, reason: string) => void;
  /** Longest wait for the embedding model at one step of many. Default 30 s. */
  readonly stepMs?: number;
  /** Longest time a language model has for one document. Default 10 minutes. */
  readonly agenticMs?: number;
}

/** Opens the splitter. The chunking worker starts with the first long text. */
export function openSplitter(parts: SplitterParts): Splitter {
  const { model, language, busy, onOtherStrategy, stepMs = STEP_MS, agenticMs = AGENTIC_MS } = parts;
  const worker = lazyWorker<ChunkMethods>(siblingModule(import.meta.url, "chunk-worker"), "chunking");
  const long = openGate({ width: 1, lineMax: LONG_LINE_MAX, shareMax: LONG_SHARE_MAX, full: busy });
  const line = { lineMax: MEANING_LINE_MAX, shareMax: MEANING_SHARE_MAX, full: busy };
  const meaning = openGate({ width: MEANING_WIDTH, ...line });
  const asking = openGate({ width: ASKING_WIDTH, ...line });
  const stop = new AbortController();

  const recursive = (text: string, settings: Settings, options: WorkOptions): Promise<readonly Span[]> =>
    text.length <= INLINE_CHARS_MAX
      ? Promise.resolve(CHUNK_METHODS.recursive({ text, settings }))
      : long.run(() => worker.call("recursive", { text, settings }), options);
  const unitsOf = (
    text: string,
    settings: Settings,
    options: WorkOptions,
  ): Promise<readonly Range[] | undefined> => {
    const asked = { text, settings, unitsMax: UNITS_MAX };
    return text.length <= INLINE_CHARS_MAX
      ? Promise.resolve(CHUNK_METHODS.units(asked))
      : long.run(() => worker.call("units", asked), options);
  };

  /** By meaning, or why not. */
  const semantic = async (
    text: string,
    settings: Settings,
    options: WorkOptions,
  ): Promise<readonly Span[] | string> => {
    const embedder = await model.get();
    if (embedder === undefined) return "there is no embedding model";
    if (embedder.isResting?.() === true) return "the embedding model did not answer a moment ago";
    if (text.length <= settings.chunkSize) return recursive(text, settings, options);
    const units = await unitsOf(text, settings, options);
    if (units === undefined) return "the text is too long to look at the meaning of all its parts";
    const vectors = new Float32Array(units.length * embedder.dimensions);
    try {
      for (let at = 0; at < units.length; at += STEP) {
        stop.signal.throwIfAborted();
        const texts = units.slice(at, at + STEP).map(({ start, end }) => text.slice(start, end));
        const inTime = AbortSignal.any([stop.signal, AbortSignal.timeout(stepMs)]);
        for (const [place, vector] of (await embedder.embed(texts, inTime)).entries())
          vectors.set(vector, (at + place) * embedder.dimensions);
      }
    } catch {
      // The model's own state and the log tell of its failure.
      stop.signal.throwIfAborted();
      return "the embedding model failed";
    }
    const found: Meaning = { vectors, dimensions: embedder.dimensions };
    const asked = { text, settings, unitsMax: UNITS_MAX, meaning: found };
    return text.length <= INLINE_CHARS_MAX
      ? CHUNK_METHODS.semantic(asked)
      : long.run(() => worker.call("semantic", asked), options);
  };

  /** As a language model divides, or why not. */
  const agentic = async (
    text: string,
    settings: Settings,
    options: WorkOptions,
  ): Promise<readonly Span[] | string> => {
    if (language === undefined) return "no language model is configured";
    if (text.length <= settings.chunkSize) return recursive(text, settings, options);
    const units = await unitsOf(text, settings, options);
    if (units === undefined) return "the text is too long to be shown to a language model";
    const texts = units.map(({ start, end }) => text.slice(start, end));
    let begins: readonly number[];
    const late = AbortSignal.timeout(agenticMs);
    const signal = AbortSignal.any([stop.signal, late]);
    try {
      begins = await language.run((asked) => findBoundaries(texts, settings.chunkSize, asked, signal));
    } catch (error) {
      stop.signal.throwIfAborted();
      if (late.aborted) return "the language model takes longer for it than one document may";
      if (!(error instanceof KbsyncError)) throw error;
      return error.message;
    }
    const asked = { text, settings, unitsMax: UNITS_MAX, begins };
    return text.length <= INLINE_CHARS_MAX
      ? CHUNK_METHODS.sections(asked)
      : long.run(() => worker.call("sections", asked), options);
  };

  const bestSplit = async (
    text: string,
    settings: Settings,
    asked: Strategy,
    options: WorkOptions,
  ): Promise<Split> => {
    const spans = await meaning.run(() => semantic(text, settings, options), options);
    if (typeof spans !== "string") return { spans, strategyUsed: "semantic" };
    onOtherStrategy(asked, "recursive", spans);
    return { spans: await recursive(text, settings, options), strategyUsed: "recursive" };
  };

  return {
    split: async (text, settings, behalf) => {
      const options = gateOptions(behalf, text.length);
      switch (settings.strategy) {
        case "recursive":
          return { spans: await recursive(text, settings, options), strategyUsed: "recursive" };
        case "semantic":
          return bestSplit(text, settings, "semantic", options);
        case "agentic": {
          const spans = await asking.run(() => agentic(text, settings, options), options);
          if (typeof spans !== "string") return { spans, strategyUsed: "agentic" };
          const split = await bestSplit(text, settings, "agentic", options);
          onOtherStrategy("agentic", split.strategyUsed, spans);
          return split;
        }
      }
    },
    close: async () => {
      stop.abort();
      await worker.close();
    },
  };
}
