import { setTimeout as pause } from "node:timers/promises";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { Embedder } from "../embed/embedder.ts";
import { EMBEDDING_RESTING } from "../embed/cooldown.ts";

/** After a search that found nothing the next one waits so long: the cause (no file, no network) rarely goes sooner. */
export const RETRY_AFTER_MS = 60_000;
/** After nobody answered, documents leave the model alone so long: each would wait for it in vain, for minutes where it hangs. */
const REST_MS = 30_000;
/** A close waits so long for a look that is under way; what it finds later is closed then. */
export const CLOSE_WAIT_MS = 2000;

/** How long those who ask for the model wait while it is looked for; the look goes on behind them. */
export interface FindWaits {
  /** From the beginning of the first look: a local model loads in seconds, a service is reached in less. */
  readonly firstMs: number;
  /** From the beginning of each later one: there was none a minute ago, so that there is one now is rare. */
  readonly nextMs: number;
}
export const WAITS: FindWaits = { firstMs: 15_000, nextMs: 1000 };

/** What a search for a model gives: an embedder, or the reason why there is none. */
export type FoundModel = ModelEmbedder | AbsentModel;

export interface ModelEmbedder extends Embedder {
  /** The same model for what a person waits for: its calls go before all waiting ones of `embed`. */
  readonly queries?: Embedder;
  /** Whether documents do without it for now: nobody answered a moment ago. Default: they never do. */
  isResting?(this: void): boolean;
}

export interface AbsentModel {
  readonly kind: "no-model";
  readonly reason: string;
  readonly hint: string;
}

/** What the service tells everybody about its embedding model: no paths, no causes; those are for the log. */
export interface ModelState {
  readonly state: "off" | "idle" | "loading" | "ready" | "failing" | "unavailable";
  /** One sentence for a person. */
  readonly message: string;
  readonly hint?: string;
}

/** The embedding model, looked for when first needed: who uses only `fastest` never pays for it. */
export interface Model {
  /**
   * The embedder, or undefined where there is none, or none yet after some seconds; then `moderate` works on words alone,
   * and `onReady` tells when there is one. Never rejects. The state follows what comes of its calls: `failing` after one
   * that failed, `ready` again after one that did not. It rests after a call that nobody answered, or that was given up by
   * a signal of time, until some time has passed or a call goes well.
   */
  get(): Promise<ModelEmbedder | undefined>;
  state(): ModelState;
  /** Chunks the model cannot embed although it works: told in the state. */
  noteLeft(this: void, chunks: number): void;
  close(): Promise<void>;
}

/** Notified of what happens to the model. */
export interface ModelEvents {
  onReady(fingerprint: string): void;
  /** No model was found, or the model began to fail. */
  onProblem(reason: string, hint: string | undefined): void;
}

/** `open` undefined: the service is to run without a model. */
export function openModel(
  open: (() => Promise<FoundModel>) | undefined,
  nowMs: () => number,
  events: ModelEvents,
  waits = WAITS,
): Model {
  let state: ModelState =
    open === undefined
      ? {
          state: "off",
          message: "No embedding model is configured; moderate and high_accuracy search by words alone.",
        }
      : { state: "idle", message: "The embedding model loads when first needed." };
  let found: Promise<ModelEmbedder | undefined> | undefined;
  /** Resolves when nobody waits any longer for the look under way. */
  let patience: Promise<undefined> = Promise.resolve(undefined);
  let retryFromMs = 0;
  let restUntilMs = 0;
  let closing = false;
  let left = 0;

  const unavailable = (reason: string, hint: string | undefined): undefined => {
    retryFromMs = nowMs() + RETRY_AFTER_MS;
    const message =
      "There is no embedding model; moderate and high_accuracy search by words alone until there is one.";
    state = { state: "unavailable", message, ...(hint === undefined ? {} : { hint }) };
    events.onProblem(reason, hint);
    return undefined;
  };

  const ready = (fingerprint: string): void => {
    state = { state: "ready", message: `Embedding with ${fingerprint}.` };
  };

  const failing = (error: unknown): void => {
    const known = state.state === "failing";
    const message =
      "The embedding model fails; moderate and high_accuracy search by words alone until it works again.";
    state = { state: "failing", message, hint: "The log tells why." };
    if (!known) events.onProblem(messageOf(error), undefined);
  };

  /** The embedder, its calls watched. */
  const watched = (embedder: Embedder): Embedder => ({
    fingerprint: embedder.fingerprint,
    dimensions: embedder.dimensions,
    tokensMax: embedder.tokensMax,
    embed: async (texts, signal) => {
      try {
        const vectors = await embedder.embed(texts, signal);
        if (texts.length > 0) restUntilMs = 0;
        if (state.state === "failing" && texts.length > 0) ready(embedder.fingerprint);
        return vectors;
      } catch (error) {
        // A call that was stopped, or not made at all, says nothing of the model, but for one that took too long: it may
        // work, if slowly.
        const isLate = signal?.aborted === true && isTimeout(signal.reason);
        const isNews = signal?.aborted !== true && codeOf(error) !== EMBEDDING_RESTING;
        if (!closing && isNews) failing(error);
        if (isLate || codeOf(error) === "embedding_unreachable") restUntilMs = nowMs() + REST_MS;
        throw error;
      }
    },
    close: () => embedder.close(),
  });

  const look = async (find: () => Promise<FoundModel>): Promise<ModelEmbedder | undefined> => {
    // There is none until one is found: a look behind those who ask changes nothing for them.
    if (found === undefined) state = { state: "loading", message: "The embedding model is loading." };
    retryFromMs = Infinity;
    try {
      const model = await find();
      if ("reason" in model) return unavailable(model.reason, model.hint);
      ready(model.fingerprint);
      events.onReady(model.fingerprint);
      const { queries } = model;
      return {
        ...watched(model),
        ...(queries === undefined ? {} : { queries: watched(queries) }),
        isResting: () => nowMs() < restUntilMs,
      };
    } catch (error) {
      return unavailable(messageOf(error), error instanceof KbsyncError ? error.hint : undefined);
    }
  };

  return {
    get: () => {
      if (open === undefined) return Promise.resolve(undefined);
      const again = state.state === "unavailable" && nowMs() >= retryFromMs;
      if (found === undefined || again) {
        const waitMs = found === undefined ? waits.firstMs : waits.nextMs;
        found = look(open);
        patience = pause(waitMs, undefined, { ref: false });
      }
      return Promise.race([found, patience]);
    },
    state: () => {
      if (left === 0 || state.state !== "ready") return state;
      const chunks = left === 1 ? "One chunk" : `${left} chunks`;
      return {
        ...state,
        message: `${state.message} ${chunks} cannot be embedded, and words alone find them.`,
      };
    },
    noteLeft: (chunks) => {
      left = chunks;
    },
    close: async () => {
      closing = true;
      const closed = found?.then((embedder) => embedder?.close());
      await Promise.race([closed, pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === "TimeoutError"; // of AbortSignal.timeout
}
