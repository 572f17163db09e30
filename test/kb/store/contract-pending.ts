import { describe, expect, it } from "vitest";
import type { Pending } from "../../../src/wire/search.ts";
import { PENDING_CHUNKS_MAX, type Scope } from "../../../src/kb/store/search-index.ts";
import { updateEmbedded, type Embedded, lackingChunks } from "./embedded.ts";
import { NOW, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";

const MODERATE = { tier: "moderate" } as const;

/** The documents of a scope that wait. */
export function pendingContract(fixture: StoreFixture): void {
  const { create, resource, scope, newId } = fixture;
  const embedded = (content: string): Embedded => ({
    ...wordsOnly(content),
    vectors: wordsOnly(content).spans.map(() => unit([1, 0])),
    fingerprint: "m1",
  });
  const read = (within: Scope, fingerprint: string | undefined = "m1"): Promise<Pending> =>
    fixture.store.index.pending({ scope: within, fingerprint });
  const embeds = async (within: Scope): Promise<number> => (await read(within)).embed;
  const enqueue = async (ownerId = "ann") => {
    const job = { body: '{"update":{}}', nowMs: Date.parse(NOW), jobsMax: 100 };
    return fixture.store.records.enqueueCreate(resource("", { ownerId }), job);
  };
  const embed = async (starts: string, limit = Infinity): Promise<void> => {
    const lacking = await lackingChunks(fixture.store.index, "m1", { tiers: ["moderate"] });
    const ours = lacking.filter((each) => each.text.startsWith(starts)).slice(0, limit);
    const vectors = ours.map(({ ref }) => ({ ref, vector: unit([0, 1]) }));
    await fixture.store.index.putVectors("m1", vectors);
  };

  describe("what waits in a scope", () => {
    it("counts documents that wait to be read, of one owner alone, and none that failed", async () => {
      await create("done");
      const waiting = await enqueue();
      const failed = await enqueue();
      await enqueue("bob");
      const { queue, records } = fixture.store;
      const accountId = fixture.account.id;
      const first = await queue.change({ accountId, id: failed.id, nowMs: Date.parse(NOW) });
      const leased =
        first && (await queue.lease({ number: first.number, worker: "w", nowMs: Date.parse(NOW) }));
      if (leased === undefined) throw new Error("there is no job");
      await records.failJob(leased, { code: "extraction_failed", message: "unreadable" }, NOW);
      const within = await scope();
      expect(await fixture.store.index.pending({ scope: within, fingerprint: undefined })).toEqual({
        read: 1,
        embed: 0,
      });
      expect((await read({ accountId, resourceId: waiting.id })).read).toBe(1);
      expect((await read({ accountId, resourceId: failed.id })).read).toBe(0);
      expect(await read({ ...within, accountId: "f".repeat(24) })).toEqual({ read: 0, embed: 0 });
    });

    it("counts documents that lack a vector of the model, and those whose title changed since", async () => {
      const within = await scope("ann", "moderate");
      const one = await create("a\n\nb", MODERATE, embedded("a\n\nb"));
      expect(await embeds(within)).toBe(0);
      const two = await create("c\n\nd\n\ne", MODERATE);
      await create("f", MODERATE);
      expect(await embeds(within)).toBe(2);
      await embed("c");
      await embed("f");
      expect(await embeds(within)).toBe(1);
      const at = { accountId: fixture.account.id, id: one.id };
      await fixture.store.records.updateResource({ ...at, title: "New", nowIso: NOW }, undefined);
      expect(await embeds(within)).toBe(2);
      const { accountId } = at;
      expect(await embeds({ accountId, resourceId: one.id })).toBe(1);
      expect(await embeds({ accountId, resourceId: two.id })).toBe(1);
      expect((await read(within, "unknown")).embed).toBe(3);
    });

    it("forgets chunks that were replaced, and finds those that replaced them", async () => {
      const within = await scope("ann", "moderate");
      const one = await create("a\n\nb", MODERATE);
      expect(await embeds(within)).toBe(1);
      const at = { accountId: fixture.account.id, id: one.id, nowIso: NOW };
      await fixture.store.records.updateResource({ ...at, content: "c" }, wordsOnly("c"));
      expect(await embeds(within)).toBe(1);
      await updateEmbedded(fixture.store, { ...at, content: "d" }, embedded("d"));
      expect(await embeds(within)).toBe(0);
      await fixture.store.records.updateResource({ ...at, content: "e" }, wordsOnly("e"));
      expect(await embeds(within)).toBe(1);
      await fixture.store.records.deleteResource(at);
      expect(await embeds(within)).toBe(0);
    });

    it("counts the documents of the first chunks that lack a vector, and goes on when these are done", async () => {
      const texts = (start: string, count: number): string =>
        Array.from({ length: count }, (_, at) => `${start} ${at}`).join("\n\n");
      const within = await scope(newId(), "moderate");
      if ("resourceId" in within) throw new Error("a scope of an owner");
      const { ownerId } = within;
      const done = texts("done", 5000);
      await create(done, { ...MODERATE, ownerId }, embedded(done));
      await create(texts("many", PENDING_CHUNKS_MAX), { ...MODERATE, ownerId });
      await create("later", { ...MODERATE, ownerId });
      expect(await read(within)).toMatchObject({ embed: 1, more: true });
      await embed("many", PENDING_CHUNKS_MAX - 1);
      expect(await read(within)).toEqual({ read: 0, embed: 2 });
      await embed("many");
      expect(await embeds(within)).toBe(1);
      await embed("later");
      expect(await embeds(within)).toBe(0);
    });
  });
}
