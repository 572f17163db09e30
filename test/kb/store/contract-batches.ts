import { describe, expect, it } from "vitest";
import type { NewBatch } from "../../../src/kb/store/batches.ts";
import { LATER, NOW, type StoreFixture } from "./store-fixture.ts";

/** Work on many documents. */
export function batchContract(fixture: StoreFixture): void {
  const { alone, newId } = fixture;
  const accountId = (): string => fixture.account.id;
  const batch = (id: string, resourceIds: readonly string[], more: Partial<NewBatch> = {}): NewBatch => ({
    accountId: accountId(),
    id,
    kind: "delete",
    resourceIds,
    nowIso: NOW,
    openMax: 2,
    keptMax: 1,
    ...more,
  });

  describe("a batch", () => {
    it("a batch counts what is pending and failed, until every document is settled", () =>
      alone(async ({ records }) => {
        const [id, first, second, third] = [newId(), newId(), newId(), newId()];
        await records.addBatch(batch(id, [first, second, third]));
        const [open] = await records.openBatches();
        if (open === undefined) throw new Error("the batch is not open");
        expect(open).toMatchObject({ id, accountId: accountId(), kind: "delete" });
        expect(await records.pendingItems({ ...open, limit: 2 })).toEqual([
          { position: 0, resourceId: first },
          { position: 1, resourceId: second },
        ]);
        const failure = { code: "queue_full", message: "Full." };
        const outcomes = [{ position: 0 }, { position: 1, failure }];
        // A crash may repeat it.
        for (let times = 0; times < 2; times++)
          await records.settleItems({ ...open, nowIso: LATER, outcomes });
        const at = { accountId: accountId(), id };
        expect(await records.batch(at)).toEqual({
          id,
          kind: "delete",
          isStopped: false,
          total: 3,
          pending: 1,
          failed: 1,
          createdAt: NOW,
          updatedAt: LATER,
        });
        expect(await records.batchFailures({ ...at, limit: 10 })).toEqual([
          { resourceId: second, title: null, ...failure },
        ]);
        await records.settleItems({ ...open, nowIso: LATER, outcomes: [{ position: 2 }] });
        expect(await records.openBatches()).toEqual([]);
        expect(await records.batch(at)).toMatchObject({ pending: 0, failed: 1 });
      }));

    it("a batch is stopped with what is pending, by its account alone", () =>
      alone(async ({ records }) => {
        const id = newId();
        await records.addBatch(batch(id, [newId()]));
        const [open] = await records.openBatches();
        if (open === undefined) throw new Error("the batch is not open");
        const foreign = (await records.ensureAccount(`foreign ${newId()}`)).id;
        expect(await records.stopBatch({ accountId: foreign, id, nowIso: LATER })).toBe(false);
        expect(await records.batches(foreign)).toEqual([]);
        expect(await records.stopBatch({ accountId: accountId(), id, nowIso: LATER })).toBe(true);
        expect(await records.pendingItems({ ...open, limit: 10 })).toEqual([]);
        expect(await records.openBatches()).toEqual([]);
        expect(await records.batches(accountId())).toMatchObject([{ id, isStopped: true, pending: 1 }]);
      }));

    it("a batch is refused where too many work, and forgotten when others have ended since", () =>
      alone(async ({ records }) => {
        const ids = Array.from({ length: 5 }, newId);
        for (const id of ids.slice(0, 2)) await records.addBatch(batch(id, [newId()]));
        await expect(records.addBatch(batch(newId(), [newId()]))).rejects.toMatchObject({
          code: "too_many_batches",
        });
        const foreign = (await records.ensureAccount(`foreign ${newId()}`)).id;
        await records.addBatch(batch(newId(), [newId()], { accountId: foreign }));
        for (const id of ids.slice(0, 2))
          await records.stopBatch({ accountId: accountId(), id, nowIso: LATER });
        await records.addBatch(batch(ids[2] ?? "", [newId()]));
        expect((await records.batches(accountId())).map(({ id }) => id)).toEqual([ids[2], ids[1]]);
      }));

    it("forgets a document that is erased", () =>
      alone(async ({ records }) => {
        const [id, gone, stays] = [newId(), newId(), newId()];
        await records.addBatch(batch(id, [gone, stays]));
        await records.eraseResources({
          accountId: accountId(),
          ids: [gone],
          hidesOwner: false,
          nowIso: LATER,
        });
        const [open] = await records.openBatches();
        if (open === undefined) throw new Error("the batch is not open");
        expect(await records.pendingItems({ ...open, limit: 10 })).toEqual([
          { position: 1, resourceId: stays },
        ]);
      }));
  });
}
