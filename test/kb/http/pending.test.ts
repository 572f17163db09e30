import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { openPending } from "../../../src/kb/resources/pending.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning, type Answered, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const WAIT = { timeout: 10_000, interval: 50 };

let running: Running;
/** Jobs wait for this before they are leased. */
let held: Promise<void> | undefined;
/** Vectors of documents wait for this. */
let embedding: Promise<void> | undefined;
/** The next document gets no vectors. */

beforeAll(async () => {
  running = await openRunning({
    openEmbedder: async () => {
      const embedder = hashedEmbedder();
      return {
        ...embedder,
        queries: embedder,
        embed: async (texts, signal) => {
          await embedding;
          return embedder.embed(texts, signal);
        },
      };
    },
    wrapStore: (store) =>
      withMethods(store, {
        queue: {
          lease: async (request) => {
            await held;
            return store.queue.lease(request);
          },
        },
      }),
  });
});
afterAll(() => running.close());

const create = async (change: object, headers: Record<string, string> = {}) => {
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody(change), headers });
  return json.data;
};
const search = (body: object): Promise<Answered> =>
  running.send("POST", "/rag/query", { body: { query: "moon", ...body } });

it("a search counts the documents that wait to be read, of the searched owner alone", async () => {
  const { collectionId } = await create({ owner_id: "calm" });
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  const { _id: id } = await create({ owner_id: "slow" }, { prefer: "respond-async" });
  const slow = { collection_id: collectionId, owner_id: "slow" };
  expect((await search(slow)).json.pending).toEqual({ read: 1, embed: 0 });
  expect((await search({ doc_id: id })).json.pending).toEqual({ read: 1, embed: 0 });
  const calm = await search({ collection_id: collectionId, owner_id: "calm" });
  expect(calm.json).toMatchObject({ results: [{}], pending: { read: 0, embed: 0 } });
  resolve();
  await vi.waitFor(
    async () => expect((await search(slow)).json).toMatchObject({ results: [{}], pending: { read: 0 } }),
    WAIT,
  );
});

it("a search counts the documents that are not found by meaning yet", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  embedding = promise;
  const { collectionId } = await create({ owner_id: "late", collection_details: "moderate" });
  const late = { collection_id: collectionId, owner_id: "late" };
  expect((await search(late)).json.pending).toEqual({ read: 0, embed: 1 });
  resolve();
  await vi.waitFor(async () => expect((await search(late)).json.pending.embed).toBe(0), WAIT);
});

it("a count is read once a second at most, and again after a failure", async () => {
  const answers = [1, new Error("the store fails"), 3];
  const asked: unknown[] = [];
  let nowMs = 0;
  const index = {
    pending: async (query: unknown) => {
      asked.push(query);
      const next = answers.shift();
      if (typeof next === "number") return { read: next, embed: 0 };
      throw next ?? new Error("nothing more was expected");
    },
  };
  const pending = openPending(
    index,
    async () => undefined,
    () => nowMs,
  );
  const scope = { accountId: "a", collectionId: "c", ownerId: "o" };
  const read = () => pending({ scope, tier: "moderate" });
  expect(await Promise.all([read(), read()])).toEqual([
    { read: 1, embed: 0 },
    { read: 1, embed: 0 },
  ]);
  nowMs = 999;
  expect((await read()).read).toBe(1);
  nowMs = 1000;
  await expect(read()).rejects.toThrow("the store fails");
  expect((await read()).read).toBe(3);
  expect(asked).toEqual(Array.from({ length: 3 }, () => ({ scope, fingerprint: undefined })));
});
