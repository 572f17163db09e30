import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { openSharedTurns, type SharedTurns } from "../../../../../src/kb/queue/shared-turns.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { DEFAULT_RETENTION, openHousekeeping } from "../../../../../src/kb/resources/housekeeping.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";

describe.skipIf(isSkipped())("turns of two processes", () => {
  let url: string;
  const stores: Store[] = [];
  const turns: SharedTurns[] = [];
  beforeAll(async () => {
    url = await newDatabase();
    for (const holder of ["one", "other"]) {
      const store = await openPostgresStore(url);
      stores.push(store);
      turns.push(openSharedTurns(store.claims, holder, () => expect.unreachable()));
    }
  });
  afterAll(async () => {
    for (const each of turns) await each.close();
    for (const store of stores) await store.close();
  });
  const turnsOf = (at: number): SharedTurns => turns[at % 2] ?? expect.unreachable();
  const wait = { waitMs: 10_000, busy: () => new Error("busy") };

  it("turns of two processes come one after another for one name, and together for others", async () => {
    const running = new Map<string, number>();
    let together = 0;
    await Promise.all(
      Array.from({ length: 60 }, (_, at) => {
        // Of one process, no two under one name at a time: the caller's business.
        const name = `name ${at >> 1}`;
        return turnsOf(at).run(name, wait, async () => {
          expect(running.get(name)).toBeUndefined();
          running.set(name, 1);
          together = Math.max(together, running.size);
          await new Promise((resolve) => setTimeout(resolve, 10));
          running.delete(name);
        });
      }),
    );
    expect(together).toBeGreaterThan(10);
  });

  it("turns of two processes wait up to a bound, and end with their signal", async () => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const first = turnsOf(0).run("held", wait, () => promise);
    await vi.waitFor(async () =>
      expect(await turnsOf(1).runIfFree("held", async () => undefined)).toBe(false),
    );
    await expect(turnsOf(1).run("held", { ...wait, waitMs: 100 }, async () => 1)).rejects.toThrow("busy");
    const stop = AbortSignal.timeout(50);
    await expect(turnsOf(1).run("held", { ...wait, signal: stop }, async () => 1)).rejects.toThrow(/abort/i);
    resolve(undefined);
    await first;
    expect(await turnsOf(1).run("held", wait, async () => "free")).toBe("free");
  });

  it("turns fail with their work, and leave the name free", async () => {
    await expect(turnsOf(0).run("failing", wait, () => Promise.reject(new Error("no")))).rejects.toThrow(
      "no",
    );
    expect(await turnsOf(1).run("failing", wait, async () => "free")).toBe("free");
  });

  it("turns of two processes are not taken back by a late release of the holder before", async () => {
    for (let round = 0; round < 30; round += 1) {
      await turnsOf(0).run("again", wait, async () => undefined);
      // The release of the first turn is on its way.
      await turnsOf(0).run("again", wait, async () => {
        expect(await turnsOf(1).runIfFree("again", async () => undefined)).toBe(false);
      });
    }
  });

  it("pass to others when a process has crashed, whose claims a sweep removes", async () => {
    await stores[0]?.claims?.take(["crashed", "gone"], "a process that crashed", 100);
    expect(await turnsOf(1).run("crashed", wait, async () => "taken over")).toBe("taken over");
    await query(url, "UPDATE claim SET ends_at = now() WHERE name = 'gone'");
    expect(await turnsOf(0).sweep(10)).toBeGreaterThanOrEqual(1);
  });

  it("turns let one process at a time do the housekeeping", async () => {
    const begun = Promise.withResolvers<undefined>();
    const mayEnd = Promise.withResolvers<undefined>();
    const swept: number[] = [];
    const housekeepingOf = (
      at: number,
      sweepAnswers: () => Promise<number>,
      recover: () => Promise<number>,
    ) => {
      const store = stores[at];
      assert(store !== undefined);
      return openHousekeeping({
        records: { ...store.records, sweepAnswers },
        queue: store.queue,
        files: { remove: () => expect.unreachable(), recover },
        turns: turnsOf(at),
        retention: DEFAULT_RETENTION,
        nowMs: Date.now,
        onSwept: () => void swept.push(at),
        onProblem: (error) => expect.unreachable(String(error)),
      });
    };
    const first = housekeepingOf(
      0,
      async () => {
        begun.resolve(undefined);
        await mayEnd.promise;
        return 0;
      },
      async () => 0,
    );
    const recovered = Promise.withResolvers<undefined>();
    const second = housekeepingOf(
      1,
      () => expect.unreachable(),
      async () => {
        recovered.resolve(undefined);
        return 0;
      },
    );
    first.start();
    await begun.promise;
    second.start();
    await recovered.promise;
    mayEnd.resolve(undefined);
    await vi.waitFor(() => expect(swept).toEqual([0]), { timeout: 20_000 });
    await first.close();
    await second.close();
  });
});
