import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createBody, fileForm, openRunning, queuesOf } from "../service/running.ts";
import type { Answered, Running, Sent } from "../service/running.ts";
import { withMethods } from "../store/with-methods.ts";

const WAIT = { timeout: 10_000, interval: 20 };
const ASYNC = { prefer: "respond-async" };

let running: Running;
/** Creates and updates that put a job wait for this. */
let held: Promise<void> | undefined;
/** Running jobs wait for this. */
let waiting = 0;
let diskIsFull = false;
/** Jobs that were made to wait. */
let postponements = 0;
/** How far the service's clock is ahead, in ms. */
let aheadMs = 0;
beforeAll(async () => {
  running = await openRunning({
    nowMs: () => Date.now() + aheadMs,
    wrapStore: (store) =>
      withMethods(store, {
        records: {
          updateResource: async (...given) => {
            if (diskIsFull) throw Object.assign(new Error("write"), { code: "ENOSPC" });
            return store.records.updateResource(...given);
          },
        },
        queue: {
          lease: async (request) => {
            waiting += 1;
            await held;
            waiting -= 1;
            return store.queue.lease(request);
          },
          postpone: async (...given) => {
            const isDone = await store.queue.postpone(...given);
            postponements += 1;
            return isDone;
          },
        },
      }),
  });
});
afterAll(() => running.close());

const create = (change: object = {}, headers: object = {}): Promise<Answered> =>
  running.send("POST", "/api/rag/resource", {
    body: createBody({ owner_id: "async", ...change }),
    headers: { ...ASYNC, ...headers },
  });
const at = (method: string, id: string, sent: Sent = {}): Promise<Answered> =>
  running.send(method, `/api/rag/resource/${id}`, sent);
/** Settings that need a model, so that a document waits in the queue. */
const SEMANTIC = { strategy: "semantic", chunkSize: 1000, chunkOverlap: 0 };
const update = (id: string, body: object, headers: Record<string, string> = ASYNC): Promise<Answered> =>
  at("PUT", id, { body, headers });
const settled = (id: string): Promise<Answered> =>
  vi.waitFor(async () => {
    const answer = await at("GET", id);
    expect(answer.json.data.metadata.status).not.toBe("queued");
    return answer;
  }, WAIT);
const find = async (id: string, query: string): Promise<string[]> => {
  const { json } = await running.send("POST", "/rag/query", { body: { query, doc_id: id } });
  return json.results.map(({ payload }: { payload: { content: string } }) => payload.content);
};

const firstJob = async (id: string) =>
  running.store.queue.change({ accountId: await account(), id, nowMs: Date.now() });
/** Leases a job to a process that ends while it runs the job. */
async function crash(number: number): Promise<void> {
  const { queue } = running.store;
  const leased = await queue.lease({ number, worker: "crashed", nowMs: Date.now() + aheadMs, isEarly: true });
  expect(leased).toBeDefined();
  await queue.resume("other", Number.MAX_SAFE_INTEGER, true);
}

/** Holds jobs back during `run`. */
async function holding<T>(run: () => Promise<T>): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  try {
    return await run();
  } finally {
    held = undefined;
    resolve();
  }
}

