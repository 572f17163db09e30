import { request } from "undici";
import type { Dispatcher } from "undici";
import { messageOf } from "../../lib/failure.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import type { DeliveryTarget } from "../store/webhooks.ts";
import { signedHeaders } from "./sign.ts";

/** Longest wait for an answer: a receiver takes a message in and works later. */
export const ATTEMPT_TIMEOUT_MS = 15_000;
/** An answer's body is read so far, to let the connection be used again, and thrown away. */
const ANSWER_BYTES_MAX = 16 * 1024;
/** Longest piece of an error kept with a delivery. */
const PROBLEM_CHARS_MAX = 200;

/** What came of an attempt. `gone`: the receiver wants no more, ever (410). */
export type Attempt =
  | { readonly kind: "arrived" }
  | { readonly kind: "gone"; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string; readonly retryAfterMs: number | undefined };

/** What is sent, and where. */
export interface Message {
  /** The `webhook-id`. */
  readonly eventId: string;
  /** JSON text, sent as it is. */
  readonly body: string;
  readonly target: DeliveryTarget;
}

/** What sending needs from outside. */
export interface SendParts {
  /** Opens connections to addresses that may be sent to, and refuses all others at the dial. */
  readonly dispatcher: Dispatcher;
  readonly agent: string;
  readonly nowMs: () => number;
}

/** Makes one attempt. Redirects are not followed: the address that was registered is the one that is sent to. */
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
        ...signedHeaders({ id, body }, target.secrets, nowMs()),
      },
      body,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]),
    });
    const { statusCode, headers } = answer;
    // What is wrong with the body of an answer changes nothing about its status.
    await answer.body.dump({ limit: ANSWER_BYTES_MAX, signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return { kind: "arrived" };
    const problem = `the receiver answered ${statusCode}`;
    if (statusCode === 410) return { kind: "gone", problem };
    return { kind: "failed", problem, retryAfterMs: retryAfterMs(headers["retry-after"], nowMs()) };
  } catch (error) {
    return { kind: "failed", problem: words(error), retryAfterMs: undefined };
  }
}

function words(error: unknown): string {
  if (error instanceof Error && error.name === "TimeoutError") {
    return `no answer within ${ATTEMPT_TIMEOUT_MS / 1000} s`;
  }
  return messageOf(error).slice(0, PROBLEM_CHARS_MAX);
}
