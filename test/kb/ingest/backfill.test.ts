import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import type { ModelEmbedder } from "../../../src/kb/ingest/model.ts";
import { noticeTexts, openBackfill } from "../../../src/kb/ingest/backfill.ts";
import { openSharedTurns } from "../../../src/kb/queue/shared-turns.ts";
import type { Backfill, BackfillReport } from "../../../src/kb/ingest/backfill.ts";
import type { ChunkContext, LackingQuery } from "../../../src/kb/store/search-index.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { wordsOnly } from "../store/store-fixture.ts";
import { WAIT } from "../../wait.ts";

const NOW = "2026-01-01T00:00:00.000Z";

/** What a backfill asks of a store, over a map. Each chunk is a document. */
function memory(chunks: number) {
  const lacking = new Map<number, ChunkContext>();
  const add = (ref: number, text = `text ${ref}`): unknown =>
    lacking.set(ref, { ref, text, title: "", headings: [] });
  for (let ref = 0; ref < chunks; ref++) add(ref);
  return {
    lacking,
    add,
    embeddingScopes: async () => [
      { accountId: "local", first: 0, end: Math.max(-1, ...lacking.keys()) + 1, changedAt: NOW },
    ],
    documentsLacking: async ({ lacks, first, before }: LackingQuery & { readonly before: number }) => ({
      documents: [...lacking.keys()]
        .filter((ref) => lacks === "vectors" && ref >= first && ref < before)
        .map((ref) => ({ first: ref, last: ref, chunks: 1, changedAt: NOW })),
      downTo: first,
    }),
    chunksLacking: async ({ first, last }: LackingQuery & { readonly last: number }) =>
      [...lacking.values()].filter(({ ref }) => ref >= first && ref <= last),
    putVectors: async (_fingerprint: string, vectors: readonly { readonly ref: number }[]) => {
      for (const { ref } of vectors) lacking.delete(ref);
    },
    serveComplete: async (): Promise<number> => 0,
    dropRetired: async (_fingerprint: string, _limit: number): Promise<number> => 0,
    putSentences: async () => undefined,
  };
}

const NONE = async (): Promise<boolean> => false;
/** The turns of the only process of a store. */
const ALONE = openSharedTurns(undefined, "", () => undefined);

