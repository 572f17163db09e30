import { afterEach, describe, expect, it, vi } from "vitest";
import { openSharedClock } from "../../../../../src/kb/queue/shared-clock.ts";
import { LEASE_MS } from "../../../../../src/kb/queue/queue.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { hashedEmbedder } from "../../../../fakes/hashed-embedder.ts";
import { WAIT } from "../../../../wait.ts";
import { createBody, openRunning } from "../../../service/running.ts";
import { isSkipped, newDatabase } from "../databases.ts";
import { openServices } from "./services.ts";
import { lackingChunks } from "../../embedded.ts";

describe.skipIf(isSkipped())("two processes with one embedding model", () => {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of open.splice(0)) await each.close();
  });

  it("make each missing vector once", async () => {
    const real = hashedEmbedder();
    const failing = await openServices(1, {
      openEmbedder: () =>
        Promise.resolve({
          ...real,
          embed: () => Promise.reject(new Error("the model fails")),
          close: () => Promise.resolve(),
        }),
    });
    open.push(failing);
    for (let at = 0; at < 80; at += 1) {
      const content = `Words of document ${at}.`;
      const body = createBody({ title: `Title ${at}`, content, collection_details: "moderate" });
      expect((await failing.send(0, "POST", "/api/rag/resource", { body })).status).toBe(201);
    }
    const texts: string[] = [];
    for (let at = 0; at < 2; at += 1) {
      const openEmbedder = () =>
        Promise.resolve({
          ...real,
          embed: async (...given: Parameters<typeof real.embed>) => {
            texts.push(...given[0].map((each) => JSON.stringify(each)));
            // So that both work at a time, if they do.
            await new Promise((resolve) => setTimeout(resolve, 50));
            return real.embed(...given);
          },
          close: () => Promise.resolve(),
        });
      open.push(
        await openRunning({ store: await openPostgresStore(failing.url), sharesStore: true, openEmbedder }),
      );
    }
    await vi.waitFor(async () => {
      const { index } = failing.store(0);
      expect(await lackingChunks(index, real.fingerprint, { tiers: ["moderate"] })).toEqual([]);
    }, WAIT);
    expect(texts).toHaveLength(80);
    expect(new Set(texts).size).toBe(80);
  });
});

const missing = (): Promise<number> => Promise.reject(new Error("the store has no clock"));

describe.skipIf(isSkipped())("two processes whose clocks are ten minutes apart", () => {
  it("agree when a lease ends", async () => {
    const url = await newDatabase();
    const stores = [await openPostgresStore(url), await openPostgresStore(url)] as const;
    const clocks = await Promise.all(
      stores.map(({ clockMs }, at) =>
        openSharedClock(clockMs ?? missing, () => expect.unreachable(), {
          wall: () => Date.now() + at * 600_000,
          elapsed: () => performance.now(),
        }),
      ),
    );
    const nowOf = (at: number): number => Math.floor(clocks[at]?.nowMs() ?? NaN);
    expect(Math.abs(nowOf(0) - nowOf(1))).toBeLessThan(LEASE_MS / 10);
    const { id: accountId } = await stores[0].records.ensureAccount("local");
    const job = { queue: "ingest", accountId, line: "a", name: "a", body: "{}", jobsMax: 10 } as const;
    await stores[0].queue.put({ ...job, nowMs: nowOf(0) });
    const [put] = await stores[1].queue.due({ queue: "ingest", nowMs: nowOf(1), perLine: 1 });
    const number = put?.number ?? NaN;
    expect(await stores[0].queue.lease({ number, worker: "one", nowMs: nowOf(0) })).toBeDefined();
    expect(await stores[1].queue.lease({ number, worker: "other", nowMs: nowOf(1) })).toBeUndefined();
    for (const clock of clocks) clock.close();
    for (const store of stores) await store.close();
  });
});
