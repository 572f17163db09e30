import { createHash } from "node:crypto";
import { KbsyncError } from "../lib/failure.ts";
import type { KnowledgeService } from "./service.ts";

/** Time for which an accepted key is cached, as long as the service itself caches keys. */
const TRUSTED_MS = 5000;
/** Cached keys; one more clears the cache. */
const REMEMBERED_MAX = 1000;
/** Longest key that is sent to the service. */
const KEY_CHARS_MAX = 4096;

/** Returns the key in an Authorization header, or undefined. */
export function bearerOf(header: string | undefined): string | undefined {
  const key = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
  return key !== undefined && key.length <= KEY_CHARS_MAX ? key : undefined;
}

/** Checks keys against the service. */
export interface BearerCheck {
  /** Throws the service's refusal: `key_unknown`, `key_expired`, `scope_missing`, `rate_limited`, … */
  check(key: string, service: KnowledgeService, signal: AbortSignal): Promise<void>;
}

/** Opens the check. Caches accepted keys briefly; the service checks all requests that tools send it. */
export function openBearerCheck(nowMs: () => number): BearerCheck {
  const trusted = new Map<string, number>();
  return {
    check: async (key, service, signal) => {
      const sha256 = createHash("sha256").update(key).digest("hex");
      const untilMs = trusted.get(sha256);
      if (untilMs !== undefined && untilMs > nowMs()) return;
      // A service without this operation checks the key before it answers 404, or with each tool call.
      await service.owners(signal);
      if (trusted.size >= REMEMBERED_MAX) trusted.clear();
      trusted.set(sha256, nowMs() + TRUSTED_MS);
    },
  };
}

/** HTTP response to a refused key. */
export interface KeyRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly error: KbsyncError;
}

/** Creates the response to a request without a valid key (RFC 6750). */
export function keyRefusal(error: KbsyncError): KeyRefusal {
  const challenge = (params: string): Record<string, string> => ({
    "www-authenticate": `Bearer realm="kbsync"${params}`,
  });
  const wait = /(\d+) seconds/.exec(error.hint ?? "")?.[1] ?? "5";
  switch (error.code) {
    case "key_missing":
      return { status: 401, headers: challenge(""), error };
    case "key_unknown":
    case "key_expired":
    case "key_refused":
      return { status: 401, headers: challenge(', error="invalid_token"'), error };
    case "scope_missing":
      return {
        status: 403,
        headers: challenge(', error="insufficient_scope", scope="read"'),
        error,
      };
    case "rate_limited":
      return { status: 429, headers: { "retry-after": wait }, error };
    default:
      return { status: 503, headers: { "retry-after": wait }, error };
  }
}
