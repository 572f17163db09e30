import { signal } from "@preact/signals";
import type { Failure } from "../../wire/failure.ts";
import { CONSOLE_HEADER, REQUEST_ID_HEADER } from "../../wire/routes.ts";

/** Why a request failed, in words for a person. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly code: string;
  readonly status: number;
  readonly hint: string | undefined;
  readonly field: string | undefined;
  readonly requestId: string | undefined;
  /** Unix time from which the same request may succeed. */
  readonly retryAtMs: number | undefined;

  constructor(message: string, facts: Partial<Omit<RequestError, "name" | "message">> = {}) {
    super(message, { cause: facts.cause });
    this.code = facts.code ?? "unreachable";
    this.status = facts.status ?? 0;
    this.hint = facts.hint;
    this.field = facts.field;
    this.requestId = facts.requestId;
    this.retryAtMs = facts.retryAtMs;
  }
}

/** The contents of a request. */
export interface SentRequest {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Fails at once instead of waiting for a person to sign in, or for the service to come back. */
  readonly once?: boolean;
}

/** Whether the session has ended, so that a person has to sign in where they are. */
export const isSignedOut = signal(false);
/** Since when the service does not answer; null: it does. */
export const unreachableSinceMs = signal<number | null>(null);

const waitingForSession: (() => void)[] = [];
let sessions = 0;

/** Continues the requests that waited for a session. */
export function signedIn(): void {
  sessions += 1;
  isSignedOut.value = false;
  for (const go of waitingForSession.splice(0)) go();
}

/** Pauses between tries while the service does not answer. */
const RETRY_MS = [500, 1000, 2000, 4000, 5000] as const;

/**
 * Sends a request and returns the JSON of its answer, in the type that the caller names by the operation's schema. Throws
 * `RequestError` for a refusal.
 */
export async function ask<T>(path: string, sent: SentRequest = {}): Promise<T> {
  if (sent.once === true) return (await askOnce(path, sent)) as T; // the service checks its answers against the schema
  const answer = await persist(() => askOnce(path, sent), isRepeatable(sent), sent.signal);
  return answer as T; // as above
}

/**
 * Repeats a request while the service restarts, and after the end of a session waits for the next one, so that nothing typed is
 * lost. A request that may not be repeated fails if it is unknown what became of it.
 */
export async function persist<T>(
  request: () => Promise<T>,
  isRepeated: boolean,
  abort?: AbortSignal,
): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    const session = sessions;
    try {
      const answer = await request();
      unreachableSinceMs.value = null;
      return answer;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const away = isAway(error);
      if (!away) unreachableSinceMs.value = null;
      if (ENDED.has(error.code)) {
        // Unless somebody has signed in since the request was sent.
        if (session === sessions) await nextSession();
      } else if (away && (isRepeated || error.code !== "unreachable")) {
        unreachableSinceMs.value ??= Date.now();
        await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 0, abort);
      } else throw error;
    }
  }
}

/** Codes of a session that ended, or of none. */
const ENDED: ReadonlySet<string> = new Set(["session_ended", "key_missing"]);
/** Codes of a service that restarts. */
const AWAY: ReadonlySet<string> = new Set(["unreachable", "starting", "draining", "daemon_stopping"]);

/** Whether a request failed because the service is away, and may succeed once it is back. */
export function isAway(error: unknown): boolean {
  return error instanceof RequestError && AWAY.has(error.code);
}

/** Whether a request may be sent twice: a read, or one that the service recognises. */
function isRepeatable({ method = "GET", headers = {} }: SentRequest): boolean {
  return method === "GET" || "idempotency-key" in headers;
}

function nextSession(): Promise<void> {
  isSignedOut.value = true;
  return new Promise((resolve) => waitingForSession.push(resolve));
}

function pause(ms: number, abort: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(abort?.reason as Error); // the console aborts with the default reason
    };
    abort?.addEventListener("abort", stop, { once: true });
  });
}

async function askOnce(path: string, { method = "GET", query, body, headers, signal: abort }: SentRequest) {
  let answer: Response;
  try {
    answer = await fetch(path + queryText(query), {
      method,
      headers: {
        [CONSOLE_HEADER]: "1",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(abort === undefined ? {} : { signal: abort }),
      cache: "no-store",
    });
  } catch (error) {
    abort?.throwIfAborted();
    throw new RequestError("The service does not answer.", {
      hint: "It may be restarting, or be stopped, or the network may be down.",
      cause: error,
    });
  }
  const requestId = answer.headers.get(REQUEST_ID_HEADER) ?? undefined;
  const value: unknown = await answer.json().catch(() => undefined);
  if (answer.ok) return value;
  throw refusalOf(value, answer.status, requestId, answer.headers.get("retry-after"));
}

/** Builds the error of an answer that refuses. */
export function refusalOf(
  value: unknown,
  status: number,
  requestId: string | undefined,
  retryAfter: string | null,
): RequestError {
  const failure = value as Failure | undefined; // every refusal of the service has this form
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  return new RequestError(failure?.message ?? `The service answered with status ${status}.`, {
    code: failure?.error?.code ?? "unknown",
    status,
    hint: failure?.error?.hint,
    field: failure?.error?.field,
    requestId,
    ...(Number.isFinite(seconds) && { retryAtMs: Date.now() + seconds * 1000 }),
  });
}

function queryText(query: SentRequest["query"]): string {
  const set = Object.entries(query ?? {}).filter(([, value]) => value !== undefined);
  return set.length === 0
    ? ""
    : `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()}`;
}
