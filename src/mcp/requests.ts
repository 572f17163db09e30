import type { Dispatcher } from "undici";
import type { z } from "zod";
import { KbsyncError, messageOf } from "../lib/failure.ts";
import { readText } from "../lib/read-text.ts";
import { Failure } from "../wire/failure.ts";

/** Largest answer read: a text of 32 MB with every character escaped in JSON. */
const ANSWER_BYTES_MAX = 200 * 1024 * 1024;

/** An answer of the service, read whole. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly json: unknown;
}

type Sent = Pick<Dispatcher.RequestOptions, "method" | "headers" | "body"> & { readonly signal: AbortSignal };

/** Sends a request and reads its answer. Throws `service_unreachable`. */
export async function send(agent: Dispatcher, host: string, path: string, sent: Sent): Promise<Answer> {
  return reaching(host, sent.signal, async () => answerOf(await begin(agent, host, path, sent)));
}

/** Sends a request. The caller reads the body of the answer. */
function begin(agent: Dispatcher, host: string, path: string, sent: Sent): Promise<Dispatcher.ResponseData> {
  const url = new URL(host.replace(/\/+$/, "") + path);
  return agent.request({ ...sent, origin: url.origin, path: url.pathname + url.search });
}

/** Reads an answer whole. */
async function answerOf({
  statusCode,
  headers,
  body,
}: Pick<Dispatcher.ResponseData, "statusCode" | "headers" | "body">): Promise<Answer> {
  const retryAfter = headers["retry-after"];
  return {
    status: statusCode,
    retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
    json: parsed(await readText(body, ANSWER_BYTES_MAX)),
  };
}

/** Runs a request. Throws `service_unreachable`. */
export async function reaching<T>(host: string, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (signal.aborted) throw error;
    const { origin } = new URL(host);
    throw new KbsyncError(`the service at ${origin} cannot be reached: ${messageOf(error)}`, {
      code: "service_unreachable",
      subject: origin,
      retryable: true,
      hint: "Check that it runs: `kbsync up` or `kbsync serve` for the embedded one.",
      cause: error,
    });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a proxy's error page; the status explains it
  }
}

/** Whether the service lacks the operation rather than the resource. */
export function lacksOperation({ status, json }: Answer): boolean {
  if (status === 405 || status === 501) return true;
  if (status !== 404) return false;
  const refusal = Failure.safeParse(json);
  // Other services use other codes for an unknown route.
  return !refusal.success || refusal.data.error.code !== "resource_not_found";
}

/** Returns the content of an answer. Throws what the service refused with, or that it is no answer of this API. */
export function accepted<T>({ status, retryAfter, json }: Answer, schema: z.ZodType<T>): T {
  const value = schema.safeParse(json);
  if (status >= 200 && status < 300 && value.success) return value.data;
  const refusal = Failure.safeParse(json);
  const wait = retryAfter === undefined ? "" : ` Try again in ${retryAfter} seconds.`;
  if (refusal.success) {
    const { message, error } = refusal.data;
    const hint = `${error.hint ?? ""}${wait}`.trim();
    throw new KbsyncError(message, {
      code: error.code,
      retryable: status === 429 || status === 503,
      ...(hint !== "" && { hint }),
    });
  }
  throw new KbsyncError(`the service answered HTTP ${status} with an unknown body`, {
    code: status === 401 || status === 403 ? "key_refused" : "service_refused",
    hint: status === 401 || status === 403 ? "Check the key." : `Check the service's address.${wait}`,
  });
}