describe("Prefer: respond-async", () => {
  it("answers a create at once as queued, and chunks it as a synchronous create would", async () => {
    const { answer, before, chunks } = await holding(async () => {
      const made = await create();
      const queued: string = made.json.data._id;
      return { answer: made, before: await at("GET", queued), chunks: await at("GET", `${queued}/chunks`) };
    });
    const id = answer.json.data._id;
    expect(answer).toMatchObject({ status: 202, json: { data: { metadata: { status: "queued" } } } });
    expect(answer.headers["preference-applied"]).toBe("respond-async");
    expect(answer.headers["location"]).toBe(`/api/rag/resource/${id}`);
    expect(before.json.data).toMatchObject({ content: "", metadata: { status: "queued" } });
    expect(chunks.json.data).toEqual({ resourceId: id, version: 0, title: "Tides", chunks: [] });
    const after = await settled(id);
    expect(after.json.data).toMatchObject({
      content: expect.stringContaining("moon"),
      refreshedAt: null,
      metadata: { status: "chunked" },
    });
    expect(after.headers["etag"]).not.toBe(answer.headers["etag"]);
    expect(await find(id, "moon")).toHaveLength(1);
  });

  it("keeps the old version searchable until the new one is complete", async () => {
    const { json } = await create({ content: "Old words." });
    const id = json.data._id;
    await settled(id);
    await holding(async () => {
      const answer = await update(id, { content: "New words." });
      expect(answer).toMatchObject({ status: 202, json: { data: { metadata: { status: "queued" } } } });
      expect(await find(id, "words")).toEqual(["Old words."]);
    });
    await settled(id);
    expect(await find(id, "words")).toEqual(["New words."]);
    expect((await at("GET", `${id}/chunks`)).json.data.version).toBe(2);
  });

  it("applies the changes of a resource in their order, including a synchronous one", async () => {
    const { json } = await create({ content: "Zero." });
    const id = json.data._id;
    await settled(id);
    const { synchronous } = await holding(async () => {
      await update(id, { content: "One." });
      await update(id, { title: "Two", content: "Two." });
      return { synchronous: update(id, { content: "Three." }, {}) };
    });
    expect((await synchronous).json.data).toMatchObject({
      title: "Two",
      content: "Three.",
      metadata: { status: "chunked" },
    });
    // The first update was overtaken by the second.
    expect((await at("GET", `${id}/chunks`)).json.data.version).toBe(3);
    await update(id, { content: "Four." });
    await settled(id);
    expect(await find(id, "one two three four")).toEqual(["Four."]);
  });

  it("ends with the last of several changes that came while an earlier one ran", async () => {
    const { json } = await create({ content: "Zero." });
    const id = json.data._id;
    await settled(id);
    await holding(async () => {
      await update(id, { content: "One." });
      await vi.waitFor(() => expect(waiting).toBe(1), WAIT);
      await update(id, { title: "Two" });
      await update(id, { content: "Three." });
      await update(id, { metadata: { number: 4 } });
      await update(id, { content: "Five." });
    });
    expect((await settled(id)).json.data).toMatchObject({
      title: "Two",
      content: "Five.",
      metadata: { number: 4, status: "chunked" },
    });
    expect((await queuesOf(running)).ingest.waiting).toBe(0);
  });

  it("keeps a new title that was accepted apart from a file that cannot be read", async () => {
    const upload = await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.from("%PDF-1.4 broken"), "broken.pdf"),
    });
    const { id } = await holding(async () => {
      const made = await create({ content: undefined, url: upload.json.file_url });
      await update(made.json.data._id, { title: "Renamed", settings: { chunkSize: 600 } });
      return { id: made.json.data._id };
    });
    expect((await settled(id)).json.data).toMatchObject({
      title: "Renamed",
      metadata: { status: "error", error: "damaged_pdf" },
    });
  });

  it("deletes a resource with a running job at once, and drops the result of the job", async () => {
    const { json } = await create({ content: "Never to be found." });
    const id = json.data._id;
    await settled(id);
    const gone = await holding(async () => {
      await update(id, { content: "Nor this." });
      await vi.waitFor(() => expect(waiting).toBe(1), WAIT);
      return at("DELETE", id);
    });
    expect(gone).toMatchObject({ status: 200, json: { data: { isDeleted: true } } });
    // When a later job has ended, the job of the deleted resource has ended too.
    const other = await create({ content: "Behind it." });
    await settled(other.json.data._id);
    expect((await at("GET", id)).json.data).toMatchObject({ isDeleted: true, content: "" });
    expect(await firstJob(id)).toBeUndefined();
  });

  it("reports why a create failed, and clears the error with a later update", async () => {
    const upload = await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.from("%PDF-1.4 broken"), "broken.pdf"),
    });
    const { json } = await create({ content: undefined, url: upload.json.file_url });
    const id = json.data._id;
    const failed = await settled(id);
    expect(failed.json.data.metadata).toEqual({
      status: "error",
      error: "damaged_pdf",
      message: expect.stringContaining("PDF"),
    });
    const good = await running.send("POST", "/image/processing/upload", { body: fileForm("Good words.") });
    await update(id, { url: good.json.file_url });
    expect((await settled(id)).json.data).toMatchObject({
      content: "Good words.",
      metadata: { status: "chunked" },
    });
  });

  it("keeps the old version of a failed update, reports the failure and counts it", async () => {
    const before = await queuesOf(running);
    const upload = await running.send("POST", "/image/processing/upload", { body: fileForm("Old file.") });
    const { json } = await create({ content: undefined, url: upload.json.file_url });
    const id = json.data._id;
    await settled(id);
    const broken = await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.from("%PDF-1.4 broken"), "broken.pdf"),
    });
    await update(id, { url: broken.json.file_url });
    const failed = await settled(id);
    expect(failed.json.data).toMatchObject({
      content: "Old file.",
      url: upload.json.file_url,
      metadata: { status: "error" },
    });
    expect(await find(id, "old file")).toEqual(["Old file."]);
    const after = await queuesOf(running);
    expect(after.ingest.failed).toBe(before.ingest.failed + 1);
  });

  /** A resource whose update waits because the disk is full, and stays full. */
  const postponed = async () => {
    const { json } = await create({ content: "Patient words." });
    const id = json.data._id;
    await settled(id);
    diskIsFull = true;
    const before = postponements;
    await update(id, { content: "Later words." });
    await vi.waitFor(() => expect(postponements).toBeGreaterThan(before), WAIT);
    return { id, job: await firstJob(id) };
  };

  it("a queued document waits for space on the disk, and is retried", async () => {
    const { id } = await postponed();
    diskIsFull = false;
    // A later change of the same resource runs the waiting change first.
    expect((await update(id, { title: "Now" }, {})).json.data).toMatchObject({
      title: "Now",
      content: "Later words.",
      metadata: { status: "chunked" },
    });
  });

  it("retries a postponed change by itself when it is due", async () => {
    const { id } = await postponed();
    diskIsFull = false;
    aheadMs += 10 * 60 * 1000;
    // Another job wakes the queue.
    await create({ content: "Other words." });
    expect((await settled(id)).json.data).toMatchObject({ content: "Later words." });
  });

  it("retries a postponed change in time even if the clock is set back", async () => {
    const { id } = await postponed();
    diskIsFull = false;
    aheadMs -= 5 * 60 * 1000;
    await create({ content: "Wakes the queue." });
    aheadMs += 2 * 60 * 1000;
    await create({ content: "And again." });
    expect((await settled(id)).json.data).toMatchObject({ content: "Later words." });
  });

  it("restarts a change that a crash interrupted by itself, not with a later change", async () => {
    const { id, job } = await postponed();
    await crash(job?.number ?? 0);
    diskIsFull = false;
    const later = await update(id, { title: "Now" }, {});
    expect(later).toMatchObject({ status: 429, json: { error: { code: "ingest_busy" } } });
    expect((await at("DELETE", id)).status).toBe(200);
  });

  it("fails a document that crashed the process repeatedly", async () => {
    const { json } = await create({ content: "First words." });
    const id = json.data._id;
    await settled(id);
    await holding(async () => {
      await update(id, { content: "Deadly words." });
      const job = await firstJob(id);
      // The first crash proves nothing: other jobs may have been running.
      for (let times = 0; times < 4; times++) await crash(job?.number ?? 0);
    });
    const failed = await settled(id);
    expect(failed.json.data).toMatchObject({
      content: "First words.",
      metadata: { status: "error", error: "internal", message: expect.stringContaining("crashed 4 times") },
    });
  });

  it("answers a change that ends within the wait as a synchronous one", async () => {
    const waits = { prefer: "respond-async, wait=30" };
    const made = await create({ content: "Quick words." }, waits);
    const id = made.json.data._id;
    expect(made).toMatchObject({ status: 201, json: { data: { refreshedAt: null } } });
    expect(made.json.data.metadata).toBeUndefined();
    expect(await find(id, "quick")).toEqual(["Quick words."]);
    const changed = await update(id, { content: "Other words." }, waits);
    expect(changed).toMatchObject({
      status: 200,
      json: { data: { content: "Other words.", metadata: { status: "chunked" } } },
    });
    expect(changed.headers["etag"]).toBe((await at("GET", id)).headers["etag"]);
  });

  it("answers a change that outlasts the wait before its end, and one that fails within it with the reason", async () => {
    const { slow } = await holding(async () => ({
      slow: await create({ settings: SEMANTIC }, { prefer: "respond-async, wait=1" }),
    }));
    expect(slow).toMatchObject({ status: 202, json: { data: { metadata: { status: "queued" } } } });
    await settled(slow.json.data._id);
    const broken = await running.send("POST", "/image/processing/upload", {
      body: fileForm(Buffer.from("%PDF-1.4 broken"), "broken.pdf"),
    });
    const failed = await create(
      { content: undefined, url: broken.json.file_url },
      { prefer: "respond-async, wait=30" },
    );
    expect(failed).toMatchObject({
      status: 202,
      json: { data: { metadata: { status: "error", message: expect.stringContaining("PDF") } } },
    });
  });

  it("runs a quick change synchronously if the caller waits, without writing a job", async () => {
    const waits = { prefer: "respond-async, wait=1" };
    const { made, changed, retitled, behind } = await holding(async () => {
      const first = await create({ content: "Quick words." }, waits);
      const id = first.json.data._id;
      const second = await update(id, { content: "Other words." }, waits);
      const third = await update(id, { title: "Other title" }, waits);
      await update(id, { content: "Slow words." });
      return {
        made: first,
        changed: second,
        retitled: third,
        behind: await update(id, { title: "Last title" }, waits),
      };
    });
    expect([made.status, changed.status, retitled.status, behind.status]).toEqual([201, 200, 200, 202]);
    const after = await settled(made.json.data._id);
    expect(after.json.data).toMatchObject({ title: "Last title", content: "Slow words." });
  });

  it("answers a waiting request that its resource was deleted", async () => {
    const { json } = await create({ settings: SEMANTIC });
    await settled(json.data._id);
    const { waits } = await holding(async () => {
      const change = update(json.data._id, { content: "Never." }, { prefer: "respond-async, wait=50" });
      await vi.waitFor(() => expect(waiting).toBe(1), WAIT);
      await at("DELETE", json.data._id);
      return { waits: change };
    });
    expect(await waits).toMatchObject({ status: 404, json: { error: { code: "resource_not_found" } } });
  });

  it("refuses invalid requests at once", async () => {
    const { json } = await create();
    const id = json.data._id;
    await settled(id);
    const refused = await Promise.all([
      create({ title: "" }),
      create({ content: undefined }),
      create({ url: "http://example.com/" }),
      create({ content: undefined, url: `${running.url}/files/${"x".repeat(43)}/a.txt` }),
      create({ content: undefined, url: "ftp://example.com/" }),
      update(id, {}),
      update(id, { url: "http://example.com/" }),
      update(id, { settings: { chunkSize: 10, chunkOverlap: 10 } }),
      update("f".repeat(24), { title: "x" }),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 404]);
    expect((await at("GET", id)).json.data.metadata.status).toBe("chunked");
  });

  it("honours Idempotency-Key: creates one resource and repeats the first answer", async () => {
    const first = await create({}, { "idempotency-key": "async-1" });
    await settled(first.json.data._id);
    const again = await create({}, { "idempotency-key": "async-1" });
    expect(again).toMatchObject({ status: 202, text: first.text });
    expect(again.headers["preference-applied"]).toBe("respond-async");
  });

  it("drops the waiting jobs of a deleted resource", async () => {
    const { json } = await create();
    const id = json.data._id;
    await settled(id);
    const { deleted } = await holding(async () => {
      await update(id, { content: "One." });
      await update(id, { content: "Two." });
      return { deleted: at("DELETE", id) };
    });
    expect((await deleted).status).toBe(200);
    expect((await queuesOf(running)).ingest.waiting).toBe(0);
  });
});

const account = async (): Promise<string> => (await running.store.records.ensureAccount("local")).id;
