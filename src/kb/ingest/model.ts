import { setTimeout as pause } from "node:timers/promises";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import type { Embedder } from "../embed/embedder.ts";
import { EMBEDDING_RESTING } from "../embed/cooldown.ts";

/** Delay before the next attempt to open the model: the cause (no file, no network) rarely goes away sooner. */
export const RETRY_AFTER_MS = 60_000;
/** Cooldown for documents after an outage: without it each would wait in vain, for minutes if the model hangs. */
const COOLDOWN_MS = 30_000;
/** Longest wait at close for a model that is still opening. It closes once it is open. */
export const CLOSE_WAIT_MS = 2000;

/** How long callers wait while the model opens. Opening continues in the background. */
export interface FindWaits {
  /** From the start of the first attempt: a local model loads in seconds, a service answers sooner. */
  readonly firstMs: number;
  /** From the start of each later attempt, which rarely succeeds. */
  readonly nextMs: number;
}
export const WAITS: FindWaits = { firstMs: 15_000, nextMs: 1000 };

/** Result of opening a model: an embedder, or the reason why there is none. */
export type FoundModel = ModelEmbedder | AbsentModel;

export interface ModelEmbedder extends Embedder {
  /** A local model runs on the processors of this machine. */
  readonly kind?: "local" | "remote";
  /** The same model for searches, whose calls overtake all queued calls of `embed`. */
  readonly queries?: Embedder;
  /** Whether the model is in its cooldown, during which texts are split without it. Default: never. */
  isResting?(this: void): boolean;
}

export interface AbsentModel {
  readonly kind: "no-model";
  readonly reason: string;
  readonly hint: string;
}

/** Public state of the embedding model. Holds no paths and no causes; those go to the log. */
export interface ModelState {
  readonly state: "off" | "idle" | "loading" | "ready" | "failing" | "unavailable";
  /** One sentence for a person. */
  readonly message: string;
  readonly hint?: string;
}

/** The embedding model, opened on first use: a service with only `fastest` never loads it. */
export interface Model {
  /**
   * Returns the embedder, or undefined if there is none or it is not open after some seconds; searches then use words alone, and
   * `onReady` reports the model later. Never rejects. The state follows the calls: `failing` after a failed one, `ready` after a
   * successful one. A call that is unreachable or times out starts a cooldown, which ends with its time or a successful call.
   */
  get(): Promise<ModelEmbedder | undefined>;
  state(): ModelState;
  /** Sets the number of chunks that the working model cannot embed, for the state. */
  noteLeft(this: void, chunks: number): void;
  close(): Promise<void>;
}

/** Listener of the model's state. */
export interface ModelEvents {
  onReady(fingerprint: string): void;
  /** There is no model, or the model starts to fail. */
  onProblem(reason: string, hint: string | undefined): void;
}

