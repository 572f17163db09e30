import { createHash } from "node:crypto";
import { KbsyncError } from "../lib/failure.ts";
import type { KnowledgeService } from "./service.ts";

/** How long a key that the service took is not asked about again: as long as the service itself remembers keys. */
const TRUSTED_MS = 5000;
/** Keys remembered; one more forgets all. */
const REMEMBERED_MAX = 1000;
/** Longer than any key: what is longer is not sent on. */
const KEY_CHARS_MAX = 4096;

/** The key in an Authorization header. Undefined: there is none. */
export function bearerOf(header: string | undefined): string | undefined {
  const key = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
  return key !== undefined && key.length <= KEY_CHARS_MAX ? key : undefined;
}

/** Checks keys by asking the service, whose rules they are. */
export interface BearerCheck {
  /** Throws the service's own refusal: `key_unknown`, `key_expired`, `scope_missing`, `rate_limited`, … */
  check(key: string, service: KnowledgeService, signal: AbortSignal): Promise<void>;
}

/** Opens the check. A key that was taken a moment ago is taken again; every call of a tool is checked by the service anyway. */
export function openBearerCheck(nowMs: () => number): BearerCheck {
  const trusted = new Map<string, number>();
  return {
    check: async (key, service, signal) => {
      const sha256 = createHash("sha256").update(key).digest("hex");
      const untilMs = trusted.get(sha256);
      if (untilMs !== undefined && untilMs > nowMs()) return;
      // A service without this operation has checked the key before it looked for one, or checks it with each call.
      await service.owners(signal);
      if (trusted.size >= REMEMBERED_MAX) trusted.clear();
      trusted.set(sha256, nowMs() + TRUSTED_MS);
    },
  };
}

/** How a refused key is answered over HTTP. */
export interface KeyRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly error: KbsyncError;
}

/** The answer to a request without a key that the service takes (RFC 6750). */
export function keyRefusal(error: KbsyncError): KeyRefusal {
  const challenge = (words: string): Record<string, string> => ({ "www-authenticate": `Bearer ${words}` });
  const wait = /(\d+) seconds/.exec(error.hint ?? "")?.[1] ?? "5";
  switch (error.code) {
    case "key_missing":
      return { status: 401, headers: challenge('realm="kbsync"'), error };
    case "key_unknown":
    case "key_expired":
    case "key_refused":
      return { status: 401, headers: challenge('realm="kbsync", error="invalid_token"'), error };
    case "scope_missing":
      return {
        status: 403,
        headers: challenge('realm="kbsync", error="insufficient_scope", scope="read"'),
        error,
      };
    case "rate_limited":
      return { status: 429, headers: { "retry-after": wait }, error };
    default:
      return { status: 503, headers: { "retry-after": wait }, error };
  }
}
