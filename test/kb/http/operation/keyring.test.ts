import { beforeEach, describe, expect, it } from "vitest";
import { openKeyring, type Keyring } from "../../../../src/kb/http/operation/keyring.ts";
import { hashKey } from "../../../../src/kb/keys/keys.ts";
import type { KeyRecord } from "../../../../src/kb/store/accounts.ts";

const START = Date.parse("2026-01-01T00:00:00.000Z");

let nowMs = START;
/** Records by the hash of their key. */
let known: Map<string, KeyRecord>;
let lookups: string[];
let taken: string[];
let keyring: Keyring;
beforeEach(() => {
  nowMs = START;
  [known, lookups, taken] = [new Map(), [], []];
  const keyByHash = async (sha256: string) => {
    lookups.push(sha256);
    return known.get(sha256);
  };
  keyring = openKeyring({ keyByHash }, () => nowMs, { take: (key) => void taken.push(key) });
});

const issue = (key: string, change: Partial<KeyRecord> = {}): KeyRecord => {
  const sha256 = hashKey(key);
  const record: KeyRecord = {
    id: key,
    accountId: "local",
    name: "test",
    sha256,
    hint: "kb_",
    scopes: ["read"],
    createdAt: new Date(START).toISOString(),
    expiresAt: null,
    revokedAt: null,
    ...change,
  };
  known.set(sha256, record);
  return record;
};
const check = async (key: string, scope: Parameters<Keyring["check"]>[1] = "read") =>
  keyring.check(key, scope);
const at = (ms: number): string => new Date(START + ms).toISOString();

describe("check", () => {
  it.each([
    ["no header", undefined, "key_missing"],
    ["an empty header", "", "key_missing"],
    ["several headers", ["kb_a", "kb_a"], "key_unknown"],
    ["more than 4096 characters", "x".repeat(4097), "key_unknown"],
  ])("refuses %s without a lookup", (_name, header, refusal) => {
    expect(() => keyring.check(header, "any")).toThrow(expect.objectContaining({ refusal }));
    expect(lookups).toEqual([]);
  });

  it("accepts a key of 4096 characters", async () => {
    const record = issue("x".repeat(4096));
    expect(await check(record.id)).toBe(record);
  });

  it.each<[name: string, change: Partial<KeyRecord>, refusal: string | undefined]>([
    ["a revoked key", { revokedAt: at(-1) }, "key_unknown"],
    ["a key that expires now", { expiresAt: at(0) }, "key_expired"],
    ["a key that expires in a millisecond", { expiresAt: at(1) }, undefined],
    ["a key with another scope", { scopes: ["write", "chat"] }, "scope_missing"],
    ["a key of an administrator", { scopes: ["admin"] }, undefined],
    ["a record of another hash", { sha256: hashKey("other") }, "key_unknown"],
    ["a record of a longer hash", { sha256: `${hashKey("other")}00` }, "key_unknown"],
  ])("the keyring judges %s", async (_name, change, refusal) => {
    const record = issue("kb_a", change);
    const outcome = await check("kb_a").catch((error: { refusal: string }) => error.refusal);
    expect(outcome).toEqual(refusal ?? record);
    expect(taken).toHaveLength(refusal === undefined ? 1 : 0);
  });

  it.each([
    [["write", "chat"] as const, "It has: write, chat."],
    [[], "It has: none."],
  ])("names the scopes that a key has: %j", async (scopes, hint) => {
    issue("kb_a", { scopes });
    await expect(check("kb_a")).rejects.toMatchObject({ hint });
    expect(await check("kb_a", "any")).toMatchObject({ scopes });
  });
});

describe("the cache of keys", () => {
  it.each([
    ["is used for five seconds", 4999, 1],
    ["ends after five seconds", 5000, 2],
    ["ends when the clock is set back", -1, 2],
  ])("a cached key %s", async (_name, ms, expected) => {
    issue("kb_a");
    await check("kb_a");
    nowMs += ms;
    await check("kb_a");
    expect(lookups).toHaveLength(expected);
  });

  it("answers at once, and judges a key again each time", async () => {
    const record = issue("kb_a", { expiresAt: at(100) });
    await check("kb_a");
    expect(keyring.check("kb_a", "read")).toBe(record);
    nowMs += 100;
    expect(() => keyring.check("kb_a", "read")).toThrow("expired");
  });

  it("the cache of keys is cleared by a change of a key, also for a lookup that began before", async () => {
    issue("kb_a");
    const early = check("kb_a");
    keyring.clear();
    await early;
    await check("kb_a");
    expect(lookups).toHaveLength(2);
    keyring.clear();
    await check("kb_a");
    expect(lookups).toHaveLength(3);
  });

  it("holds a thousand keys", async () => {
    for (let count = 0; count <= 1000; count++) {
      issue(`kb_${count}`);
      await check(`kb_${count}`);
      if (count === 999) await check("kb_0");
    }
    expect(lookups).toHaveLength(1001);
    await check("kb_1000");
    expect(lookups).toHaveLength(1001);
    await check("kb_0");
    expect(lookups).toHaveLength(1002);
  });

  it("names the account of a key that was checked, and of no other", async () => {
    const long = issue("x".repeat(4096), { accountId: "long" });
    issue("kb_a");
    expect(keyring.accountOf("kb_a")).toBeUndefined();
    await check("kb_a");
    await check(long.id);
    const accounts = ["kb_a", long.id, "kb_b", ["kb_a"], undefined].map((header) =>
      keyring.accountOf(header),
    );
    expect(accounts).toEqual(["local", "long", undefined, undefined, undefined]);
  });
});
