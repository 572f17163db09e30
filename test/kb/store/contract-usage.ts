import { describe, expect, it } from "vitest";
import type { StoreFixture } from "./store-fixture.ts";

/** What accounts used, by hour. */
export function usageContract(fixture: StoreFixture): void {
  describe("usage by hour", () => {
    it("adds searches, keeps the largest queue and the latest number of documents of an hour", () =>
      fixture.alone(async ({ records }) => {
        const at = { accountId: fixture.account.id, hour: 100 };
        await records.addUsage({ ...at, documents: 3, queued: 9, searches: [1, 0, 2] });
        await records.addUsage({ ...at, documents: 5, queued: 2, searches: [1, 1] });
        await records.addUsage({ ...at, hour: 98, documents: 1, queued: 0, searches: [] });
        const hour = { hour: 100, documents: 5, queued: 9, searches: [2, 1, 2] };
        expect(await records.usage({ accountId: at.accountId, fromHour: 100 })).toEqual([
          { hour: 98, documents: 1, queued: 0, searches: [] },
          hour,
        ]);
        const other = await records.ensureAccount("another");
        expect(await records.usage({ accountId: other.id, fromHour: 0 })).toEqual([]);
      }));

    it("purges old hours, but not the newest of an account, which says how many documents there are", () =>
      fixture.alone(async ({ records }) => {
        const accountId = fixture.account.id;
        for (const hour of [1, 2, 3])
          await records.addUsage({ accountId, hour, documents: hour, queued: 0, searches: [] });
        expect(await records.purgeUsage(10, 1)).toBe(1);
        expect(await records.purgeUsage(10, 500)).toBe(1);
        expect(await records.purgeUsage(10, 500)).toBe(0);
        expect((await records.usage({ accountId, fromHour: 0 })).map(({ hour }) => hour)).toEqual([3]);
      }));

    it("sums what models cost by day", () =>
      fixture.alone(async ({ records }) => {
        const call = { nanos: 5, dayMax: null, monthMax: null };
        await records.spend({ ...call, spender: "embedding", day: "2026-11-23" });
        await records.spend({ ...call, spender: "embedding", day: "2026-11-24" });
        await records.spend({ ...call, spender: "chat", day: "2026-11-24" });
        const since = { accountId: undefined, fromDay: "2026-11-24" };
        expect(await records.spendingSince(since)).toEqual([{ day: "2026-11-24", nanos: 10 }]);
      }));

    it("sums what models cost by account, after a call was settled", () =>
      fixture.alone(async ({ records }) => {
        const accountId = fixture.account.id;
        const other = (await records.ensureAccount("another")).id;
        const call = { spender: "chat", day: "2026-11-24", nanos: 5 } as const;
        const limits = { dayMax: 12, monthMax: null };
        await records.spend({ ...call, ...limits, accountId });
        await records.spend({ ...call, ...limits, accountId: other });
        expect(await records.spend({ ...call, ...limits, accountId })).toMatchObject({ isGranted: false });
        await records.settleSpending({ ...call, accountId, nanos: -2 });
        const sums = async (account: string | undefined): Promise<number | undefined> =>
          (await records.spendingSince({ accountId: account, fromDay: "2026-11-01" }))[0]?.nanos;
        expect([await sums(accountId), await sums(other), await sums(undefined)]).toEqual([3, 5, 8]);
      }));
  });
}
