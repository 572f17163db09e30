import { hash, randomBytes } from "node:crypto";
import { newHexId } from "../../lib/ids.ts";
import type { KeyBody, KeyChangeBody, KeyRecordAnswer, RotateBody } from "../../wire/key.ts";
import type { Store } from "../store/store.ts";
import type { KeyRecord, KeyScope } from "../store/records.ts";
import { invalidField, Refusal, shown } from "../resources/refusal.ts";

/** Every key begins so; secret scanners and people recognise it. */
export const KEY_PREFIX = "kb_";
/** The account of the embedded service. */
export const LOCAL_ACCOUNT = "local";
/** Name of the key in the state folder, by which the embedded service and the commands reach each other. */
export const OWN_KEY_NAME = "state folder";
export const ALL_SCOPES: readonly KeyScope[] = ["read", "write", "chat", "admin"];
/** Keys of an account that are neither revoked nor expired. One for each program and person that needs its own. */
export const KEYS_MAX = 1000;
/** Keys of an account with those that are over, which stay on record: a rotation a day fills it in 27 years. */
export const KEY_RECORDS_MAX = 10_000;
/** The prefix and 30 of the 256 bits: enough to tell keys apart, far too few to guess the rest by. */
const HINT_CHARS = KEY_PREFIX.length + 5;

/** A new key: the prefix and 256 random bits in base64url, 46 characters. */
export function generateKey(): string {
  return KEY_PREFIX + randomBytes(32).toString("base64url");
}

