import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { FRESH_WAITS_MAX } from "../../../src/kb/resources/receipt.ts";
import type { LedgerReceipt, LedgerReceiptRequest } from "../../../src/wire/receipt.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { createBody, openRunning, type Answered, type Running } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const WAIT = { timeout: 10_000, interval: 20 };
const FOLDER = {
  folder: "/notes",
  ownerId: "local",
  collectionId: "c",
  asOf: "2026-01-01T00:00:00.000Z",
  current: true,
  pending: 0,
  failed: 0,
  held: 0,
  unreadable: 0,
  noticing: "watched",
} as const;

let running: Running;
/** Jobs wait for this before they are leased. */
let held: Promise<void> | undefined;
let letJobsGo = (): void => undefined;
/** Vectors of documents wait for this. */
let embedding: Promise<void> | undefined;
let known: LedgerReceipt | undefined;
let asked: (LedgerReceiptRequest & { readonly isAborted?: boolean })[] = [];

beforeAll(async () => {
  running = await openRunning({
    askFolders: async (request) => {
      asked.push(request);
      return known;
    },
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
beforeEach(() => {
  known = undefined;
  asked = [];
});

const hold = (): void => {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  letJobsGo = resolve;
};
const create = async (change: object, headers: Record<string, string> = {}) => {
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody(change), headers });
  return json.data;
};
const createLater = (change: object) => create(change, { prefer: "respond-async" });
const search = (body: object, key?: string): Promise<Answered> =>
  running.send("POST", "/rag/query", { body: { query: "moon", ...body }, ...(key && { key }) });

describe("the receipt of a search", () => {
  it("the receipt of a search is current when everything of the scope is searchable, and knows no folder without a daemon", async () => {
    const { collectionId } = await create({ owner_id: "calm" });
    const { json } = await search({ collection_id: collectionId, owner_id: "calm" });
    expect(json.results).toHaveLength(1);
    expect(json.receipt).toEqual({
      current: true,
      folders: [],
      foldersUnknown: true,
      documents: { waiting: 0, failed: 0, withoutVectors: 0 },
      changed: [],
    });
  });

  it("the receipt of a search counts the documents that wait, of the searched owner alone", async () => {
    const { collectionId } = await create({ owner_id: "other" });
    hold();
    const { _id: id } = await createLater({ owner_id: "slow" });
    const slow = await search({ collection_id: collectionId, owner_id: "slow" });
    expect(slow.json.receipt).toMatchObject({ current: false, documents: { waiting: 1 } });
    expect((await search({ doc_id: id })).json.receipt).toMatchObject({ documents: { waiting: 1 } });
    const other = await search({ collection_id: collectionId, owner_id: "other" });
    expect(other.json.receipt.current).toBe(true);
    letJobsGo();
  });

  it("names the documents whose files have changed, and the folders of the scope", async () => {
    const { _id: id, collectionId } = await create({ owner_id: "folder" });
    known = { folders: [{ ...FOLDER, pending: 2, current: false }], changed: [id] };
    const { json } = await search({ collection_id: collectionId, owner_id: "folder" });
    expect(json.receipt).toMatchObject({ current: false, folders: [{ pending: 2 }], changed: [id] });
    expect(asked).toEqual([
      { scopes: [{ collectionId, ownerId: "folder" }], cited: [] },
      { scopes: [], cited: [id] },
    ]);
  });

  it("the receipt of a search counts chunks that are not searchable by meaning yet", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    embedding = promise;
    const { collectionId } = await create({ owner_id: "late", collection_details: "moderate" });
    const ask = { collection_id: collectionId, owner_id: "late" };
    expect((await search(ask)).json.receipt).toMatchObject({
      current: false,
      documents: { withoutVectors: 1 },
    });
    const fresh = search({ ...ask, freshness: "current" });
    embedding = undefined;
    resolve();
    expect((await fresh).json.receipt).toMatchObject({ current: true, documents: { withoutVectors: 0 } });
  });
});

describe("a search with freshness current", () => {
  it("a search with freshness current waits for the documents that were accepted before it, and finds them", async () => {
    const { collectionId } = await create({ owner_id: "first" });
    hold();
    await createLater({ owner_id: "waited", content: "A pelican on the moon." });
    const answer = search({ collection_id: collectionId, owner_id: "waited", freshness: "current" });
    await vi.waitFor(() => expect(asked).toHaveLength(1), WAIT);
    letJobsGo();
    const { json } = await answer;
    expect(json.results[0].payload.content).toContain("pelican");
    expect(json.receipt).toMatchObject({ current: true, documents: { waiting: 0 } });
    expect(json.receipt.gaveUp).toBeUndefined();
  });

  it("passes the wait to the daemon of the same process, and says what that found", async () => {
    const { collectionId } = await create({ owner_id: "daemon" });
    known = { folders: [{ ...FOLDER, failed: 1, current: false }], changed: [] };
    const { json } = await search({
      collection_id: collectionId,
      owner_id: "daemon",
      freshness: "current",
      wait_seconds: 7,
    });
    expect(asked[0]).toMatchObject({ waitSeconds: 7 });
    expect(json.receipt).toMatchObject({ current: false, folders: [{ failed: 1 }] });
  });

  it("answers when the time is over, and says so", async () => {
    const { collectionId } = await create({ owner_id: "first" });
    hold();
    await createLater({ owner_id: "stuck" });
    const ask = { collection_id: collectionId, owner_id: "stuck", freshness: "current" };
    const { json } = await search({ ...ask, wait_seconds: 0.2 });
    expect(json.receipt).toMatchObject({ current: false, gaveUp: "timeout", documents: { waiting: 1 } });
    letJobsGo();
  });

  it("refuses a longer wait than is allowed", async () => {
    const { status, json } = await search({ doc_id: "a".repeat(24), freshness: "current", wait_seconds: 51 });
    expect({ status, field: json.error.field }).toEqual({ status: 400, field: "wait_seconds" });
  });

  it("answers without a wait when too many questions of the account wait, and lets other accounts wait", async () => {
    const { collectionId } = await create({ owner_id: "first" });
    hold();
    await createLater({ owner_id: "crowd" });
    const ask = { collection_id: collectionId, owner_id: "crowd", freshness: "current" };
    const crowd = Promise.all(
      Array.from({ length: FRESH_WAITS_MAX }, () => search({ ...ask, wait_seconds: 2 })),
    );
    await vi.waitFor(() => expect(asked).toHaveLength(FRESH_WAITS_MAX), WAIT);
    const key = await running.issueKey("guest");
    const { json: guest } = await running.send("POST", "/api/rag/resource", { body: createBody(), key });
    const { collectionId: theirs, ownerId } = guest.data;
    const fresh = await search({ ...ask, collection_id: theirs, owner_id: ownerId }, key);
    expect(fresh.json.receipt).toMatchObject({ current: true });
    const ends = (await crowd).map(({ json }) => json.receipt.gaveUp);
    expect(new Set(ends)).toEqual(new Set(["timeout", "busy"]));
    letJobsGo();
  });
});
