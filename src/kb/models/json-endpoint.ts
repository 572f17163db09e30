import { KbsyncError } from "../../lib/failure.ts";
import { openEndpoint } from "./endpoint.ts";
import { failureKind, problemOf } from "./model-failure.ts";
import { withRetries } from "./retry.ts";

/** A model at an endpoint that takes and returns JSON. */
export interface JsonEndpointOptions {
  /** The model, as its key in the configuration names it: begins the codes of its errors. */
  readonly kind: "embedding" | "reranker";
  readonly url: string;
  /** Returns the key for a request, sent as a bearer token and never logged; undefined: none, for local servers. */
  readonly apiKey: (() => string) | undefined;
  /** Timeout of one response, its body included. */
  readonly timeoutMs: number;
  /** Attempts per request, the first included. */
  readonly attempts: number;
  /** First backoff between two attempts; doubles each time. Default: that of `withRetries`. */
  readonly delayMs?: number | undefined;
  /** Largest response that is read. */
  readonly answerBytesMax: number;
  /** Concurrent requests; more wait. */
  readonly connections: number;
}

/** A client for one URL. */
export interface JsonEndpoint {
  /**
   * Posts a body and returns the JSON of a 2xx response. Retries as `withRetries` does. Throws `KIND_unreachable` (retryable) when
   * the attempts are used up, `KIND_refused`, `KIND_answer` for invalid JSON, and the reason of `signal`.
   */
  post(body: object, signal: AbortSignal): Promise<unknown>;
  /** Creates the error for an answer that cannot be used. */
  unusable(why: string): KbsyncError;
  /** Aborts requests in flight. */
  close(): Promise<void>;
}

/** Opens a client. It sends nothing before the first request. */
export function openJsonEndpoint(options: JsonEndpointOptions): JsonEndpoint {
  const { kind, url, apiKey, timeoutMs, attempts, delayMs, answerBytesMax, connections } = options;
  const endpoint = openEndpoint({ url, apiKey, answerBytesMax, connections });
  const limits = { attemptMs: timeoutMs, totalMs: Infinity, delayMs };
  const failure = (code: string, problem: string, retryable = false): KbsyncError =>
    new KbsyncError(`the ${NAMES[kind]} fails: ${problem}`, {
      code: `${kind}_${code}`,
      subject: url,
      retryable,
      hint: `Check kb.${kind}: the address, the model's name and the key file.`,
    });
  const unusable = (why: string): KbsyncError => failure("answer", `its answer cannot be used: ${why}`);
  const ask = async (body: object, signal: AbortSignal): Promise<string> => {
    try {
      return await withRetries(limits, attempts, signal, async (until) =>
        (await endpoint.send(body, until)).text(),
      );
    } catch (error) {
      signal.throwIfAborted();
      // Without the cause, whose message may contain the key.
      const problem = problemOf(error, { apiKey: apiKey?.(), timeoutMs });
      switch (failureKind(error)) {
        case "unreachable":
          throw failure("unreachable", problem, true);
        case "refused":
          throw failure("refused", problem);
        case "unusable":
          throw unusable(problem);
      }
    }
  };

  return {
    post: async (body, signal) => {
      const text = await ask(body, signal);
      try {
        return JSON.parse(text);
      } catch {
        throw unusable("it is no JSON");
      }
    },
    unusable,
    close: () => endpoint.close(),
  };
}

const NAMES = { embedding: "embedding model", reranker: "reranker" } as const;