describe("backfill", () => {
  let backfill: Backfill;
  let reports: BackfillReport[];
  beforeEach(() => {
    reports = [];
  });
  afterEach(() => backfill.close());

  const open = (
    store: ReturnType<typeof memory>,
    model: Embedder,
    onLeft?: (chunks: number) => void,
  ): void => {
    backfill = openBackfill({
      index: store,
      turns: ALONE,
      textsWait: NONE,
      model: async () => model,
      report: (report) => reports.push(report),
      retryAfterMs: 1,
      ...(onLeft && { onLeft }),
    });
    backfill.wake();
  };
  const through = (store: ReturnType<typeof memory>): Promise<void> =>
    vi.waitFor(() => expect(store.lacking.size).toBe(0), WAIT);

  it("the backfill embeds every chunk without a vector", async () => {
    const store = memory(600);
    open(store, hashedEmbedder());
    await through(store);
    await vi.waitFor(() => expect(reports).toEqual([{ chunks: 600 }]), WAIT);
  });

  it("the backfill finds texts that are written all the time once a second, and the last ones at its end", async () => {
    const store = memory(600);
    const { embeddingScopes, putVectors } = store;
    let refreshes = 0;
    store.embeddingScopes = async () => {
      refreshes += 1;
      return embeddingScopes();
    };
    store.putVectors = async (...given) => {
      await putVectors(...given);
      if (store.lacking.size === 280) store.add(1000);
      if (store.lacking.size > 0) backfill.wake();
    };
    vi.useFakeTimers({ toFake: ["performance"] });
    const done = Promise.withResolvers<BackfillReport>();
    backfill = openBackfill({
      index: store,
      turns: ALONE,
      textsWait: NONE,
      model: async () => hashedEmbedder(),
      report: done.resolve,
    });
    backfill.wake();
    expect(await done.promise).toEqual({ chunks: 601 });
    vi.useRealTimers();
    // Each reads the scopes of chunks without vectors, and of those without vectors of their sentences.
    expect(refreshes).toBe(4);
  });

  it("the backfill retries after a failure", async () => {
    const store = memory(10);
    const real = hashedEmbedder();
    let failures = 3;
    open(store, {
      ...real,
      embed: (...parts) =>
        failures-- > 0 ? Promise.reject(new Error("out of memory")) : real.embed(...parts),
    });
    await through(store);
    await vi.waitFor(() => expect(reports.map(({ chunks }) => chunks)).toEqual([0, 0, 10]), WAIT);
  });

  it("the backfill leaves the work to another process, and takes over when that one ends", async () => {
    const store = memory(10);
    let isFree = false;
    let attempts = 0;
    let took = 0;
    backfill = openBackfill({
      index: store,
      textsWait: NONE,
      turns: {
        runIfFree: async (_name, work) => {
          attempts += 1;
          if (isFree) await work();
          return isFree;
        },
      },
      model: async () => hashedEmbedder(),
      report: (report) => reports.push(report),
      onElsewhere: () => (took += 1),
      elsewhereMs: 20,
    });
    backfill.wake();
    await vi.waitFor(() => expect(attempts).toBe(2), WAIT);
    for (let documents = 0; documents < 100; documents += 1) backfill.wake();
    expect({ attempts, isRunning: backfill.isRunning(), lacking: store.lacking.size }).toEqual({
      attempts: 2,
      isRunning: true,
      lacking: 10,
    });
    isFree = true;
    await through(store);
    await vi.waitFor(() => expect(backfill.isRunning()).toBe(false), WAIT);
    expect(took).toBe(1);
    store.add(1000);
    backfill.wake();
    await through(store);
    expect(took).toBe(1);
  });

  it("the backfill retries while there is no model", async () => {
    const store = memory(10);
    let attempts = 0;
    backfill = openBackfill({
      index: store,
      turns: ALONE,
      textsWait: NONE,
      model: async () => (++attempts < 3 ? undefined : hashedEmbedder()),
      report: (report) => reports.push(report),
      retryAfterMs: 1,
    });
    backfill.wake();
    await through(store);
    expect(attempts).toBe(3);
  });

  it("the backfill gives up a text that always fails, and embeds the others", async () => {
    const store = memory(300);
    store.add(5, "poison");
    const real = hashedEmbedder();
    let poisoned = 0;
    const left: number[] = [];
    const model: Embedder = {
      ...real,
      embed: (texts, signal) => {
        if (!texts.some((text) => text.includes("poison"))) return real.embed(texts, signal);
        poisoned++;
        return Promise.reject(new Error("cannot read this"));
      },
    };
    open(store, model, (chunks) => left.push(chunks));
    await vi.waitFor(() => expect(left.at(-1)).toBe(1), WAIT);
    expect([...store.lacking.keys()]).toEqual([5]);
    // Once beside others, twice alone; from then on it is left, whatever else comes.
    expect(poisoned).toBe(3);
    store.add(1000);
    backfill.wake();
    await vi.waitFor(() => expect([...store.lacking.keys()]).toEqual([5]), WAIT);
    expect(poisoned).toBe(3);
  });

  it("takes away what an earlier model left, a batch at a time", async () => {
    const store = memory(1);
    let batches = 0;
    store.dropRetired = async (_fingerprint: string, limit: number) => (++batches < 3 ? limit : 0);
    open(store, hashedEmbedder());
    await through(store);
    expect(batches).toBe(3);
  });

  it("reports when the model has taken over, and then removes the vectors of the previous one", async () => {
    const store = memory(1);
    let complete = 0;
    let dropped = 0;
    store.serveComplete = async () => (store.lacking.size === 0 && ++complete === 1 ? 1 : 0);
    store.dropRetired = async () => {
      dropped++;
      return 0;
    };
    open(store, hashedEmbedder());
    await vi.waitFor(() => expect([complete > 0, dropped]).toEqual([true, 2]), WAIT);
  });

  it("blames the model, not the texts, when it fails on everything", async () => {
    const store = memory(10);
    const real = hashedEmbedder();
    let isBroken = true;
    open(store, {
      ...real,
      embed: (...parts) => (isBroken ? Promise.reject(new Error("out of memory")) : real.embed(...parts)),
    });
    await vi.waitFor(() => expect(reports.length).toBeGreaterThan(8), WAIT);
    expect(store.lacking.size).toBe(10);
    isBroken = false;
    await through(store);
  });

  it("lets the model finish its call before it is closed", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const real = hashedEmbedder();
    const steps: string[] = [];
    const store = memory(100);
    open(store, {
      ...real,
      embed: async (texts, signal) => {
        steps.push("begin");
        await Promise.race([
          released,
          new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted")))),
        ]);
        steps.push("end");
        return real.embed(texts);
      },
    });
    await vi.waitFor(() => expect(steps).toEqual(["begin"]), WAIT);
    const closed = backfill.close();
    release();
    await closed;
    expect(steps).toEqual(["begin", "end"]);
    expect(store.lacking.size).toBe(68);
    expect(reports).toEqual([]);
  });

  it("checks again for texts that came while it was finishing", async () => {
    const store = memory(0);
    const look = store.embeddingScopes;
    let attempts = 0;
    store.embeddingScopes = async () => {
      const found = await look();
      if (++attempts === 1) {
        // Committed after the check that finds nothing left.
        store.add(1);
        backfill.wake();
      }
      return found;
    };
    open(store, hashedEmbedder());
    await vi.waitFor(() => expect(attempts).toBeGreaterThan(1), WAIT);
    await through(store);
  });
});

