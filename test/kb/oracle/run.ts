import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { openChance } from "../../crash/chance.ts";
import { openRunning, type Running } from "../service/running.ts";
import { wordSetEmbedder } from "./word-sets.ts";
import { World } from "./world.ts";
import { lackingChunks } from "../store/embedded.ts";

const PATIENCE = { timeout: 30_000, interval: 20 };
const VECTOR_TIERS = ["moderate", "high_accuracy"] as const;

/** How much is done. */
export interface Amount {
  readonly workers: number;
  /** Of each worker, between two comparisons. */
  readonly steps: number;
  /** Of each part, in each comparison. */
  readonly queries: number;
}

/**
 * Lives through one history: changes side by side, a restart, a stop amid changes, and a change of model, under which the earlier
 * one serves. After each, when nothing is under way, searches must find exactly what the texts say.
 */
export async function runHistory(seed: number, { workers, steps, queries }: Amount): Promise<void> {
  const world = new World(openChance(seed));
  const stateDir = await mkdtemp(join(tmpdir(), "kbsync-oracle-"));
  let running: Running | undefined;

  const restart = async (model: string, gate?: Promise<void>): Promise<Running> => {
    await running?.close();
    running = await openRunning({
      stateDir,
      openEmbedder: async () => wordSetEmbedder(model, gate),
      openEarlierEmbedder: async (fingerprint) => wordSetEmbedder(fingerprint.split("/")[0] ?? ""),
    });
    await world.use(running);
    return running;
  };
  try {
    let on = await restart("one");
    await world.begin();
    await world.work(workers, steps);
    await settle(on, "one/64");
    await world.compare("one", queries);

    on = await restart("one");
    await world.compare("one", 1);
    const untilCut = world.work(1, Math.ceil(steps / 2), { isCut: true }).then(() => on.close());
    await Promise.all([untilCut, world.work(workers, steps, { isCut: true })]);
    running = undefined;
    on = await restart("one");
    await settle(on, "one/64");
    await world.compare("one", queries);

    const gate = Promise.withResolvers<void>();
    on = await restart("two", gate.promise);
    await world.compare("one", queries);
    gate.resolve();
    await world.work(workers, steps);
    await settle(on, "two/64");
    await world.compare("two", queries);

    await restart("two");
    await world.compare("two", 1);
  } finally {
    await running?.close();
    await rm(stateDir, { recursive: true });
  }
}

/** Waits until nothing is under way, and the model of this fingerprint has all vectors and serves alone. */
async function settle(on: Running, fingerprint: string): Promise<void> {
  await noJobs(on);
  await vi.waitFor(async () => {
    expect(await lackingChunks(on.store.index, fingerprint, { tiers: VECTOR_TIERS })).toEqual([]);
    expect(
      await lackingChunks(on.store.index, fingerprint, { tiers: ["high_accuracy"], lacks: "sentences" }),
    ).toEqual([]);
    expect(await on.store.index.servingFingerprints()).toEqual([fingerprint]);
  }, PATIENCE);
}

async function noJobs(on: Running): Promise<void> {
  await vi.waitFor(async () => {
    expect(await on.store.queue.figures("ingest", undefined)).toMatchObject({ waiting: 0 });
    expect(await on.store.records.failedResources(undefined)).toBe(0);
  }, PATIENCE);
}
