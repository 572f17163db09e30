import { z } from "zod";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { oneLine } from "../../lib/one-line.ts";

/** What became of a request, as far as the sync needs to tell answers apart. */
export type Reply<T> =
  | { readonly kind: "done"; readonly value: T }
  /** The service will not take this, now or later; its own words. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** The resource does not exist. */
  | { readonly kind: "gone" }
  | Later;

/** No usable answer: the same request may succeed later. */
export interface Later {
  readonly kind: "later";
  /** Whether the service may have done what was asked all the same. */
  readonly acted: "no" | "maybe";
  readonly reason: string;
  /** `request`: something about this request; `service`: the service as a whole is not there; `key`: the key is refused. */
  readonly blame: "request" | "service" | "key";
  /** Nobody was there to send it to. */
  readonly unreached?: boolean;
  /** The service still works on an earlier request with the same key: it neither failed nor was lost. */
  readonly isUnderWay?: boolean;
  /** Nothing was sent, since its source is paused: to ask again before that goes on is in vain. */
  readonly isPaused?: boolean;
  /** What a person can do, in the service's words: given where waiting alone does not end the trouble. */
  readonly hint?: string | undefined;
  /** The service's wish. */
  readonly retryAfterMs?: number | undefined;
}

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const Envelope = z.object({
  success: z.boolean(),
  message: z.string().optional(),
  error: z.object({ code: z.string().optional(), hint: z.string().optional() }).optional(),
});

/** The one trouble of a service as a whole that stays until a person acts. */
const STORE_DAMAGED = "store_damaged";

/** Longest piece of a foreign answer that is repeated to a person. */
const WORDS_CHARS_MAX = 500;

/** The service's clock minus ours, by the `Date` of an answer; undefined where it has none. */
export function clockOffsetOf(answer: Pick<RawAnswer, "headers">, nowMs: number): number | undefined {
  const dateMs = Date.parse(header(answer, "date") ?? "");
  return Number.isNaN(dateMs) ? undefined : dateMs - nowMs;
}

/**
 * Reads an answer. Pure. Says `done` only for `success: true` in the right shape; a 200 with `success: false` is a
 * refusal, and what is no JSON (a proxy's page, half an answer) tells nothing about whether the service acted.
 * `subject` says what a 404 is about: the resource asked for, or the address itself.
 */
export function readAnswer<T>(
  answer: RawAnswer,
  schema: z.ZodType<T>,
  subject: "resource" | "address",
  nowMs: number,
): Reply<T> {
  const { status } = answer;
  const json = parseJson(answer.text);
  if (status >= 200 && status < 300 && isSuccess(json)) {
    const value = schema.safeParse(json);
    if (value.success) return { kind: "done", value: value.data };
  }
  const envelope = Envelope.safeParse(json);
  const words =
    envelope.data?.message ?? `HTTP ${status}${json === undefined ? "" : `: ${clip(answer.text)}`}`;
  const code = envelope.data?.error?.code ?? `http_${status}`;
  const later = (acted: "no" | "maybe", blame: Later["blame"], reason = words): Later => ({
    kind: "later",
    acted,
    blame,
    reason,
    retryAfterMs: retryAfterMs(header(answer, "retry-after"), nowMs, header(answer, "date")),
  });

  if (status >= 200 && status < 300) {
    if (envelope.data?.success === false) return { kind: "refused", code, message: words };
    return later(
      "maybe",
      "request",
      `HTTP ${status} with an answer that is not the service's: ${withoutContent(answer.text)}`,
    );
  }
  if (status === 401 || status === 403) return later("no", "key");
  if (status === 404 || status === 410) {
    // A gateway's answer is JSON often enough: only the service's own words say that a resource is gone.
    if (subject === "resource" && envelope.data?.success === false) return { kind: "gone" };
    return later("no", "service", `${words}; is the address right?`);
  }
  if (status >= 300 && status < 400) {
    return later(
      "no",
      "service",
      `HTTP ${status}: sent on to ${header(answer, "location") ?? "nowhere"}; is the address right?`,
    );
  }
  if (status === 429) return later("no", "service");
  if (status === 503) {
    const unwilling = later(envelope.success ? "no" : "maybe", "service");
    return code === STORE_DAMAGED ? { ...unwilling, hint: envelope.data?.error?.hint } : unwilling;
  }
  if (status === 408 || status === 425) return later("maybe", "request");
  // The first request under this Idempotency-Key is still being worked on; a conflict that stays names no time.
  if (isUnderWay(answer)) return later("maybe", "request");
  if (status === 405) return later("no", "service", `${words}; is the address right?`);
  if (status === 501 || (status >= 400 && status < 500)) return { kind: "refused", code, message: words };
  return later("maybe", "request");
}

/** Marks the answer to a request with an Idempotency-Key as such where an earlier one with that key is being worked on. */
export function withKey<T>(answer: RawAnswer, reply: Reply<T>): Reply<T> {
  return reply.kind === "later" && isUnderWay(answer) ? { ...reply, isUnderWay: true } : reply;
}

function isUnderWay(answer: RawAnswer): boolean {
  return answer.status === 409 && header(answer, "retry-after") !== undefined;
}

/** One value of a header. */
export function header(answer: Pick<RawAnswer, "headers">, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function isSuccess(json: unknown): boolean {
  return typeof json === "object" && json !== null && "success" in json && json.success === true;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A page is repeated to a person. Half an answer, or one of another shape, may hold a document's text: that is for no log. */
function withoutContent(text: string): string {
  return /^\s*[[{]/.test(text) ? `${text.length} characters of JSON` : clip(text);
}

function clip(text: string): string {
  const line = oneLine(text);
  return line.length <= WORDS_CHARS_MAX ? line : `${line.slice(0, WORDS_CHARS_MAX)}…`;
}
