import type { ModelUsage } from "./price.ts";
import type { Patience } from "./patience.ts";

/** An image as a model gets it. */
export interface ModelImage {
  readonly mediaType: "image/png" | "image/jpeg";
  readonly bytes: Uint8Array;
}

/** A message of a conversation. Those of the user may carry images. */
export interface ModelMessage {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
  readonly images?: readonly ModelImage[];
}

/** What a model is asked. */
export interface ModelRequest {
  readonly model: string;
  /** The system's first, if any; then the user and the assistant in turn, the user last. */
  readonly messages: readonly ModelMessage[];
  readonly temperature: number | undefined;
  /** Asks for the same answer each time. Default: the model's own chance. */
  readonly seed?: number;
  /** The answer is to be one JSON object. */
  readonly asJson: boolean;
}

/** What a model answered. */
export interface ModelAnswer {
  /** The endpoint's own id of the answer; empty where it gives none. */
  readonly id: string;
  readonly text: string;
  /** As the endpoint names it. */
  readonly model: string;
  readonly finish: "completed" | "truncated" | "content_filter" | "error";
  /** Why it broke off, where `finish` is `error`. */
  readonly problem: string;
  readonly usage: ModelUsage;
}

/** How a model is asked. */
export interface ModelCall {
  /** Aborted when nobody waits for the answer any more: then the request to the endpoint is broken off. */
  readonly signal: AbortSignal;
  /** Given: the answer is streamed, and this is notified of each piece. */
  readonly onText?: (piece: string) => void;
  /** Default: the model's own, in which all tries share the time of one. */
  readonly patience?: Patience;
}

/**
 * A language model somewhere. Rejects with a ModelFailure (`model_failed`, `model_timeout`) where no text was answered, and
 * with the signal's reason. A stream that breaks off behind its first piece is an answer with `finish` `error`.
 */
export interface ChatModel {
  answer(request: ModelRequest, call: ModelCall): Promise<ModelAnswer>;
  close(): Promise<void>;
}
