import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ChangesPage, DocumentChange } from "../../../src/kb/store/changes.ts";
import { LATER, NOW, type StoreFixture } from "./store-fixture.ts";

const FAR = "2026-06-01T00:00:00.000Z";

/** The feed of changes. */
export function changesContract(fixture: StoreFixture): void {
  const { create } = fixture;
  const at = (id: string) => ({ accountId: fixture.account.id, id });
  const read = (cursor?: string, limit = 100): Promise<ChangesPage | undefined> =>
    fixture.store.records.changes({ accountId: fixture.account.id, cursor, limit });
  const changes = async (cursor?: string): Promise<readonly DocumentChange[]> => {
    const page = await read(cursor);
    if (page === undefined) throw new Error("the cursor is unknown");
    return page.changes;
  };

  describe("the feed of changes", () => {
    it("the feed of changes has each change of a document in its order, with the state after it", async () => {
      const { id, collectionId } = await create("kiwi", { metadata: { path: "fruit/kiwi.md" } });
      await fixture.store.records.updateResource({ ...at(id), nowIso: LATER, title: "Fruit" }, undefined);
      await fixture.store.records.deleteResource({ ...at(id), nowIso: FAR });
      const found = await changes();
      const same = { resourceId: id, collectionId, ownerId: "ann", version: 1, path: "fruit/kiwi.md" };
      expect(found).toMatchObject([
        { ...same, kind: "created", at: NOW, revision: 1, status: "chunked" },
        { ...same, kind: "updated", at: LATER, revision: 2, status: "chunked" },
        { ...same, kind: "deleted", at: FAR, revision: 3, status: "deleted" },
      ]);
      const sha256 = createHash("sha256").update("kiwi").digest("hex");
      expect(found.map((change) => change.sha256)).toEqual([sha256, sha256, null]);
    });

    it("continues after any cursor, and has nothing after the newest", async () => {
      const empty = await fixture.store.records.newestCursor(fixture.account.id);
      expect(await read(empty)).toEqual({ changes: [], cursor: empty, more: false });
      for (const text of ["one", "two", "three"]) await create(text);
      const all = await changes(empty);
      expect(all).toHaveLength(3);
      expect(await changes()).toEqual(all);
      const [first, second, third] = all;
      expect(await read(first?.cursor, 1)).toEqual({ changes: [second], cursor: second?.cursor, more: true });
      expect(await read(second?.cursor, 1)).toEqual({ changes: [third], cursor: third?.cursor, more: false });
      expect(await fixture.store.records.newestCursor(fixture.account.id)).toBe(third?.cursor);
      expect(await changes(third?.cursor)).toEqual([]);
    });

    it("the feed of changes has the changes of its account only", async () => {
      await create("mine");
      const { id: accountId } = await fixture.store.records.ensureAccount("somebody else");
      const theirs = await create("theirs", { accountId });
      const [change, ...others] = await changes();
      expect(others).toEqual([]);
      expect(change?.resourceId).not.toBe(theirs.id);
      expect(
        await fixture.store.records.changes({ accountId, cursor: change?.cursor, limit: 1 }),
      ).toBeUndefined();
    });

    it("the feed of changes has a queued document without a text, and no change that failed", async () => {
      const resource = fixture.resource("later");
      const job = { body: "{}", fileToken: null, nowMs: 0, jobsMax: 1, charsMax: 100 };
      await fixture.store.records.enqueueCreate(resource, job);
      await expect(fixture.store.records.enqueueCreate(fixture.resource("full"), job)).rejects.toMatchObject({
        code: "queue_full",
      });
      expect(await changes()).toMatchObject([
        { kind: "created", resourceId: resource.id, status: "queued", version: 0, sha256: null, path: null },
      ]);
    });

    it("refuses a cursor whose next changes were purged, or that another store made", () =>
      fixture.alone(async (store) => {
        const { id: accountId } = await store.records.ensureAccount("local");
        const beforeAll = await store.records.newestCursor(accountId);
        for (const createdAt of [NOW, LATER, FAR]) await create("text", { accountId, createdAt });
        const page = await store.records.changes({ accountId, cursor: undefined, limit: 3 });
        const [first, second, third] = page?.changes ?? [];
        const after = (cursor: string | undefined) => store.records.changes({ accountId, cursor, limit: 3 });
        expect(await store.records.purgeChanges(LATER, 10)).toBe(1);
        expect(await after(beforeAll)).toBeUndefined();
        expect(await after(first?.cursor)).toBeUndefined();
        expect(await after(undefined)).toMatchObject({ changes: [second, third] });
        expect(await after(second?.cursor)).toMatchObject({ changes: [third] });
        expect(await after(`${third?.cursor}0`)).toBeUndefined();
        for (const invented of ["3", "3-000000000000", "-1", "x", "9e99", "NaN"])
          expect(await after(invented)).toBeUndefined();
      }));

    it("the feed of changes has neither path nor digest of an erased document, and no cursor changes", async () => {
      const { id } = await create("kiwi", { metadata: { path: "fruit/kiwi.md" } });
      const before = await changes();
      const { id: accountId } = fixture.account;
      await fixture.store.records.eraseResources({ accountId, ids: [id], hidesOwner: true, nowIso: LATER });
      const after = await changes();
      const erased = { resourceId: id, path: null, sha256: null, ownerId: "" };
      expect(after).toMatchObject([
        { ...erased, kind: "created", cursor: before[0]?.cursor },
        { ...erased, kind: "deleted" },
      ]);
    });

    it("keeps the newest change of each account, where a reader is that has read everything", () =>
      fixture.alone(async (store) => {
        const { id: accountId } = await store.records.ensureAccount("local");
        for (const text of ["one", "two"]) await create(text, { accountId });
        const newest = await store.records.newestCursor(accountId);
        expect(await store.records.purgeChanges("9", 1)).toBe(1);
        expect(await store.records.purgeChanges("9", 1)).toBe(0);
        expect(await store.records.changes({ accountId, cursor: newest, limit: 1 })).toMatchObject({
          changes: [],
        });
        await create("three", { accountId });
        const later = await store.records.changes({ accountId, cursor: newest, limit: 9 });
        expect(later?.changes).toHaveLength(1);
      }));
  });
}