describe("a local model", () => {
  const local = { ...hashedEmbedder(), kind: "local" } as const;
  const run = (pauses: { quietMs: number; maxMs: number }, model: ModelEmbedder, textsWait?: true) => {
    const store = memory(10);
    const read = Promise.withResolvers<void>();
    const { chunksLacking } = store;
    store.chunksLacking = async (query) => {
      read.resolve();
      return chunksLacking(query);
    };
    const backfill = openBackfill({
      index: store,
      turns: ALONE,
      textsWait: async () => textsWait === true,
      model: async () => model,
      report: () => undefined,
      pauses,
    });
    if (textsWait === undefined) backfill.noteText();
    backfill.wake();
    return { store, backfill, read: read.promise };
  };

  it.each([
    ["are taken in", undefined],
    ["wait in the queue", true],
  ] as const)("a local model pauses while texts %s, and a remote one does not", async (_title, textsWait) => {
    const pauses = { quietMs: 600_000, maxMs: 600_000 };
    const here = run(pauses, local, textsWait);
    await here.read;
    const elsewhere = run(pauses, hashedEmbedder(), textsWait);
    await vi.waitFor(() => expect(elsewhere.store.lacking.size).toBe(0), WAIT);
    expect(here.store.lacking.size).toBe(10);
    await Promise.all([here.backfill.close(), elsewhere.backfill.close()]);
  });

  it.each([
    ["no text has come for a while", { quietMs: 20, maxMs: 600_000 }],
    ["texts come all the time", { quietMs: 600_000, maxMs: 20 }],
  ])("a local model goes on when %s", async (_title, pauses) => {
    const { store, backfill } = run(pauses, local);
    await vi.waitFor(() => expect(store.lacking.size).toBe(0), WAIT);
    await backfill.close();
  });
});

it("the backfill suspects no chunk because it could not learn whether texts wait", async () => {
  const store = memory(2);
  const steps: number[] = [];
  const model = hashedEmbedder();
  let failures = 1;
  const backfill = openBackfill({
    index: store,
    turns: ALONE,
    textsWait: () => (failures-- > 0 ? Promise.reject(new Error("the store fails")) : NONE()),
    model: async () => ({
      ...model,
      kind: "local",
      embed: (texts) => {
        steps.push(texts.length);
        return model.embed(texts);
      },
    }),
    report: () => undefined,
    retryAfterMs: 1,
  });
  backfill.wake();
  await vi.waitFor(() => expect(store.lacking.size).toBe(0), WAIT);
  // Suspects are embedded one at a time.
  expect(steps).toEqual([2]);
  await backfill.close();
});

describe("noticeTexts", () => {
  const CONTENT = "Boats lie in the harbour.";
  const texts = { title: "", description: "", url: null, content: CONTENT, settings: DEFAULT_SETTINGS };
  let store: Store;
  let made = 0;
  beforeAll(async () => {
    store = await openSqliteStore();
  });
  afterAll(() => store.close());

  const create = async (tier: Tier, change?: object): Promise<{ texts: number; woken: number }> => {
    const seen = { texts: 0, woken: 0 };
    const noticing = noticeTexts(store, { noteText: () => seen.texts++, wake: () => seen.woken++ });
    const { id: accountId } = await store.records.ensureAccount("local");
    const id = (++made).toString().padStart(24, "0");
    await noticing.records.createResource(
      { accountId, id, ...texts, tier, ownerId: "docs", origin: "content", createdAt: NOW },
      wordsOnly(CONTENT),
    );
    if (change === undefined) return seen;
    seen.texts = 0;
    seen.woken = 0;
    await noticing.records.updateResource({ accountId, id, ...change, nowIso: NOW }, undefined);
    return seen;
  };

  it.each<[Tier, number]>([
    ["fastest", 0],
    ["moderate", 1],
    ["high_accuracy", 1],
  ])("a text in %s is noted, and wakes the backfill %i times", async (tier, woken) => {
    expect(await create(tier)).toEqual({ texts: 2, woken });
  });

  it.each<[string, Tier, object, number]>([
    ["a new title wakes the backfill, whose vectors it makes stale", "moderate", { title: "New" }, 1],
    ["a new title does not wake it in fastest", "fastest", { title: "New" }, 0],
    ["a new description does not wake it", "moderate", { description: "New" }, 0],
  ])("%s", async (_title, tier, change, woken) => {
    expect((await create(tier, change)).woken).toBe(woken);
  });
});
