import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { z } from "zod";
import { KbsyncError, messageOf } from "./failure.ts";
import { retryAfterMs } from "./retry-after.ts";

/** A service that answers JSON with JSON. */
export interface JsonEndpointOptions {
  readonly url: string;
  /** Sent as a bearer token; undefined: none, as servers on the own machine need none. Told nowhere. */
  readonly apiKey: string | undefined;
  /** Longest wait for one answer, its body included. */
  readonly timeoutMs: number;
  /** Tries of a request that nobody answered. */
  readonly attempts: number;
  /** First wait between two tries, doubled for the next. */
  readonly delayMs: number;
  /** Largest answer read. */
  readonly answerBytesMax: number;
  /** Requests under way at once; more wait. */
  readonly connections: number;
}

/** Posts to one address. */
export interface JsonEndpoint {
  /**
   * The JSON of an answer with status 200. Tried again where nobody answers or the service is busy (408, 409, 425, 429,
   * 5xx), no sooner than `Retry-After` says. Throws a KbsyncError: `endpoint_unreachable` (retryable) when that does not
   * help, `endpoint_refused` for what asking again does not change, `endpoint_answer` for what is no JSON.
   */
  post(body: unknown, signal?: AbortSignal): Promise<unknown>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

/** Longest wait that a service may ask for; who wants more is taken for not there. */
const RETRY_AFTER_MS_MAX = 20_000;
/** Characters of a service's own words told in an error. */
const WORDS_MAX = 300;
const BUSY: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** Nothing is sent before the first `post`. Redirects are not followed: the key is for this address alone. */
export function openJsonEndpoint(options: JsonEndpointOptions): JsonEndpoint {
  const { url, apiKey, timeoutMs, attempts, delayMs, answerBytesMax, connections } = options;
  const agent = new Agent({ connections, maxResponseSize: answerBytesMax });

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
      // The signal bounds the whole answer; the client's own bounds would only cut it short in other words.
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

  /** Some services tell the key in their refusal of it. */
  const withoutKey = (words: string): string =>
    apiKey === undefined ? words : words.replaceAll(apiKey, "(the key)");

  const unreachable = (why: string, cause?: unknown): KbsyncError =>
    new KbsyncError(`${url} does not answer: ${why}`, {
      code: "endpoint_unreachable",
      subject: url,
      retryable: true,
      cause,
    });

  const failureOf = (reply: Reply): KbsyncError => {
    const words = withoutKey(wordsOf(reply.text)).slice(0, WORDS_MAX);
    const said = `status ${reply.status}${words === "" ? "" : `, ${words}`}`;
    if (BUSY.has(reply.status) || reply.status >= 500) return unreachable(said);
    return new KbsyncError(`${url} refused the request: ${said}`, { code: "endpoint_refused", subject: url });
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

/** The forms in which such services say what is wrong. */
const Problem = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ message: z.string() }).transform(({ message }) => message),
  z.object({ detail: z.string() }).transform(({ detail }) => detail),
]);

function wordsOf(text: string): string {
  try {
    return Problem.safeParse(JSON.parse(text)).data ?? "";
  } catch {
    return ""; // a page of a proxy says nothing that a log should hold
  }
}
