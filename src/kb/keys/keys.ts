import { hash, randomBytes } from "node:crypto";
import { newHexId } from "../../lib/ids.ts";
import type { KeyBody, KeyRecordAnswer, RotateBody } from "../../wire/key.ts";
import type { Records } from "../store/records.ts";
import type { KeyRecord, KeyScope } from "../store/accounts.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";

/** Prefix of every key, by which secret scanners and people recognise it. */
export const KEY_PREFIX = "kb_";
/** The account of the embedded service. */
export const LOCAL_ACCOUNT = "local";
/** Name of the key in the state folder, with which the commands authenticate to the embedded service. */
export const OWN_KEY_NAME = "state folder";
export const ALL_SCOPES: readonly KeyScope[] = ["read", "write", "chat", "admin"];
/** Most valid keys of an account, neither revoked nor expired: one for each program and person. */
export const KEYS_MAX = 1000;
/** Most keys of an account, including revoked and expired ones, which stay on record: daily rotation takes 27 years. */
export const KEY_RECORDS_MAX = 10_000;
/** The prefix and 30 of the 256 bits: enough to distinguish keys, far too few to guess one. */
const HINT_CHARS = KEY_PREFIX.length + 5;

/** Returns a new key: the prefix and 256 random bits in base64url, 46 characters. */
export function generateKey(): string {
  return KEY_PREFIX + randomBytes(32).toString("base64url");
}

