import { timingSafeEqual } from "node:crypto";
import { KEY_HEADER } from "../../../wire/routes.ts";
import { hashKey } from "../../keys/keys.ts";
import { Refusal } from "../../resources/refusal.ts";
import type { Records } from "../../store/records.ts";
import type { KeyRecord, KeyScope } from "../../store/accounts.ts";
import { openRateLimiter } from "../limits/rate.ts";
import type { RateLimiter } from "../limits/rate.ts";

/** Maximum cached keys. Other keys cost a lookup in the store. */
const CACHE_KEYS_MAX = 1000;
/** Lifetime of a cached key: a key revoked by another process is refused after at most this. */
const CACHE_MS = 5000;
/** Longer than any key of the service; longer values are not hashed. */
const KEY_CHARS_MAX = 4096;

/** The scope that an operation needs; `any`: every valid key may use it. */
export type KeyNeed = KeyScope | "any";

/** Authenticates callers by their keys. */
export interface Keyring {
  /** Returns the account of a key that was checked recently, without checking it; undefined for any other. */
  accountOf(header: string | string[] | undefined): string | undefined;
  /**
   * Returns the key's record if the key is known, neither expired nor revoked, has the scope (`admin` includes every scope)
   * and is within its rate. Throws `key_missing`, `key_unknown`, `key_expired`, `scope_missing` or `rate_limited`. Returns
   * synchronously for a cached key, unless the rate is shared and its next tokens come from the database.
   */
  check(header: string | string[] | undefined, scope: KeyNeed): KeyRecord | Promise<KeyRecord>;
  /** As `check`, for a key by its hash. */
  checkHash(sha256: string, scope: KeyNeed): KeyRecord | Promise<KeyRecord>;
  /** Clears the cache. Call it after a change of a key, so that the change applies from the next request on. */
  clear(): void;
  /** Counts the calls of `clear`: a caller that was checked before the last one may have lost its key. */
  generation(): number;
}

/** Opens the keyring of a store. `rate` limits the requests of each key; default: unlimited. */
export function openKeyring(
  records: Pick<Records, "keyByHash">,
  nowMs: () => number,
  rate: RateLimiter = openRateLimiter(undefined),
): Keyring {
  const cache = new Map<string, { readonly record: KeyRecord; readonly sinceMs: number }>();
  let generation = 0;

  const find = async (sha256: string, scope: KeyNeed): Promise<KeyRecord> => {
    const before = generation;
    const record = await records.keyByHash(sha256);
    if (record === undefined || !sameHash(record.sha256, sha256)) throw unknown();
    if (cache.size >= CACHE_KEYS_MAX) cache.clear();
    // A record that was read before a change must not be cached after it.
    if (generation === before) cache.set(sha256, { record, sinceMs: nowMs() });
    return admitted(record, scope);
  };
  /** False after the clock was set back: the entry would otherwise be valid until the clock catches up. */
  const isRecent = (sinceMs: number): boolean => {
    const ageMs = nowMs() - sinceMs;
    return ageMs >= 0 && ageMs < CACHE_MS;
  };
  const admitted = (record: KeyRecord, scope: KeyNeed): KeyRecord | Promise<KeyRecord> => {
    const now = nowMs();
    refuseUnpermitted(record, scope, now);
    const waiting = rate.take(record.sha256, now);
    return waiting === undefined ? record : waiting.then(() => record);
  };
  const checkHash = (sha256: string, scope: KeyNeed): KeyRecord | Promise<KeyRecord> => {
    const known = cache.get(sha256);
    if (known !== undefined && isRecent(known.sinceMs)) return admitted(known.record, scope);
    return find(sha256, scope);
  };

  return {
    check: (header, scope) => {
      if (header === undefined || header === "") {
        throw new Refusal("key_missing", `The request carries no ${KEY_HEADER} header.`, {
          hint: `Send your key in the ${KEY_HEADER} header.`,
        });
      }
      if (typeof header !== "string" || header.length > KEY_CHARS_MAX) throw unknown();
      return checkHash(hashKey(header), scope);
    },
    accountOf: (header) =>
      typeof header === "string" && header.length <= KEY_CHARS_MAX
        ? cache.get(hashKey(header))?.record.accountId
        : undefined,
    checkHash,
    clear: () => {
      generation += 1;
      cache.clear();
    },
    generation: () => generation,
  };
}

function refuseUnpermitted(record: KeyRecord, scope: KeyNeed, nowMs: number): void {
  // The answer to a revoked key reveals no more than that to an invented one.
  if (record.revokedAt !== null) throw unknown();
  if (record.expiresAt !== null && Date.parse(record.expiresAt) <= nowMs) {
    throw new Refusal("key_expired", `The key expired at ${record.expiresAt}.`, {
      hint: "Create a new key.",
    });
  }
  if (scope !== "any" && !record.scopes.includes(scope) && !record.scopes.includes("admin")) {
    throw new Refusal("scope_missing", `The key lacks the scope ${scope}.`, {
      hint: `It has: ${record.scopes.join(", ") || "none"}.`,
    });
  }
}

function unknown(): Refusal {
  return new Refusal("key_unknown", `The key in the ${KEY_HEADER} header is not known here.`);
}

function sameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, "hex"), Buffer.from(other, "hex")];
  return a.length === b.length && timingSafeEqual(a, b);
}