/** SHA-256 in 64 hex digits: the only form in which a key is stored. Its 256 random bits make salt and stretching needless. */
export function hashKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** What a key may do and for whom. */
export interface KeyGrant {
  /** Made when it is new. */
  readonly account: string;
  /** For people, in lists. */
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** Makes the account and stores the hash of `key` for it. Doing so again with the same key replaces the grant. */
export async function registerKey(store: Store, key: string, grant: KeyGrant): Promise<KeyRecord> {
  const account = await store.ensureAccount(grant.account);
  const record = recordOf(key, account.id, grant);
  await store.putKey(record);
  // A key put before keeps its id, and stays revoked when it was.
  return (await store.keyByHash(record.sha256)) ?? record;
}

/** Where keys are kept, and the clock they expire by. */
export interface KeyDesk {
  readonly store: Store;
  readonly nowMs: () => number;
}

/** A key just made, the only time it is seen. */
export interface NewKey {
  readonly key: string;
  readonly record: KeyRecord;
}

/** Makes a key for the account. Throws `key_limit`, and `invalid_field` for a time that is over. */
export async function createKey(desk: KeyDesk, accountId: string, body: KeyBody): Promise<NewKey> {
  const { store, nowMs } = desk;
  const now = nowMs();
  refusePast(body.expiresAt, now);
  const keys = await store.keys(accountId);
  refuseRecords(keys);
  refuseValid(keys, now, "Revoke those that nobody uses.");
  return putNew(desk, accountId, {
    name: body.name.toWellFormed(),
    scopes: body.scopes,
    expiresAt: body.expiresAt ?? null,
  });
}

/** All keys of the account, oldest first. */
export function listKeys({ store }: KeyDesk, accountId: string): Promise<readonly KeyRecord[]> {
  return store.keys(accountId);
}

/** Changes name, scopes or expiry. Throws `key_not_found`; a revoked key is changed no more. */
export async function changeKey(
  desk: KeyDesk,
  accountId: string,
  id: string,
  body: KeyChangeBody,
): Promise<KeyRecord> {
  if (Object.values(body).every((value) => value === undefined)) {
    throw new Refusal("invalid_body", "The body names nothing to change.", {
      hint: "Send at least one of name, scopes and expiresAt.",
    });
  }
  refusePast(body.expiresAt, desk.nowMs());
  await liveKey(desk, accountId, id);
  const { name, scopes, expiresAt } = body;
  const changed = await desk.store.changeKey({
    accountId,
    id,
    ...(name === undefined ? {} : { name: name.toWellFormed() }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(expiresAt === undefined ? {} : { expiresAt: isoOf(expiresAt) }),
  });
  if (changed === undefined) throw noKey(id);
  return changed;
}

/** Ends a key for good; its record stays. Throws `key_not_found`, also for one that is revoked already. */
export async function revokeKey(desk: KeyDesk, accountId: string, id: string): Promise<KeyRecord> {
  await liveKey(desk, accountId, id);
  const revokedAt = new Date(desk.nowMs()).toISOString();
  const revoked = await desk.store.changeKey({ accountId, id, revokedAt });
  if (revoked === undefined) throw noKey(id);
  return revoked;
}

/**
 * Makes a key in place of another one, which works on for the overlap and no longer than it would have. Throws
 * `key_not_found`, also for a revoked one, and `key_limit`. A crash in between leaves both, the new one unknown to everybody.
 */
export async function rotateKey(
  desk: KeyDesk,
  accountId: string,
  id: string,
  body: RotateBody,
): Promise<NewKey & { readonly previous: KeyRecord }> {
  const now = desk.nowMs();
  refusePast(body.expiresAt, now);
  const old = await liveKey(desk, accountId, id);
  const keys = await desk.store.keys(accountId);
  refuseRecords(keys);
  // A key that ends at once makes room for the one in its place: whoever has too many can replace one that leaked.
  const staying = body.overlapSeconds === 0 ? keys.filter((key) => key.id !== id) : keys;
  refuseValid(
    staying,
    now,
    "Send overlapSeconds 0 to end the old key at once, or revoke those that nobody uses.",
  );
  const expiresAt = body.expiresAt === undefined ? sameLifetime(old, now) : body.expiresAt;
  const made = await putNew(desk, accountId, { name: old.name, scopes: old.scopes, expiresAt });
  const endMs = Math.min(now + body.overlapSeconds * 1000, expiryMs(old));
  const previous = await desk.store.changeKey({ accountId, id, expiresAt: new Date(endMs).toISOString() });
  if (previous === undefined) throw noKey(id);
  return { ...made, previous };
}

/** A key as the wire writes it. */
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

/** What a key is good for at this moment. */
export function keyState(record: KeyRecord, nowMs: number): KeyRecordAnswer["state"] {
  if (record.revokedAt !== null) return "revoked";
  return expiryMs(record) <= nowMs ? "expired" : "valid";
}

async function putNew(
  { store, nowMs }: KeyDesk,
  accountId: string,
  grant: Pick<KeyGrant, "name" | "scopes" | "expiresAt">,
): Promise<NewKey> {
  const key = generateKey();
  const createdAt = new Date(nowMs()).toISOString();
  const record = recordOf(key, accountId, { ...grant, expiresAt: isoOf(grant.expiresAt), createdAt });
  await store.putKey(record);
  return { key, record };
}

function recordOf(key: string, accountId: string, grant: Omit<KeyGrant, "account">): KeyRecord {
  const { name, scopes, createdAt, expiresAt } = grant;
  return {
    sha256: hashKey(key),
    id: newHexId(Date.parse(createdAt)),
    hint: key.startsWith(KEY_PREFIX) ? key.slice(0, HINT_CHARS) : "",
    accountId,
    name,
    scopes,
    createdAt,
    expiresAt,
    revokedAt: null,
  };
}

async function liveKey({ store }: KeyDesk, accountId: string, id: string): Promise<KeyRecord> {
  const found = (await store.keys(accountId)).find((key) => key.id === id);
  if (found === undefined || found.revokedAt !== null) throw noKey(id);
  return found;
}

function refuseRecords(keys: readonly KeyRecord[]): void {
  if (keys.length < KEY_RECORDS_MAX) return;
  const words = `The account has had ${KEY_RECORDS_MAX} keys, and can have no more.`;
  throw new Refusal("key_limit", words, {
    hint: "Give a key that is there a later end, or use another account.",
  });
}

function refuseValid(keys: readonly KeyRecord[], nowMs: number, hint: string): void {
  if (keys.filter((key) => keyState(key, nowMs) === "valid").length < KEYS_MAX) return;
  const words = `The account has ${KEYS_MAX} valid keys, and may have no more.`;
  throw new Refusal("key_limit", words, { hint });
}

function noKey(id: string): Refusal {
  return new Refusal("key_not_found", `There is no key ${shown(id)} in this account, or it is revoked.`);
}

function refusePast(expiresAt: string | null | undefined, nowMs: number): void {
  if (expiresAt === undefined || expiresAt === null || Date.parse(expiresAt) > nowMs) return;
  throw invalidField(
    "expiresAt",
    `expected a time to come, got ${shown(expiresAt)}`,
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

/** In UTC with milliseconds, however it was written. */
function isoOf(time: string | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
