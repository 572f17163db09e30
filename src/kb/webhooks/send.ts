import { request } from "undici";
import type { Dispatcher } from "undici";
import { connectionProblem } from "../../lib/connection-problem.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import type { DeliveryTarget } from "../store/webhooks.ts";
import { signedHeaders } from "./sign.ts";

/** Longest wait for an answer: a receiver accepts a message first and works on it later. */
export const ATTEMPT_TIMEOUT_MS = 15_000;
/** Bytes of an answer's body to read and discard, so that the connection can be reused. */
const ANSWER_BYTES_MAX = 16 * 1024;
/** Longest error message stored with a delivery. */
const PROBLEM_CHARS_MAX = 200;

/** The result of an attempt. `gone`: the receiver wants no more messages (410). */
export type Attempt =
  | { readonly kind: "arrived" }
  | { readonly kind: "gone"; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string; readonly retryAfterMs: number | undefined };

/** A message and its receiver. */
export interface Message {
  /** The `webhook-id`. */
  readonly eventId: string;
  /** JSON text, sent unchanged. */
  readonly body: string;
  readonly target: DeliveryTarget;
}

/** The dependencies of sending. */
export interface SendParts {
  /** Connects only to allowed addresses; refuses all others when it dials. */
  readonly dispatcher: Dispatcher;
  readonly agent: string;
  readonly nowMs: () => number;
}

/** Makes one attempt. Follows no redirects: messages go only to the registered address. */
export async function sendDelivery(
  { dispatcher, agent, nowMs }: SendParts,
  { target, eventId: id, body }: Message,
  signal: AbortSignal,
): Promise<Attempt> {
  try {
    const answer = await request(target.url, {
      dispatcher,
      method: "POST",
      headers: {
        ...target.headers,
        "content-type": "application/json",
        "user-agent": agent,
        ...signedHeaders({ id, body }, target.secret, nowMs()),
      },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]),
    });
    const { statusCode, headers } = answer;
    // A failure to read the body does not change the meaning of the status.
    await answer.body.dump({ limit: ANSWER_BYTES_MAX, signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return { kind: "arrived" };
    const problem = `the receiver answered ${statusCode}`;
    if (statusCode === 410) return { kind: "gone", problem };
    return { kind: "failed", problem, retryAfterMs: retryAfterMs(headers["retry-after"], nowMs()) };
  } catch (error) {
    return { kind: "failed", problem: problemOf(error, target.url), retryAfterMs: undefined };
  }
}

function problemOf(error: unknown, url: string): string {
  if (error instanceof Error && error.name === "TimeoutError") {
    return `no answer within ${ATTEMPT_TIMEOUT_MS / 1000} s`;
  }
  const words =
    error instanceof KbsyncError ? error.message : connectionProblem(error, new URL(url).hostname);
  return words.slice(0, PROBLEM_CHARS_MAX);
}
