import { describe, expect, it } from "vitest";
import type { Scope, Unfinished, UnfinishedQuery } from "../../../src/kb/store/search-index.ts";
import { NOW, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";
import { updateEmbedded, type Embedded, lackingChunks } from "./embedded.ts";

const MODERATE = { tier: "moderate" } as const;
const BY_M1 = { fingerprint: "m1" };

/** What is not searchable yet. */
export function unfinishedContract(fixture: StoreFixture): void {
  const { create, resource, scope, newId } = fixture;
  const embedded = (content: string): Embedded => ({
    ...wordsOnly(content),
    vectors: wordsOnly(content).spans.map(() => unit([1, 0])),
    fingerprint: "m1",
  });
  const read = (within: Scope, vectors: UnfinishedQuery["vectors"] = BY_M1): Promise<Unfinished> =>
    fixture.store.index.unfinished({ scope: within, vectors });
  const enqueue = async (ownerId = "ann") => {
    const job = { body: '{"update":{}}', nowMs: Date.parse(NOW), jobsMax: 100 };
    return fixture.store.records.enqueueCreate(resource("", { ownerId }), job);
  };
  const lease = async (id: string) => {
    const { queue } = fixture.store;
    const first = await queue.change({ accountId: fixture.account.id, id, nowMs: Date.parse(NOW) });
    const leased =
      first && (await queue.lease({ number: first.number, worker: "w", nowMs: Date.parse(NOW) }));
    if (leased === undefined) throw new Error("there is no job");
    return leased;
  };

  describe("what is unfinished in a scope", () => {
    it("counts documents that wait and documents that failed, of one owner alone", async () => {
      await create("done");
      await enqueue();
      const failed = await enqueue();
      await enqueue("bob");
      await fixture.store.records.failJob(
        await lease(failed.id),
        { code: "extraction_failed", message: "unreadable" },
        NOW,
      );
      expect(await read(await scope(), "none")).toMatchObject({ waiting: 1, failed: 1, withoutVectors: 0 });
      expect(await read({ accountId: fixture.account.id, resourceId: failed.id })).toMatchObject({
        waiting: 0,
        failed: 1,
      });
      expect(await read({ ...(await scope()), accountId: "f".repeat(24) })).toMatchObject({
        waiting: 0,
        failed: 0,
      });
    });

    it("distinguishes jobs from before a moment from later ones", async () => {
      const first = await enqueue();
      const { lastJob } = await read(await scope());
      await enqueue();
      const ask = { vectors: "none", upToJob: lastJob } as const;
      const within = await scope();
      expect(await fixture.store.index.unfinished({ ...ask, scope: within })).toMatchObject({
        waiting: 2,
        isOlderWaiting: true,
      });
      await fixture.store.queue.complete(await lease(first.id));
      expect((await fixture.store.index.unfinished({ ...ask, scope: within })).isOlderWaiting).toBe(false);
      expect((await read(within, "none")).isOlderWaiting).toBe(false);
    });

    it("counts the chunks that lack a vector of the model, and those whose title changed since", async () => {
      const within = await scope("ann", "moderate");
      const one = await create("a\n\nb", MODERATE, embedded("a\n\nb"));
      expect((await read(within)).withoutVectors).toBe(0);
      await create("c\n\nd\n\ne", MODERATE);
      expect((await read(within)).withoutVectors).toBe(3);
      const lacking = await lackingChunks(fixture.store.index, "m1", { tiers: ["moderate"] });
      const ours = lacking.filter(({ text }) => ["c", "d"].includes(text));
      await fixture.store.index.putVectors(
        "m1",
        ours.map(({ ref }) => ({ ref, vector: unit([0, 1]) })),
      );
      expect((await read(within)).withoutVectors).toBe(1);
      const at = { accountId: fixture.account.id, id: one.id };
      await fixture.store.records.updateResource({ ...at, title: "New", nowIso: NOW }, undefined);
      expect((await read(within)).withoutVectors).toBe(3);
      const { accountId } = at;
      expect((await read({ accountId, resourceId: one.id })).withoutVectors).toBe(2);
      expect((await read(within, "no-model")).withoutVectors).toBe(5);
      expect((await read(within, { fingerprint: "unknown" })).withoutVectors).toBe(5);
      expect((await read(within, "none")).withoutVectors).toBe(0);
    });

    it("forgets chunks that were replaced, and finds those that replaced them", async () => {
      const within = await scope("ann", "moderate");
      const one = await create("a\n\nb", MODERATE);
      expect((await read(within)).withoutVectors).toBe(2);
      const at = { accountId: fixture.account.id, id: one.id, nowIso: NOW };
      await fixture.store.records.updateResource({ ...at, content: "c" }, wordsOnly("c"));
      expect((await read(within)).withoutVectors).toBe(1);
      await updateEmbedded(fixture.store, { ...at, content: "d" }, embedded("d"));
      expect((await read(within)).withoutVectors).toBe(0);
      await fixture.store.records.deleteResource(at);
      expect((await read(within)).withoutVectors).toBe(0);
    });

    it("stops counting chunks at a thousand, and goes on when some are done", async () => {
      const text = Array.from({ length: 1500 }, (_, at) => `chunk ${at}`).join("\n\n");
      const within = await scope(newId(), "moderate");
      if ("resourceId" in within) throw new Error("a scope of an owner");
      const { ownerId } = within;
      const done = Array.from({ length: 5000 }, (_, at) => `done ${at}`).join("\n\n");
      await create(done, { ...MODERATE, ownerId }, embedded(done));
      await create(text, { ...MODERATE, ownerId });
      expect((await read(within)).withoutVectors).toBe(1000);
      const put = async (limit: number): Promise<void> => {
        const lacking = await lackingChunks(fixture.store.index, "m1", { tiers: ["moderate"] });
        const ours = lacking.filter((each) => each.text.startsWith("chunk ")).slice(0, limit);
        const vectors = ours.map(({ ref }) => ({ ref, vector: unit([0, 1]) }));
        await fixture.store.index.putVectors("m1", vectors);
      };
      await put(1000);
      expect((await read(within)).withoutVectors).toBe(500);
      await put(500);
      expect((await read(within)).withoutVectors).toBe(0);
    });
  });
}
