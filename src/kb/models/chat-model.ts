import type { ModelUsage } from "./price.ts";
import type { RetryLimits } from "./retry.ts";

/** An image in a form that models accept. */
export interface ModelImage {
  readonly mediaType: "image/png" | "image/jpeg";
  readonly bytes: Uint8Array;
}

/** A message of a conversation. Only user messages carry images. */
export interface ModelMessage {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
  readonly images?: readonly ModelImage[];
}

/** A request for one completion. */
export interface ModelRequest {
  readonly model: string;
  /** The system message first, if any; then user and assistant in turn, the user last. */
  readonly messages: readonly ModelMessage[];
  /** Requests one JSON object. */
  readonly asJson: boolean;
}

/** The answer of a model. */
export interface ModelAnswer {
  /** The endpoint's id of the answer; empty if it sends none. */
  readonly id: string;
  readonly text: string;
  /** Model name as the endpoint reports it. */
  readonly model: string;
  readonly finish: "completed" | "truncated" | "content_filter" | "error";
  /** Why the answer broke off, if `finish` is `error`. */
  readonly problem: string;
  readonly usage: ModelUsage;
}

/** Options of a call. */
export interface ModelCall {
  /** Aborts the request to the endpoint, for example when the client disconnects. */
  readonly signal: AbortSignal;
  /** Streams the answer: called with each piece. */
  readonly onText?: (piece: string) => void;
  /** Default: the model's timeout, for a single attempt and for all attempts together. */
  readonly limits?: RetryLimits;
}

/**
 * Port to language models. `answer` rejects with a ModelFailure (`model_failed`, `model_busy`, `model_timeout`) if there is no
 * text, and with the signal's reason. A stream that breaks off after its first piece resolves with `finish` `error`.
 */
export interface ChatModel {
  answer(request: ModelRequest, call: ModelCall): Promise<ModelAnswer>;
  close(): Promise<void>;
}
