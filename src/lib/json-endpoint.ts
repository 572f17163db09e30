import { setTimeout as pause } from "node:timers/promises";
import { request } from "undici";
import { z } from "zod";
import { KbsyncError, messageOf } from "./failure.ts";
import { openAgent } from "./proxy.ts";
import { retryAfterMs } from "./retry-after.ts";

/** Options of an HTTP endpoint that takes and returns JSON. */
export interface JsonEndpointOptions {
  readonly url: string;
  /** Sent as a bearer token and never logged; undefined: none, for local servers. */
  readonly apiKey: string | undefined;
  /** Timeout of one response, its body included. */
  readonly timeoutMs: number;
  /** Attempts per request, the first included. */
  readonly attempts: number;
  /** First backoff between two attempts; doubles each time. */
  readonly delayMs: number;
  /** Largest response that is read. */
  readonly answerBytesMax: number;
  /** Concurrent requests; more wait. */
  readonly connections: number;
}

/** A client for one URL. */
export interface JsonEndpoint {
  /**
   * Posts a body and returns the JSON of a 200 response. Retries when the service is unreachable or busy (408, 409, 425,
   * 429, 5xx), no sooner than `Retry-After` allows. Throws a KbsyncError: `endpoint_unreachable` (retryable) when the
   * attempts are used up, `endpoint_refused` for any other status, `endpoint_answer` for invalid JSON.
   */
  post(body: unknown, signal?: AbortSignal): Promise<unknown>;
  /** Aborts requests in flight. */
  close(): Promise<void>;
}

/** Longest wait that a service may ask for; one that asks for more counts as unreachable. */
const RETRY_AFTER_MS_MAX = 20_000;
/** Longest part of a service's message that an error quotes. */
const MESSAGE_CHARS_MAX = 300;
const BUSY: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** Opens a client. Does not follow redirects: the key is for this URL alone. */
export function openJsonEndpoint(options: JsonEndpointOptions): JsonEndpoint {
  const { url, apiKey, timeoutMs, attempts, delayMs, answerBytesMax, connections } = options;
  const agent = openAgent({ connections, maxResponseSize: answerBytesMax });

  const ask = async (body: string, signal: AbortSignal | undefined): Promise<Reply> => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const answer = await request(url, {
      method: "POST",
      dispatcher: agent,
      headers: {
        "content-type": "application/json",
        accept: "application/json",
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body,
      // The signal limits the whole response; undici's limits would end it earlier with another error.
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    return {
      status: answer.statusCode,
      waitMs: retryAfterMs(answer.headers["retry-after"], Date.now()) ?? 0,
      text: await answer.body.text(),
    };
  };

  /** Some services quote the key when they refuse it. */
  const withoutKey = (message: string): string =>
    apiKey === undefined ? message : message.replaceAll(apiKey, "(the key)");

  const unreachable = (why: string, cause?: unknown): KbsyncError =>
    new KbsyncError(`${url} does not answer: ${why}`, {
      code: "endpoint_unreachable",
      subject: url,
      retryable: true,
      cause,
    });

  const failureOf = (reply: Reply): KbsyncError => {
    const message = withoutKey(problemIn(reply.text)).slice(0, MESSAGE_CHARS_MAX);
    const reason = `status ${reply.status}${message === "" ? "" : `, ${message}`}`;
    if (BUSY.has(reply.status) || reply.status >= 500) return unreachable(reason);
    return new KbsyncError(`${url} refused the request: ${reason}`, {
      code: "endpoint_refused",
      subject: url,
    });
  };

  return {
    post: async (body, signal) => {
      const text = JSON.stringify(body);
      for (let attempt = 1; ; attempt++) {
        let waitMs = delayMs * 2 ** (attempt - 1);
        let failure: KbsyncError;
        try {
          const reply = await ask(text, signal);
          if (reply.status === 200) return parsed(reply.text, url);
          failure = failureOf(reply);
          waitMs = Math.max(waitMs, reply.waitMs);
        } catch (cause) {
          signal?.throwIfAborted();
          if (cause instanceof KbsyncError) throw cause;
          failure = unreachable(reasonOf(cause, timeoutMs), cause);
        }
        if (!failure.retryable || attempt >= attempts || waitMs > RETRY_AFTER_MS_MAX) throw failure;
        await pause(waitMs, undefined, signal === undefined ? {} : { signal });
      }
    },
    close: () => agent.destroy(),
  };
}

interface Reply {
  readonly status: number;
  readonly waitMs: number;
  readonly text: string;
}

function reasonOf(cause: unknown, timeoutMs: number): string {
  const isTimeout = cause instanceof Error && cause.name === "TimeoutError";
  return isTimeout ? `no answer within ${timeoutMs} ms` : messageOf(cause);
}

function parsed(text: string, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new KbsyncError(`${url} answered what is no JSON`, {
      code: "endpoint_answer",
      subject: url,
      cause,
    });
  }
}

/** Known forms of error bodies. */
const Problem = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ message: z.string() }).transform(({ message }) => message),
  z.object({ detail: z.string() }).transform(({ detail }) => detail),
]);

function problemIn(text: string): string {
  try {
    return Problem.safeParse(JSON.parse(text)).data ?? "";
  } catch {
    return ""; // an error page of a proxy does not belong in a log
  }
}