/** `open` undefined: the service runs without a model. */
export function openModel(
  open: (() => Promise<FoundModel>) | undefined,
  nowMs: () => number,
  events: ModelEvents,
  waits = WAITS,
): Model {
  const state = trackState(open !== undefined, events);
  let found: Promise<ModelEmbedder | undefined> | undefined;
  /** Resolves when callers stop waiting for the current attempt. */
  let timeout: Promise<undefined> = Promise.resolve(undefined);
  let retryFromMs = 0;
  let cooldownUntilMs = 0;
  let closing = false;

  /** Wraps an embedder so that the state follows its calls. */
  const tracked = (embedder: Embedder): Embedder => ({
    fingerprint: embedder.fingerprint,
    dimensions: embedder.dimensions,
    tokensMax: embedder.tokensMax,
    embed: async (texts, signal) => {
      try {
        const vectors = await embedder.embed(texts, signal);
        if (texts.length > 0) cooldownUntilMs = 0;
        if (state.is("failing") && texts.length > 0) state.ready(embedder.fingerprint);
        return vectors;
      } catch (error) {
        // An aborted call, or one during the cooldown, says nothing about the model. A timeout starts a cooldown without
        // `failing`: the model may work, if slowly.
        const isLate = signal?.aborted === true && isTimeout(signal.reason);
        const isFailure = signal?.aborted !== true && codeOf(error) !== EMBEDDING_RESTING;
        if (!closing && isFailure) state.failing(error);
        if (isLate || codeOf(error) === "embedding_unreachable") cooldownUntilMs = nowMs() + COOLDOWN_MS;
        throw error;
      }
    },
    close: () => embedder.close(),
  });

  const attempt = async (find: () => Promise<FoundModel>): Promise<ModelEmbedder | undefined> => {
    // Only the first attempt shows as loading: later ones run in the background.
    if (found === undefined) state.loading();
    retryFromMs = Infinity;
    try {
      const model = await find();
      if ("reason" in model) return unavailable(model.reason, model.hint);
      state.ready(model.fingerprint);
      events.onReady(model.fingerprint);
      const { queries } = model;
      return {
        ...tracked(model),
        ...(model.kind && { kind: model.kind }),
        ...(queries === undefined ? {} : { queries: tracked(queries) }),
        isResting: () => nowMs() < cooldownUntilMs,
      };
    } catch (error) {
      return unavailable(messageOf(error), error instanceof KbsyncError ? error.hint : undefined);
    }
  };
  const unavailable = (reason: string, hint: string | undefined): undefined => {
    retryFromMs = nowMs() + RETRY_AFTER_MS;
    state.unavailable(reason, hint);
  };

  return {
    get: () => {
      if (open === undefined) return Promise.resolve(undefined);
      const again = state.is("unavailable") && nowMs() >= retryFromMs;
      if (found === undefined || again) {
        const waitMs = found === undefined ? waits.firstMs : waits.nextMs;
        found = attempt(open);
        timeout = pause(waitMs, undefined, { ref: false });
      }
      return Promise.race([found, timeout]);
    },
    state: state.shown,
    noteLeft: state.noteLeft,
    close: async () => {
      closing = true;
      const closed = found?.then((embedder) => embedder?.close());
      await Promise.race([closed, pause(CLOSE_WAIT_MS, undefined, { ref: false })]);
    },
  };
}

/** Tracks the public state of a model, and reports when it becomes unavailable or starts to fail. */
function trackState(isConfigured: boolean, events: ModelEvents) {
  let state: ModelState = isConfigured
    ? { state: "idle", message: "The embedding model loads when first needed." }
    : {
        state: "off",
        message: "No embedding model is configured; moderate and high_accuracy search by words alone.",
      };
  let left = 0;
  return {
    is: (kind: ModelState["state"]): boolean => state.state === kind,
    loading: (): void => {
      state = { state: "loading", message: "The embedding model is loading." };
    },
    ready: (fingerprint: string): void => {
      state = { state: "ready", message: `Embedding with ${fingerprint}.` };
    },
    failing: (error: unknown): void => {
      const isNew = state.state !== "failing";
      const message =
        "The embedding model fails; moderate and high_accuracy search by words alone until it works again.";
      const hint = "The log has the cause.";
      state = { state: "failing", message, hint };
      if (isNew) events.onProblem(messageOf(error), undefined);
    },
    unavailable: (reason: string, hint: string | undefined): void => {
      const message =
        "There is no embedding model; moderate and high_accuracy search by words alone until there is one.";
      state = { state: "unavailable", message, ...(hint === undefined ? {} : { hint }) };
      events.onProblem(reason, hint);
    },
    noteLeft: (chunks: number): void => {
      left = chunks;
    },
    shown: (): ModelState => {
      if (left === 0 || state.state !== "ready") return state;
      const chunks = left === 1 ? "One chunk" : `${left} chunks`;
      return {
        ...state,
        message: `${state.message} ${chunks} cannot be embedded, and words alone find them.`,
      };
    },
  };
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === "TimeoutError"; // of AbortSignal.timeout
}
