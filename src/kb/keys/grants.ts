import { randomBytes } from "node:crypto";
import type { GrantBody } from "../../wire/grant.ts";
import { Refusal } from "../resources/refusal.ts";
import type { KeyRecord } from "../store/accounts.ts";
import { generateKey, hashKey, keyHint, type KeyParts, recordOf } from "./keys.ts";

/** A refresh token: the grant's id, a secret that all tokens of the grant share, and one of its own. */
const REFRESH_TOKEN = /^kbr_([0-9a-f]{24})_([\w-]{43})_[\w-]{43}$/;
/** Lifetime of a grant's key. */
const ACCESS_MS = 60 * 60 * 1000;
/** Lifetime of a grant that is not refreshed: a client that is used less often asks its person again. */
const GRANT_MS = 30 * 24 * 60 * 60 * 1000;

/** A grant with its secrets. The service never shows them again. */
export interface NewGrant {
  readonly key: string;
  readonly refreshToken: string;
  readonly record: KeyRecord;
}

/**
 * Derives a key with the scope `read` from the caller's, for one client. It ends with the caller's key at the latest. Throws
 * `scope_missing` for a caller that is a grant itself. The store bounds the grants of a key.
 */
export async function createGrant(
  parts: KeyParts,
  caller: KeyRecord,
  { name }: GrantBody,
): Promise<NewGrant> {
  if (caller.grant !== undefined)
    throw new Refusal("scope_missing", "A derived key cannot derive others.", {
      hint: "Send the person's key.",
    });
  const now = parts.nowMs();
  const key = generateKey();
  const createdAt = new Date(now).toISOString();
  const draft = recordOf(key, caller.accountId, {
    name: name.toWellFormed(),
    scopes: ["read"],
    createdAt,
    expiresAt: null,
  });
  const family = newSecret();
  const refreshToken = refreshTokenOf(draft.id, family);
  const { expiresAt, accessUntil } = timesFrom(now);
  const secrets = { familySha256: hashKey(family), refreshSha256: hashKey(refreshToken) };
  const grant = { parentId: caller.id, ...secrets, accessUntil };
  const record = { ...draft, expiresAt, grant };
  await parts.records.putKey(record);
  // With the expiry of the caller's key, if that is earlier.
  return { key, refreshToken, record: (await parts.records.keyByHash(record.sha256)) ?? record };
}

/**
 * Replaces key and refresh token of a grant. Throws `key_unknown` if it has ended, and for a refresh token that was used before,
 * which ends it. `onChange` is called if a key has ended.
 */
export async function refreshGrant(
  { records, nowMs }: KeyParts,
  sent: string,
  onChange: () => void,
): Promise<NewGrant> {
  const [, id, family] = REFRESH_TOKEN.exec(sent) ?? [];
  if (id === undefined || family === undefined) throw ended();
  const now = nowMs();
  const key = generateKey();
  const refreshToken = refreshTokenOf(id, family);
  const record = await records.rotateGrant({
    id,
    sentSha256: hashKey(sent),
    familySha256: hashKey(family),
    nowIso: new Date(now).toISOString(),
    next: {
      ...timesFrom(now),
      sha256: hashKey(key),
      hint: keyHint(key),
      refreshSha256: hashKey(refreshToken),
    },
  });
  if (record === undefined) throw ended();
  onChange();
  if (record.revokedAt !== null) throw ended();
  return { key, refreshToken, record };
}

/** Ends the grant whose key is the caller's. Throws `key_not_found` for any other key. */
export async function endGrant({ records, nowMs }: KeyParts, caller: KeyRecord): Promise<void> {
  if (caller.grant === undefined)
    throw new Refusal("key_not_found", "The key in the request is not a derived one.");
  const { accountId, id } = caller;
  await records.changeKey({ accountId, id, revokedAt: new Date(nowMs()).toISOString() });
}

function refreshTokenOf(id: string, family: string): string {
  return `kbr_${id}_${family}_${newSecret()}`;
}

function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

function timesFrom(nowMs: number): { readonly expiresAt: string; readonly accessUntil: string } {
  const [expiresAt = "", accessUntil = ""] = [GRANT_MS, ACCESS_MS].map((ms) =>
    new Date(nowMs + ms).toISOString(),
  );
  return { expiresAt, accessUntil };
}

function ended(): Refusal {
  return new Refusal("key_unknown", "The refresh token is not known here, or its grant has ended.", {
    hint: "Ask the person for access again.",
  });
}
