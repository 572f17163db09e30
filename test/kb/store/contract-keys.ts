import { describe, expect, it } from "vitest";
import type { KeyRecord, SessionRecord } from "../../../src/kb/store/accounts.ts";
import { LATER, NOW, type StoreFixture } from "./store-fixture.ts";

/** Keys and sessions. */
export function keysContract(fixture: StoreFixture): void {
  const record = (change: Partial<KeyRecord> = {}): KeyRecord => {
    const id = fixture.newId();
    return {
      sha256: id.padStart(64, "0"),
      id,
      hint: "kb_abcde",
      accountId: fixture.account.id,
      name: "a key",
      scopes: ["read"],
      createdAt: NOW,
      expiresAt: null,
      revokedAt: null,
      ...change,
    };
  };
  const put = async (change?: Partial<KeyRecord>): Promise<KeyRecord> => {
    const key = record(change);
    await fixture.store.records.putKey(key);
    return key;
  };

  describe("keys", () => {
    it("lists the keys of an account oldest first, and no others", async () => {
      const other = await fixture.store.records.ensureAccount("another account of keys");
      const late = await put({ createdAt: LATER });
      const early = await put();
      await put({ accountId: other.id });
      expect(await fixture.store.records.keys(fixture.account.id)).toEqual([early, late]);
      expect(await fixture.store.records.keys("0".repeat(24))).toEqual([]);
    });

    it("changes the given fields of a key and leaves the others as they are", async () => {
      const key = await put();
      const at = { accountId: key.accountId, id: key.id };
      const changed = { ...key, expiresAt: LATER };
      expect(await fixture.store.records.changeKey({ ...at, expiresAt: LATER })).toEqual(changed);
      expect(await fixture.store.records.keyByHash(key.sha256)).toEqual(changed);
      expect(await fixture.store.records.changeKey({ ...at, expiresAt: null })).toMatchObject({
        expiresAt: null,
      });
    });

    it("finds no keys of another account", async () => {
      const key = await put();
      const other = await fixture.store.records.ensureAccount("another account of keys");
      expect(
        await fixture.store.records.changeKey({ accountId: other.id, id: key.id, expiresAt: null }),
      ).toBeUndefined();
      expect(
        await fixture.store.records.changeKey({ accountId: key.accountId, id: "0".repeat(24) }),
      ).toBeUndefined();
      expect(await fixture.store.records.keyByHash(key.sha256)).toEqual(key);
    });

    it("leaves a revoked key revoked, with its id, when it is put again", async () => {
      const key = await put();
      const at = { accountId: key.accountId, id: key.id };
      await fixture.store.records.changeKey({ ...at, revokedAt: NOW });
      await fixture.store.records.changeKey({ ...at, revokedAt: LATER });
      await fixture.store.records.putKey({ ...key, id: fixture.newId(), name: "again" });
      expect(await fixture.store.records.keyByHash(key.sha256)).toEqual({
        ...key,
        name: "again",
        revokedAt: NOW,
      });
    });

    it("lists accounts by name", async () => {
      await fixture.store.records.ensureAccount("zebra");
      await fixture.store.records.ensureAccount("aardvark");
      const names = (await fixture.store.records.accounts()).map(({ name }) => name);
      expect(names).toEqual(names.toSorted());
      expect(names).toEqual(expect.arrayContaining(["aardvark", "zebra", fixture.account.name]));
    });
  });

  describe("a session", () => {
    const nowMs = Date.parse(NOW);
    const session = (keySha256: string, expiresMs: number): SessionRecord => ({
      sha256: fixture.newId().padStart(64, "5"),
      keySha256,
      kind: "session",
      expiresMs,
    });

    it("a session is found by its hash until it is taken, which succeeds once", async () => {
      const { sha256 } = await put();
      const one = session(sha256, nowMs + 1000);
      await fixture.store.records.putSession(one, nowMs);
      expect(await fixture.store.records.session(one.sha256)).toEqual(one);
      const later = { ...one, expiresMs: nowMs + 2000 };
      await fixture.store.records.putSession(later, nowMs);
      const taken = await Promise.all([1, 2].map(() => fixture.store.records.takeSession(one.sha256)));
      expect(taken.filter((each) => each !== undefined)).toEqual([later]);
      expect(await fixture.store.records.session(one.sha256)).toBeUndefined();
    });

    it("a session is removed when another one is stored after its end", async () => {
      const { sha256 } = await put();
      const [ended, live] = [session(sha256, nowMs + 1000), session(sha256, nowMs + 9000)];
      await fixture.store.records.putSession(ended, nowMs);
      await fixture.store.records.putSession(live, nowMs + 1000);
      expect(await fixture.store.records.session(ended.sha256)).toBeUndefined();
      expect(await fixture.store.records.session(live.sha256)).toEqual(live);
    });

    it("a session is evicted first of a thousand if it ends first", async () => {
      const { sha256 } = await put();
      const laterMs = Date.parse(LATER); // when the sessions of the other tests have ended
      const first = session(sha256, laterMs + 1);
      await fixture.store.records.putSession(first, laterMs);
      const others = Array.from({ length: 1000 }, () => session(sha256, laterMs + 5000));
      await Promise.all(others.map((each) => fixture.store.records.putSession(each, laterMs)));
      expect(await fixture.store.records.session(first.sha256)).toBeUndefined();
      expect(await fixture.store.records.session(others[0]?.sha256 ?? "")).toEqual(others[0]);
      await fixture.store.records.putSession(first, laterMs + 5000);
    });
  });
}