/** SHA-256 in 64 hex digits, the only stored form of a key. A key's 256 random bits make salt and stretching unnecessary. */
export function hashKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** The rights of a key, and its account. */
export interface KeyGrant {
  /** Name of the account; created if missing. */
  readonly account: string;
  /** Shown to people in lists. */
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** Creates the account if missing and stores the hash of `key` for it. Registering the same key again replaces the grant. */
export async function registerKey(records: Records, key: string, grant: KeyGrant): Promise<KeyRecord> {
  const account = await records.ensureAccount(grant.account);
  const record = recordOf(key, account.id, grant);
  await records.putKey(record);
  // A key that was registered before keeps its id, and stays revoked if it was.
  return (await records.keyByHash(record.sha256)) ?? record;
}

/** Dependencies of the operations on keys. `nowMs` is the clock by which keys expire. */
export interface KeyParts {
  readonly records: Records;
  readonly nowMs: () => number;
}

/** A new key. The service never shows it again. */
export interface NewKey {
  readonly key: string;
  readonly record: KeyRecord;
}

/** Creates a key for the account. Throws `key_limit`, and `invalid_field` for an expiry in the past. */
export async function createKey(parts: KeyParts, accountId: string, body: KeyBody): Promise<NewKey> {
  const now = parts.nowMs();
  refusePast(body.expiresAt, now);
  const keys = await parts.records.keys(accountId);
  refuseRecords(keys);
  refuseValid(keys, now, "Revoke keys that nobody uses.");
  return putNew(parts, accountId, {
    name: body.name.toWellFormed(),
    scopes: body.scopes,
    expiresAt: body.expiresAt ?? null,
  });
}

/** Lists all keys of the account, oldest first. */
export function listKeys({ records }: KeyParts, accountId: string): Promise<readonly KeyRecord[]> {
  return records.keys(accountId);
}

/** Revokes a key permanently; its record stays. Throws `key_not_found`, also for a revoked key. */
export async function revokeKey(parts: KeyParts, accountId: string, id: string): Promise<KeyRecord> {
  await unrevokedKey(parts, accountId, id);
  const revokedAt = new Date(parts.nowMs()).toISOString();
  const revoked = await parts.records.changeKey({ accountId, id, revokedAt });
  if (revoked === undefined) throw noKey(id);
  return revoked;
}

/**
 * Replaces a key. The old key remains valid for the overlap, but no longer than it would have. Throws `key_not_found`, also for
 * a revoked key, and `key_limit`. A crash in between leaves both keys, and nobody knows the new one.
 */
export async function rotateKey(
  parts: KeyParts,
  accountId: string,
  id: string,
  body: RotateBody,
): Promise<NewKey & { readonly previous: KeyRecord }> {
  const now = parts.nowMs();
  refusePast(body.expiresAt, now);
  const old = await unrevokedKey(parts, accountId, id);
  const keys = await parts.records.keys(accountId);
  refuseRecords(keys);
  // A key that ends at once frees its slot: an account at the limit can replace a leaked key.
  const staying = body.overlapSeconds === 0 ? keys.filter((key) => key.id !== id) : keys;
  refuseValid(
    staying,
    now,
    "Send overlapSeconds 0 to end the old key at once, or revoke keys that nobody uses.",
  );
  const expiresAt = body.expiresAt === undefined ? sameLifetime(old, now) : body.expiresAt;
  const made = await putNew(parts, accountId, { name: old.name, scopes: old.scopes, expiresAt });
  const endMs = Math.min(now + body.overlapSeconds * 1000, expiryMs(old));
  const previous = await parts.records.changeKey({ accountId, id, expiresAt: new Date(endMs).toISOString() });
  if (previous === undefined) throw noKey(id);
  return { ...made, previous };
}

/** Returns a key in its wire format. */
export function shownKey(record: KeyRecord, nowMs: number): KeyRecordAnswer {
  const { id, name, hint, scopes, createdAt, expiresAt, revokedAt } = record;
  return {
    _id: id,
    name,
    hint,
    scopes: [...scopes],
    createdAt,
    expiresAt,
    revokedAt,
    state: keyState(record, nowMs),
  };
}

/** Reports whether a key is valid, expired or revoked. */
function keyState(record: KeyRecord, nowMs: number): KeyRecordAnswer["state"] {
  if (record.revokedAt !== null) return "revoked";
  return expiryMs(record) <= nowMs ? "expired" : "valid";
}

async function putNew(
  { records, nowMs }: KeyParts,
  accountId: string,
  grant: Pick<KeyGrant, "name" | "scopes" | "expiresAt">,
): Promise<NewKey> {
  const key = generateKey();
  const createdAt = new Date(nowMs()).toISOString();
  const record = recordOf(key, accountId, { ...grant, expiresAt: isoOf(grant.expiresAt), createdAt });
  await records.putKey(record);
  return { key, record };
}

/** Returns the first characters of a key, by which people recognise it; empty for a foreign one. */
function keyHint(key: string): string {
  return key.startsWith(KEY_PREFIX) ? key.slice(0, HINT_CHARS) : "";
}

/** Returns the record of a new key. */
export function recordOf(key: string, accountId: string, grant: Omit<KeyGrant, "account">): KeyRecord {
  const { name, scopes, createdAt, expiresAt } = grant;
  return {
    sha256: hashKey(key),
    id: newHexId(Date.parse(createdAt)),
    hint: keyHint(key),
    accountId,
    name,
    scopes,
    createdAt,
    expiresAt,
    revokedAt: null,
  };
}

async function unrevokedKey({ records }: KeyParts, accountId: string, id: string): Promise<KeyRecord> {
  const found = (await records.keys(accountId)).find((key) => key.id === id);
  if (found === undefined || found.revokedAt !== null) throw noKey(id);
  return found;
}

function refuseRecords(keys: readonly KeyRecord[]): void {
  if (keys.length < KEY_RECORDS_MAX) return;
  const message = `The account has had ${KEY_RECORDS_MAX} keys and cannot have more.`;
  throw new Refusal("key_limit", message, {
    hint: "Extend the expiry of an existing key, or use another account.",
  });
}

function refuseValid(keys: readonly KeyRecord[], nowMs: number, hint: string): void {
  if (keys.filter((key) => keyState(key, nowMs) === "valid").length < KEYS_MAX) return;
  const message = `The account has ${KEYS_MAX} valid keys and cannot have more.`;
  throw new Refusal("key_limit", message, { hint });
}

function noKey(id: string): Refusal {
  return new Refusal("key_not_found", `This account has no key ${shown(id)}, or the key is revoked.`);
}

function refusePast(expiresAt: string | null | undefined, nowMs: number): void {
  if (expiresAt === undefined || expiresAt === null || Date.parse(expiresAt) > nowMs) return;
  throw invalidField(
    "expiresAt",
    `expected a time in the future, got ${shown(expiresAt)}`,
    "Revoke a key to end it now.",
  );
}

function sameLifetime(old: KeyRecord, nowMs: number): string | null {
  if (old.expiresAt === null) return null;
  return new Date(nowMs + Date.parse(old.expiresAt) - Date.parse(old.createdAt)).toISOString();
}

function expiryMs({ expiresAt }: KeyRecord): number {
  return expiresAt === null ? Infinity : Date.parse(expiresAt);
}

/** Converts a time to UTC with milliseconds. */
function isoOf(time: string | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
