import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openEmbeddingOrder } from "../../../src/kb/ingest/embedding-order.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import { wordsOnly } from "../store/store-fixture.ts";

const TIERS = ["moderate", "high_accuracy"] as const;

describe("the order of embedding", () => {
  let store: Store;
  let made = 0;
  /** Ranges of refs that were examined. */
  let examined: [first: number, before: number][];
  beforeEach(async () => {
    store = await openSqliteStore();
    examined = [];
  });
  afterEach(() => store.close());

  const open = (lacks: "vectors" | "sentences" = "vectors") => {
    const { index } = store;
    return openEmbeddingOrder(
      {
        ...index,
        documentsLacking: (query) => {
          examined.push([query.first, query.before]);
          return index.documentsLacking(query);
        },
      },
      lacks === "vectors" ? TIERS : ["high_accuracy"],
      { lacks, fingerprint: "m" },
    );
  };
  const create = async (
    name: string,
    changedAt: string,
    {
      paragraphs = 1,
      account = "local",
      ownerId = "ann",
      tier = "moderate",
    }: { paragraphs?: number; account?: string; ownerId?: string; tier?: Tier } = {},
  ) => {
    const { id: accountId } = await store.records.ensureAccount(account);
    const content = Array.from({ length: paragraphs }, (_, at) => `${name} ${at}`).join("\n\n");
    const id = (++made).toString().padStart(24, "0");
    const texts = { title: "", description: "", url: null, content, settings: DEFAULT_SETTINGS };
    await store.records.createResource(
      {
        accountId,
        id,
        ...texts,
        tier,
        ownerId,
        origin: "content",
        createdAt: `2026-01-01T${changedAt}.000Z`,
      },
      wordsOnly(content),
    );
    return { accountId, id };
  };
  /** The next chunks until none is left: of each call, the documents with the numbers of their chunks. */
  const rest = async (order: ReturnType<typeof open>, limit = 1000): Promise<string[]> => {
    const found: string[] = [];
    for (let chunks = await order.next(limit); chunks.length > 0; chunks = await order.next(limit)) {
      const named = Map.groupBy(chunks, ({ text }) => text.split(" ")[0]);
      found.push([...named].map(([name, of]) => `${name} ${of.length}`).join(", "));
    }
    return found;
  };

  it("the newest change comes first, whatever its owner, tier and length", async () => {
    await create("one", "10:01:00");
    await create("two", "10:02:00", { ownerId: "bob", paragraphs: 3 });
    await create("three", "10:03:00", { tier: "high_accuracy" });
    await create("four", "10:04:00", { paragraphs: 2 });
    const order = open();
    await order.refresh();
    expect(await rest(order)).toEqual(["four 2, three 1, two 3, one 1"]);
  });

  it("short documents come before long ones that changed in the same minute", async () => {
    await create("old", "10:01:59");
    await create("short", "10:02:01", { paragraphs: 2 });
    await create("long", "10:02:30", { paragraphs: 2000 });
    await create("single", "10:02:10", { ownerId: "bob" });
    const order = open();
    await order.refresh();
    expect(await rest(order, 1500)).toEqual(["single 1, short 2, long 1497", "long 503, old 1"]);
  });

  it("a change that comes during a long document overtakes the rest of it", async () => {
    await create("long", "10:01:00", { paragraphs: 30 });
    const order = open();
    await order.refresh();
    expect(await order.next(10)).toHaveLength(10);
    await create("note", "10:02:00");
    await order.refresh();
    expect(await rest(order, 10)).toEqual(["note 1, long 9", "long 10", "long 1"]);
  });

  it("accounts take turns", async () => {
    await create("large", "10:05:00", { paragraphs: 40 });
    await create("a", "10:01:00", { account: "other" });
    await create("b", "10:02:00", { account: "other" });
    const order = open();
    await order.refresh();
    expect(await rest(order, 10)).toEqual(["large 10", "b 1, a 1", "large 10", "large 10", "large 10"]);
  });

  it("what was examined is not examined again, and a changed text or title is", async () => {
    const { accountId, id } = await create("one", "10:01:00");
    await create("two", "10:02:00", { paragraphs: 3 });
    const order = open();
    await order.refresh();
    expect(await rest(order)).toEqual(["two 3, one 1"]);
    examined = [];
    await order.refresh();
    expect(await rest(order)).toEqual([]);
    expect(examined).toEqual([]);
    const at = { accountId, id, nowIso: "2026-01-01T10:03:00.000Z" };
    await store.records.updateResource({ ...at, title: "New" }, undefined);
    await order.refresh();
    expect(await rest(order)).toEqual(["one 1"]);
    expect(examined.map(([first, before]) => before - first)).toEqual([1]);
    await store.records.updateResource({ ...at, content: "changed" }, wordsOnly("changed"));
    await order.refresh();
    expect(await rest(order)).toEqual(["changed 1"]);
  });

  it("passes over chunks that have their vectors, and documents that were deleted meanwhile", async () => {
    const done = await create("done", "10:01:00");
    const gone = await create("gone", "10:02:00");
    const [chunk] = (await store.records.chunks(done))?.chunks ?? [];
    await store.index.putVectors("m", [{ ref: chunk?.ref ?? -1, vector: Float32Array.of(1, 0) }]);
    await create("left", "10:01:30");
    const order = open();
    await order.refresh();
    await store.records.deleteResource({ ...gone, nowIso: "2026-01-01T10:03:00.000Z" });
    expect(await rest(order)).toEqual(["left 1"]);
  });

  it("sentences are those of high_accuracy", async () => {
    await create("plain", "10:02:00");
    await create("deep", "10:01:00", { tier: "high_accuracy" });
    const order = open("sentences");
    await order.refresh();
    expect(await rest(order)).toEqual(["deep 1"]);
  });
});
