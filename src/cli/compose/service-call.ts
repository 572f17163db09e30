import { type Dispatcher, FormData, request } from "undici";
import type { z } from "zod";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import { readText } from "../../lib/read-text.ts";
import { Failure } from "../../wire/failure.ts";
import { KEY_HEADER } from "../../wire/routes.ts";
import type { ReachedService } from "./embedded-service.ts";

/** A command's request to the service. */
export interface ServiceCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** The request as an error names it: "a question". */
  readonly what: string;
  /** Sent as JSON, unless it is a form. */
  readonly body?: object;
  /** Cancels the request. */
  readonly signal?: AbortSignal;
  /** Longest wait for the answer, and for each further piece of it. Default: 30 seconds. */
  readonly silenceMs?: number;
}

const SILENCE_MS = 30_000;
/** Longest answer that is read as a whole: a thousand documents with their metadata. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/**
 * A dispatcher of this package. Where `node:http` is loaded first, the global one is that of the undici inside Node.js. It does
 * not know a form of this package: it sends no byte of the request, and no timeout ends it.
 */
const dispatcher = openAgent();

type Address = Pick<ReachedService, "apiUrl" | "pauthkey">;

/**
 * Sends a request with the service's key and returns an answer of status 2xx. Throws `service_unreachable`, `service_refused`
 * in the service's own words, and the signal's reason.
 */
export async function callService(service: Address, call: ServiceCall): Promise<Dispatcher.ResponseData> {
  const { method, path, what, body, signal, silenceMs = SILENCE_MS } = call;
  const form = body instanceof FormData;
  const answer = await reaching(service, call, () =>
    request(service.apiUrl + path, {
      dispatcher,
      method,
      headers: {
        [KEY_HEADER]: service.pauthkey,
        ...(body !== undefined && !form && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: form ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
      headersTimeout: silenceMs,
      bodyTimeout: silenceMs,
    }),
  );
  if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
  const { message, error } = Failure.safeParse(await readJson(service, call, answer)).data ?? {};
  throw new KbsyncError(
    message ?? `the service at ${service.apiUrl} answered HTTP ${answer.statusCode} to ${what}`,
    {
      code: "service_refused",
      subject: service.apiUrl,
      ...(error?.hint !== undefined && { hint: error.hint }),
    },
  );
}

/** Sends a request, as `callService` does, and reads its answer. Throws `service_refused` for an answer of another form, too. */
export async function askService<S extends z.ZodType>(
  service: Address,
  call: ServiceCall,
  schema: S,
): Promise<z.output<S>> {
  const found = schema.safeParse(await readJson(service, call, await callService(service, call)));
  if (found.success) return found.data;
  throw new KbsyncError(`the service at ${service.apiUrl} answered ${call.what} in an unknown form`, {
    code: "service_refused",
    subject: service.apiUrl,
  });
}

/** Returns undefined for a body that is not JSON: no schema accepts it. */
async function readJson(
  service: Address,
  call: ServiceCall,
  { body }: Dispatcher.ResponseData,
): Promise<unknown> {
  const text = await reaching(service, call, () => readText(body, ANSWER_BYTES_MAX));
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function reaching<T>({ apiUrl }: Address, { signal }: ServiceCall, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    signal?.throwIfAborted();
    throw new KbsyncError(`the service at ${apiUrl} did not answer: ${messageOf(error)}`, {
      code: "service_unreachable",
      subject: apiUrl,
      retryable: true,
      cause: error,
    });
  }
}
