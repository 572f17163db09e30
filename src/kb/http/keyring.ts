import { timingSafeEqual } from "node:crypto";
import { KEY_HEADER } from "../../wire/routes.ts";
import { hashKey } from "../keys/keys.ts";
import { Refusal } from "../resources/refusal.ts";
import type { Store } from "../store/store.ts";
import type { KeyRecord, KeyScope } from "../store/records.ts";
import { openRateLimiter } from "./rate.ts";
import type { RateLimiter } from "./rate.ts";

/** Keys remembered. One more costs a look-up in the store. */
const REMEMBERED_KEYS_MAX = 1000;
/** How long a key is remembered: a key revoked elsewhere is refused after at most this. */
const REMEMBERED_MS = 5000;
/** Longer than any key of ours: what is longer is not hashed. */
const KEY_CHARS_MAX = 4096;

/** Finds out who is calling. */
export interface Keyring {
  /**
   * The key's record when it is known, not expired or revoked, has the scope (`admin` has every scope), and has not
   * asked too often. Throws `key_missing`, `key_unknown`, `key_expired`, `scope_missing` or `rate_limited`. Answers at
   * once for a key seen a moment ago.
   */
  check(header: string | string[] | undefined, scope: KeyScope): KeyRecord | Promise<KeyRecord>;
  /** Forgets what it remembers: called when a key was changed here, so that this holds from the next request on. */
  forget(): void;
}

/** Opens the keyring on a store. `rate`: the requests each key may send; default: as many as it likes. */
export function openKeyring(
  store: Pick<Store, "keyByHash">,
  nowMs: () => number,
  rate: RateLimiter = openRateLimiter(undefined),
): Keyring {
  const remembered = new Map<string, { readonly record: KeyRecord; readonly sinceMs: number }>();
  let generation = 0;

  const find = async (sha256: string, scope: KeyScope): Promise<KeyRecord> => {
    const before = generation;
    const record = await store.keyByHash(sha256);
    if (record === undefined || !sameHash(record.sha256, sha256)) throw unknown();
    if (remembered.size >= REMEMBERED_KEYS_MAX) remembered.clear();
    // What was read before a change must not be remembered beyond it.
    if (generation === before) remembered.set(sha256, { record, sinceMs: nowMs() });
    return admitted(record, scope);
  };
  /** Not before a clock was set back: it would be remembered until that reads as late again. */
  const isRecent = (sinceMs: number): boolean => {
    const ageMs = nowMs() - sinceMs;
    return ageMs >= 0 && ageMs < REMEMBERED_MS;
  };
  const admitted = (record: KeyRecord, scope: KeyScope): KeyRecord => {
    const now = nowMs();
    permitted(record, scope, now);
    rate.take(record.sha256, now);
    return record;
  };

  return {
    check: (header, scope) => {
      if (header === undefined || header === "") {
        throw new Refusal("key_missing", `The request carries no ${KEY_HEADER} header.`, {
          hint: `Send your key in the ${KEY_HEADER} header.`,
        });
      }
      if (typeof header !== "string" || header.length > KEY_CHARS_MAX) throw unknown();
      const sha256 = hashKey(header);
      const known = remembered.get(sha256);
      if (known !== undefined && isRecent(known.sinceMs)) return admitted(known.record, scope);
      return find(sha256, scope);
    },
    forget: () => {
      generation += 1;
      remembered.clear();
    },
  };
}

function permitted(record: KeyRecord, scope: KeyScope, nowMs: number): void {
  // Whoever holds a revoked key learns no more than who made one up.
  if (record.revokedAt !== null) throw unknown();
  if (record.expiresAt !== null && Date.parse(record.expiresAt) <= nowMs) {
    throw new Refusal("key_expired", `The key expired at ${record.expiresAt}.`, { hint: "Make a new key." });
  }
  if (!record.scopes.includes(scope) && !record.scopes.includes("admin")) {
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
