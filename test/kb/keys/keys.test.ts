import { describe, expect, it } from "vitest";
import { generateKey, hashKey, KEY_PREFIX, registerKey } from "../../../src/kb/keys/keys.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";

describe("API keys", () => {
  it("generates keys of 256 random bits behind a readable prefix", () => {
    const keys = Array.from({ length: 100 }, generateKey);
    for (const key of keys) {
      expect(key).toMatch(/^kb_[A-Za-z0-9_-]{43}$/);
      expect(Buffer.from(key.slice(KEY_PREFIX.length), "base64url")).toHaveLength(32);
    }
    expect(new Set(keys).size).toBe(100);
  });

  it("stores only the hash of a key, and registering it again replaces the grant", async () => {
    const store = await openSqliteStore();
    const key = generateKey();
    const grant = { account: "local", name: "first", createdAt: new Date().toISOString(), expiresAt: null };
    await registerKey(store.records, key, { ...grant, scopes: ["read"] });
    await registerKey(store.records, key, { ...grant, scopes: ["read", "write"] });
    const record = await store.records.keyByHash(hashKey(key));
    expect(record).toMatchObject({ scopes: ["read", "write"], name: "first" });
    expect(JSON.stringify(record)).not.toContain(key);
    await store.close();
  });
});
