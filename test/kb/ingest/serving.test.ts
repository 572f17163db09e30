import { expect, it, vi } from "vitest";
import type { FoundModel, Model, ModelEmbedder } from "../../../src/kb/ingest/model.ts";
import { openServing } from "../../../src/kb/ingest/serving.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";

const PLACE = { accountId: "local", resourceId: "one" };
const NEVER = new Promise<never>(() => undefined);
const WAITS = { firstMs: 20, nextMs: 5 };

/** A part of a collection that the model "old" serves, where "new" is configured. */
function open(openEarlier: () => Promise<FoundModel>) {
  const clock = { ms: 0 };
  const model: Pick<Model, "get"> = { get: async () => hashedEmbedder("new") };
  const store = { servingFingerprints: async () => ["old"], servingFingerprint: async () => "old" };
  const serving = openServing(model, store, openEarlier, () => clock.ms, WAITS);
  const served = async (): Promise<string | undefined> => (await serving.embedderFor(PLACE))?.fingerprint;
  return { serving, clock, served };
}

it.each([
  ["throws", () => Promise.reject(new Error("unreachable for a moment"))],
  ["is not there", async () => ({ kind: "no-model", reason: "no file", hint: "" }) as const],
])(
  "an earlier model that %s is tried again after a minute, and the present one serves till then",
  async (_name, first) => {
    let outcome: () => Promise<FoundModel> = first;
    const openEarlier = vi.fn<() => Promise<FoundModel>>(() => outcome());
    const { served, clock } = open(openEarlier);
    expect([await served(), await served()]).toEqual(["new", "new"]);
    outcome = async () => hashedEmbedder("old");
    clock.ms = 59_999;
    expect(await served()).toBe("new");
    expect(openEarlier).toHaveBeenCalledTimes(1);
    clock.ms = 60_000;
    expect([await served(), await served()]).toEqual(["old", "old"]);
    expect(openEarlier).toHaveBeenCalledTimes(2);
  },
);

it("callers wait a bounded time for an earlier model that opens slowly, and it closes once it is open", async () => {
  const { promise, resolve } = Promise.withResolvers<ModelEmbedder>();
  const { served, serving } = open(() => promise);
  expect(await served()).toBe("new");
  const close = vi.fn<() => Promise<void>>();
  resolve({ ...hashedEmbedder("old"), close });
  expect(await served()).toBe("old");
  await serving.close();
  expect(close).toHaveBeenCalledTimes(1);
});

it("close does not hang if an earlier model never opens", async () => {
  const { served, serving } = open(() => NEVER);
  await served();
  await expect(serving.close()).resolves.toBeUndefined();
});

it("a failed read of the serving models fails one request, and the next one reads again", async () => {
  let reads = 0;
  const store = {
    servingFingerprints: async () => {
      reads += 1;
      if (reads === 1) throw new Error("the store is busy");
      return ["new"];
    },
    servingFingerprint: async () => "new",
  };
  const model: Pick<Model, "get"> = { get: async () => hashedEmbedder("new") };
  const serving = openServing(model, store, undefined, () => 0, WAITS);
  await expect(serving.embedderFor(PLACE)).rejects.toThrow("the store is busy");
  expect((await serving.embedderFor(PLACE))?.fingerprint).toBe("new");
  await serving.embedderFor(PLACE);
  expect(reads).toBe(2);
});

it("opens two earlier models at most, and serves scopes of a third with the present one", async () => {
  const store = {
    servingFingerprints: async () => ["one", "two", "three"],
    servingFingerprint: async (scope: Scope) => ("resourceId" in scope ? scope.resourceId : "new"),
  };
  const model: Pick<Model, "get"> = { get: async () => hashedEmbedder("new") };
  const opened: string[] = [];
  const openEarlier = async (fingerprint: string): Promise<FoundModel> => {
    opened.push(fingerprint);
    return hashedEmbedder(fingerprint);
  };
  const serving = openServing(model, store, openEarlier, () => 0, WAITS);
  const served: unknown[] = [];
  for (const resourceId of ["one", "two", "three", "two"])
    served.push((await serving.embedderFor({ accountId: "local", resourceId }))?.fingerprint);
  expect(served).toEqual(["one", "two", "new", "two"]);
  expect(opened).toEqual(["one", "two"]);
  await serving.close();
});
