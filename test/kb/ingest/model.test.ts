import { describe, expect, it, vi } from "vitest";
import { KbsyncError } from "../../../src/lib/failure.ts";
import { openIngest } from "../../../src/kb/ingest/ingest.ts";
import { openExtractor } from "../../../src/kb/ingest/extract/extract.ts";
import { openModel } from "../../../src/kb/ingest/model.ts";
import type { FoundModel, Model } from "../../../src/kb/ingest/model.ts";
import { DEFAULT_SETTINGS } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { WAIT } from "../../wait.ts";

const NEVER = new Promise<never>(() => undefined);
const WAITS = { firstMs: 20, nextMs: 5 };
const unreachable = (): KbsyncError =>
  new KbsyncError("nobody answers", { code: "embedding_unreachable", retryable: true });

/** A model on a clock that the test sets, with what it reported. */
function open(find: () => Promise<FoundModel>): Model & { clock: { ms: number }; ready: string[] } {
  const clock = { ms: 0 };
  const ready: string[] = [];
  const events = { onReady: (name: string) => ready.push(name), onProblem: () => undefined };
  return { ...openModel(find, () => clock.ms, events, WAITS), clock, ready };
}

describe("the embedding model", () => {
  it("callers wait a bounded time, once, for a model that opens slowly, and use it once it is open", async () => {
    const { promise, resolve } = Promise.withResolvers<FoundModel>();
    const find = vi.fn<() => Promise<FoundModel>>(() => promise);
    const model = open(find);
    expect(await Promise.all([model.get(), model.get()])).toEqual([undefined, undefined]);
    expect(await model.get()).toBeUndefined();
    expect(model.state().state).toBe("loading");
    resolve(hashedEmbedder());
    await vi.waitFor(() => expect(model.ready).toHaveLength(1), WAIT);
    expect((await model.get())?.dimensions).toBe(64);
    expect(find).toHaveBeenCalledTimes(1);
  });

  it("a missing model is retried in the background, one attempt at a time", async () => {
    let outcome: Promise<FoundModel> = Promise.reject(unreachable());
    const find = vi.fn<() => Promise<FoundModel>>(() => outcome);
    const model = open(find);
    expect(await model.get()).toBeUndefined();
    outcome = NEVER;
    model.clock.ms = 60_000;
    for (let turn = 0; turn < 3; turn += 1) expect(await model.get()).toBeUndefined();
    model.clock.ms = 600_000;
    expect(await model.get()).toBeUndefined();
    expect(find).toHaveBeenCalledTimes(2);
    expect(model.state().state).toBe("unavailable");
  });

  it("a call that fails because the model closes is no failure of the model", async () => {
    const failing = { ...hashedEmbedder(), embed: () => Promise.reject(unreachable()) };
    const [serving, closing] = [open(async () => failing), open(async () => failing)];
    const embedders = [await serving.get(), await closing.get()];
    await closing.close();
    for (const embedder of embedders)
      await expect(embedder?.embed(["text"])).rejects.toThrow("nobody answers");
    expect([serving.state().state, closing.state().state]).toEqual(["failing", "ready"]);
  });

  it("close does not hang if opening the model never ends", async () => {
    const model = open(() => NEVER);
    await model.get();
    await expect(model.close()).resolves.toBeUndefined();
  });
});

describe("texts and an embedding model that does not answer", () => {
  const semantic = { ...DEFAULT_SETTINGS, strategy: "semantic", chunkSize: 10, chunkOverlap: 0 } as const;
  const openHung = (fails: (signal?: AbortSignal) => Promise<never> | undefined) => {
    const real = hashedEmbedder();
    let asked = 0;
    const model = open(async () => ({
      ...real,
      embed: async (texts, signal) => {
        asked += 1;
        return (await fails(signal)) ?? real.embed(texts);
      },
    }));
    const busy = (): Error => new Error("busy");
    const ingest = openIngest({ model, extractor: openExtractor(), busy, stepMs: 50 });
    const strategyUsed = async (): Promise<string> =>
      (await ingest.chunk("Some more words than fit.", semantic)).strategyUsed ?? "semantic";
    return { model, ingest, strategyUsed, asked: () => asked };
  };
  const aborted = (signal?: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason as Error)));

  it.each([
    ["hangs", aborted],
    ["is not reached", () => Promise.reject(unreachable())],
  ])("texts are split without the model if it %s, which then has a cooldown", async (_name, fails) => {
    let works = false;
    const { model, ingest, strategyUsed, asked } = openHung((signal) => (works ? undefined : fails(signal)));
    expect([await strategyUsed(), await strategyUsed()]).toEqual(["recursive", "recursive"]);
    expect(asked()).toBe(1);
    works = true;
    model.clock.ms += 30_000;
    expect(await strategyUsed()).toBe("semantic");
    await ingest.close();
  });

  it("a successful call ends the cooldown of the model", async () => {
    let works = false;
    const { model, ingest, strategyUsed } = openHung(() =>
      works ? undefined : Promise.reject(unreachable()),
    );
    expect(await strategyUsed()).toBe("recursive");
    works = true;
    await (await model.get())?.embed(["A sentence of the backfill."]);
    expect(await strategyUsed()).toBe("semantic");
    await ingest.close();
  });
});
