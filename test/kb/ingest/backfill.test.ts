import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { openBackfill } from "../../../src/kb/ingest/backfill.ts";
import type { Backfill, BackfillReport } from "../../../src/kb/ingest/backfill.ts";
import type { RowText } from "../../../src/kb/store/store.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

/** What a backfill asks of a store, over a map. */
function memory(chunks: number) {
  const lacking = new Map<number, RowText>();
  const add = (row: number): unknown => lacking.set(row, { row, text: `text ${row}` });
  for (let row = 0; row < chunks; row++) add(row);
  return {
    lacking,
    add,
    chunksWithoutVector: async (_fingerprint: string, _tiers: unknown, limit: number) =>
      [...lacking.values()].slice(0, limit),
    putVectors: async (_fingerprint: string, vectors: readonly { readonly row: number }[]) => {
      for (const { row } of vectors) lacking.delete(row);
    },
  };
}

describe("backfill", () => {
  let backfill: Backfill;
  let reports: BackfillReport[];
  beforeEach(() => {
    reports = [];
  });
  afterEach(() => backfill.close());

  const open = (store: ReturnType<typeof memory>, model: Embedder): void => {
    backfill = openBackfill({
      store,
      model: async () => model,
      report: (report) => reports.push(report),
      retryAfterMs: 1,
    });
    backfill.wake();
  };
  const through = (store: ReturnType<typeof memory>): Promise<void> =>
    vi.waitFor(() => expect(store.lacking.size).toBe(0), { timeout: 5000 });

  it("gives every chunk its vector", async () => {
    const store = memory(600);
    open(store, hashedEmbedder());
    await through(store);
    await vi.waitFor(() => expect(reports).toEqual([{ chunks: 600 }]));
  });

  it("tries again after a failure", async () => {
    const store = memory(10);
    const real = hashedEmbedder();
    let failures = 3;
    open(store, {
      ...real,
      embed: (...parts) =>
        failures-- > 0 ? Promise.reject(new Error("out of memory")) : real.embed(...parts),
    });
    await through(store);
    await vi.waitFor(() => expect(reports.map(({ chunks }) => chunks)).toEqual([0, 0, 0, 10]));
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
    await vi.waitFor(() => expect(steps).toEqual(["begin"]));
    const closed = backfill.close();
    release();
    await closed;
    expect(steps).toEqual(["begin", "end"]);
    expect(store.lacking.size).toBe(100);
    expect(reports).toEqual([]);
  });

  it("looks again for what came while it was finishing", async () => {
    const store = memory(0);
    const look = store.chunksWithoutVector;
    let looks = 0;
    store.chunksWithoutVector = async (...parts) => {
      const found = await look(...parts);
      if (++looks === 1) {
        // Committed behind the look that finds nothing left.
        store.add(1);
        backfill.wake();
      }
      return found;
    };
    open(store, hashedEmbedder());
    await vi.waitFor(() => expect(looks).toBeGreaterThan(1));
    await through(store);
  });
});
