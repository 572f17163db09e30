import { z } from "zod";
import { retryAfterMs } from "../../../lib/retry-after.ts";
import { oneLine } from "../../../lib/one-line.ts";

/** The result of a request, as far as the sync distinguishes answers. */
export type Reply<T> =
  | { readonly kind: "done"; readonly value: T }
  /** The service will never accept this request; code and message are the service's own. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** The resource does not exist. */
  | { readonly kind: "gone" }
  | Later;

/** No usable answer: the same request may succeed later. */
export interface Later {
  readonly kind: "later";
  /** Whether the service may have carried out the request nevertheless. */
  readonly acted: "no" | "maybe";
  readonly reason: string;
  /** The scope of a failure. `request`: this request only. `service`: the service is unavailable. `key`: the service refuses the key. */
  readonly blame: "request" | "service" | "key";
  /** No server could be reached at the address. */
  readonly unreached?: boolean;
  /** The service is still processing an earlier request, which neither failed nor was lost. */
  readonly isInFlight?: boolean;
  /** Nothing was sent because the source is paused. Asking again before it resumes is useless. */
  readonly isPaused?: boolean;
  /** The service answers 403. With `blame: "request"` it accepts the key, and forbids this kind of request. */
  readonly isForbidden?: boolean;
  /** Advice for a person, in the service's words. Present where waiting alone does not help. */
  readonly hint?: string | undefined;
  /** The delay that the service asks for. */
  readonly retryAfterMs?: number | undefined;
}

/** An answer before it is interpreted. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** When it came, in Unix time. */
  readonly atMs: number;
}

const Envelope = z.object({
  success: z.boolean(),
  message: z.string().optional(),
  error: z.object({ code: z.string().optional(), hint: z.string().optional() }).optional(),
});

/** The one failure of a whole service that lasts until a person acts. */
const STORE_DAMAGED = "store_damaged";

/** Maximum length of foreign text that is quoted to a person. */
const WORDS_CHARS_MAX = 500;

/**
 * Interprets an answer. Pure. Returns `done` only for `success: true` in the right shape. A 200 with `success: false` is a
 * refusal. Text that is not JSON (a proxy's page, half an answer) does not show whether the service acted. `subject` is
 * what a 404 refers to: the requested resource, or the address itself.
 */
export function readAnswer<T>(
  answer: RawAnswer,
  schema: z.ZodType<T>,
  subject: "resource" | "address",
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
    retryAfterMs: retryAfterMs(header(answer, "retry-after"), answer.atMs, header(answer, "date")),
  });

  if (status >= 200 && status < 300) {
    if (envelope.data?.success === false) return { kind: "refused", code, message: words };
    return later(
      "maybe",
      "request",
      `HTTP ${status} with an answer that is not the service's: ${withoutContent(answer.text)}`,
    );
  }
  if (status === 401) return later("no", "key");
  if (status === 403) return { ...later("no", "key"), isForbidden: true };
  if (status === 404 || status === 410) {
    // Gateways often answer in JSON too: only the service's own envelope proves that a resource is gone.
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
  // An earlier request for the resource, or with this Idempotency-Key, is in progress. A permanent conflict has no Retry-After.
  if (status === 409 && header(answer, "retry-after") !== undefined)
    return { ...later("maybe", "request"), isInFlight: true };
  if (status === 405) return later("no", "service", `${words}; is the address right?`);
  if (status === 501 || (status >= 400 && status < 500)) return { kind: "refused", code, message: words };
  return later("maybe", "request");
}

/** Returns the first value of a header. */
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

/**
 * Quotes a proxy's page, but not JSON: half an answer, or one of another shape, may hold document text, which no log
 * may show.
 */
function withoutContent(text: string): string {
  return /^\s*[[{]/.test(text) ? `${text.length} characters of JSON` : clip(text);
}

function clip(text: string): string {
  const line = oneLine(text);
  return line.length <= WORDS_CHARS_MAX ? line : `${line.slice(0, WORDS_CHARS_MAX)}…`;
}
