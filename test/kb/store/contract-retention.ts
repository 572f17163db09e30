import { describe, expect, it } from "vitest";
import { ingestLine, type LeasedJob } from "../../../src/kb/queue/queue.ts";
import { OVERDUE_MS } from "../../../src/kb/store/sql/queue.ts";
import { receiverOf, stateOf } from "../../../src/kb/store/webhooks.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Chunking } from "../../../src/kb/store/chunks.ts";
import { LATER, NOW, wordsOnly, type StoreFixture } from "./store-fixture.ts";

const FAR = "2026-06-01T00:00:00.000Z";
const DAY_MS = 24 * 60 * 60 * 1000;

/** Retention, the queues of documents and deliveries, and what is written with a change. */
export function retentionContract(fixture: StoreFixture): void {
  const { create, resource, alone } = fixture;
  const at = (id: string) => ({ accountId: fixture.account.id, id });
  const job = (body: object, more: object = {}) => ({
    body: JSON.stringify(body),
    fileToken: null,
    nowMs: 1000,
    jobsMax: 100,
    charsMax: 10_000,
    ...more,
  });
  const file = (token: string) => ({
    token,
    accountId: fixture.account.id,
    name: "a.txt",
    mediaType: "text/plain",
    sizeBytes: 1,
    sha256: "e".repeat(64),
    createdAt: NOW,
  });

  describe("retention", () => {
    it("returns the record of a deleted resource, without its text, until it is purged", () =>
      alone(async (store) => {
        const { id } = await create("kiwi", { title: "Fruit", metadata: { a: 1 } });
        expect(await store.records.deletedResource(at(id))).toBeUndefined();
        await store.records.deleteResource({ ...at(id), nowIso: LATER });
        const deleted = await store.records.deletedResource(at(id));
        expect(deleted).toMatchObject({ title: "Fruit", content: "", isDeleted: true, updatedAt: LATER });
        const { id: collectionId } = await fixture.collection();
        const query = { accountId: fixture.account.id, collectionId, ownerId: "ann", afterId: undefined };
        const page = await store.records.listResources({ ...query, limit: 10, charsMax: 100, deleted: true });
        expect(page.resources).toEqual([deleted]);
        expect(await store.records.purgeDeleted(LATER, 10)).toBe(0);
        expect(await store.records.purgeDeleted(FAR, 10)).toBe(1);
        expect(await store.records.deletedResource(at(id))).toBeUndefined();
      }));

    it("removes a file that has been unused for long enough", () =>
      alone(async (store) => {
        for (const token of ["used", "unused", "queued", "released"])
          await store.records.addFile(file(token));
        await create("used", { fileToken: "used", origin: "file" });
        const released = await create("released", { fileToken: "released", origin: "file" });
        const waiting = await create("waiting");
        await store.records.enqueueUpdate(
          { ...at(waiting.id), nowIso: LATER },
          job({}, { fileToken: "queued" }),
        );
        expect(await store.records.unusedFiles(NOW, 10)).toEqual([]);
        expect(await store.records.unusedFiles(FAR, 10)).toEqual(["unused"]);
        await store.records.deleteResource({ ...at(released.id), nowIso: LATER });
        expect(await store.records.unusedFiles(LATER, 10)).toEqual(["unused"]);
        expect(await store.records.unusedFiles(FAR, 10)).toEqual(["released", "unused"]);
        expect(await store.records.removeUnusedFile("used", FAR)).toBe(false);
        expect(await store.records.removeUnusedFile("unused", FAR)).toBe(true);
        expect(await store.records.file("unused")).toBeUndefined();
        expect(await store.records.file("used")).toBeDefined();
      }));
  });

  describe("erasure", () => {
    it("removes resources and their chunks, once, and nothing of others", () =>
      alone(async (store) => {
        const [gone, kept] = [await create("one"), await create("two")];
        // A live one stays.
        for (const id of [gone.id, "unknown"]) await store.records.eraseResource(at(id));
        expect(await store.records.resource(at(gone.id))).toBeDefined();
        await store.records.deleteResource({ ...at(gone.id), nowIso: LATER });
        for (const id of [gone.id, gone.id]) await store.records.eraseResource(at(id));
        expect(await store.records.resource(at(gone.id))).toBeUndefined();
        expect(await store.records.deletedResource(at(gone.id))).toBeUndefined();
        expect(await store.records.resource(at(kept.id))).toBeDefined();
      }));

    it("names the files that a resource was the last to use", () =>
      alone(async (store) => {
        for (const token of ["released", "of another", "used", "never used"])
          await store.records.addFile(file(token));
        const [gone, other] = [
          await create("one", { fileToken: "released", origin: "file" }),
          await create("two", { fileToken: "of another", origin: "file" }),
        ];
        await create("three", { fileToken: "used", origin: "file" });
        for (const { id } of [gone, other]) await store.records.deleteResource({ ...at(id), nowIso: LATER });
        expect(await store.records.filesToErase(at(gone.id))).toEqual(["released"]);
      }));

    it("removes the record of a file that nothing uses, and reports that of another as used or gone", () =>
      alone(async (store) => {
        for (const token of ["free", "used"]) await store.records.addFile(file(token));
        await create("one", { fileToken: "used", origin: "file" });
        const done = [];
        for (const token of ["free", "free", "used", "unknown"])
          done.push(await store.records.eraseFile(token));
        expect(done).toEqual([true, false, false, false]);
        expect([await store.records.file("free"), (await store.records.file("used"))?.token]).toEqual([
          undefined,
          "used",
        ]);
      }));
  });

  describe("a change of a resource", () => {
    it("releases the previous file of a resource that gets another one", () =>
      alone(async (store) => {
        for (const token of ["before", "now"]) await store.records.addFile(file(token));
        const { id } = await create("one", { fileToken: "before", origin: "file" });
        await store.records.updateResource({ ...at(id), nowIso: LATER, title: "Other" }, undefined);
        expect(await store.records.unusedFiles(FAR, 10)).toEqual(["now"]);
        await store.records.updateResource({ ...at(id), nowIso: LATER, fileToken: "now" }, undefined);
        // The file was in use until then.
        expect(await store.records.unusedFiles(LATER, 10)).toEqual([]);
        expect(await store.records.unusedFiles(FAR, 10)).toEqual(["before"]);
      }));

    it("keeps the warning of an unchanged text and replaces it with that of a new one", () =>
      alone(async (store) => {
        const warning = "Two pages hold no text.";
        const { id } = await create("one", {}, { ...wordsOnly("one"), warning });
        const after = async (change: object, chunking?: Chunking) =>
          (await store.records.updateResource({ ...at(id), nowIso: LATER, ...change }, chunking))?.warning;
        expect(await after({ title: "Other" })).toBe(warning);
        expect(await after({ content: "two" }, { ...wordsOnly("two"), warning: "None." })).toBe("None.");
        expect(await after({ content: "three" }, wordsOnly("three"))).toBeNull();
      }));

    it("sets `refreshedAt` in every update but one that completes a create", () =>
      alone(async (store) => {
        const { id } = await create("one");
        const after = async (change: object) =>
          (await store.records.updateResource({ ...at(id), nowIso: LATER, ...change }, undefined))
            ?.refreshedAt;
        expect(await after({ completesCreate: true })).toBeNull();
        expect(await after({ title: "Other" })).toBe(LATER);
      }));
  });

  describe("the queue of documents", () => {
    const NOW_MS = 1000;
    const first = (store: Store, id: string) => store.queue.change({ ...at(id), nowMs: NOW_MS });
    const lease = async (store: Store, id: string): Promise<LeasedJob> => {
      const number = (await first(store, id))?.number ?? 0;
      const leased = await store.queue.lease({ number, worker: "w", nowMs: NOW_MS });
      if (leased === undefined) throw new Error("a job just put is not due");
      return leased;
    };

    it("has one entry for each document, into which newer changes are merged", () =>
      alone(async (store) => {
        const one = await create("one");
        const two = await create("two");
        const put = (id: string, update: object, fileToken?: string) =>
          store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update }, { fileToken }));
        const bodyOf = async (id: string): Promise<unknown> => JSON.parse((await lease(store, id)).body);
        expect(await put(one.id, { title: "New" }, "old")).toMatchObject({
          status: "queued",
          revision: 2,
          version: 1,
        });
        const queued = await first(store, one.id);
        expect(queued).toEqual({
          number: expect.any(Number),
          accountId: fixture.account.id,
          ownerId: one.ownerId,
          line: ingestLine(fixture.account.id, one.ownerId),
          name: one.id,
          // Due at any clock time: the clock may be set back before the job starts.
          dueMs: 0,
          bodyBytes: 26,
          changedMs: expect.any(Number),
          crashes: 0,
        });
        await put(one.id, { content: "words", locations: [] });
        await put(two.id, { content: "other words" });
        await put(one.id, { url: "http://example.com/", settings: { chunkSize: 600 } }, "new");
        await put(one.id, { settings: { chunkOverlap: 500 } });
        expect(await first(store, one.id)).toMatchObject({ number: queued?.number });
        const titled = { title: "New", settings: { chunkOverlap: 500 } };
        expect(await bodyOf(one.id)).toEqual({
          update: {
            title: "New",
            url: "http://example.com/",
            settings: { chunkSize: 600, chunkOverlap: 500 },
          },
          apart: titled,
        });
        const refused = put(one.id, { settings: { chunkOverlap: 600 } });
        await expect(refused).rejects.toMatchObject({ code: "invalid_field" });
        expect(await bodyOf(two.id)).toEqual({ update: { content: "other words" } });
        expect(await store.queue.figures("ingest", fixture.account.id)).toMatchObject({
          waiting: 2,
          oldestMs: 1000,
        });
      }));

    it("a change to a file, which may be the same, keeps the pages that were read, and a text drops them", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = (update: object) =>
          store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update }));
        const url = "http://127.0.0.1/a.pdf";
        await put({ url });
        const running = await lease(store, id);
        await store.queue.keepPages(running, '{"digest":{}}');
        await put({ title: "New" });
        await put({ url });
        const again = await lease(store, id);
        expect(JSON.parse(again.body)).toMatchObject({ update: { url, title: "New" } });
        expect(await store.queue.pagesOf(again)).toBe('{"digest":{}}');
        await put({ url: "http://127.0.0.1/b.pdf" });
        expect(await store.queue.pagesOf(await lease(store, id))).toBe('{"digest":{}}');
        await put({ content: "words" });
        expect(await store.queue.pagesOf(await lease(store, id))).toBeUndefined();
      }));

    it("says of a queued document which pages are being read, to every process, until it fails or changes", () =>
      alone(async (store) => {
        const reading = "Pages 1–2 are still being read.";
        const warningOf = async (id: string) => (await store.records.resource(at(id)))?.warning;
        const update = { url: "http://127.0.0.1/a.pdf" };
        const fresh = await store.records.enqueueCreate(resource(""), job({ update }));
        const job1 = await lease(store, fresh.id);
        expect(await store.queue.noteReading(job1, reading)).toBe(true);
        expect(await warningOf(fresh.id)).toBe(reading);
        await store.records.enqueueUpdate({ ...at(fresh.id), nowIso: LATER }, job({ update }));
        expect(await store.queue.noteReading(job1, reading)).toBe(false);
        expect(await warningOf(fresh.id)).toBeNull();
        const job2 = await lease(store, fresh.id);
        await store.queue.noteReading(job2, reading);
        await store.records.failJob(job2, { code: "internal", message: "no text" }, LATER);
        expect(await warningOf(fresh.id)).toBeNull();
        const { id } = await create("old words");
        await store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update }));
        const job3 = await lease(store, id);
        expect(await store.queue.noteReading(job3, reading)).toBe(true);
        await store.records.failJob(job3, { code: "internal", message: "no text" }, LATER);
        expect(await warningOf(id)).toBe("Pages 1–2 are not read.");
      }));

    it("a part of a text is a version that leaves its job, unless that was overtaken", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = () =>
          store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: { content: "whole" } }));
        await put();
        const running = await lease(store, id);
        const write = (content: string, isPart: boolean) =>
          store.records.updateResource({ ...at(id), content, nowIso: LATER }, wordsOnly(content), {
            job: running,
            isPart,
          });
        expect(await write("part", true)).toMatchObject({ status: "chunked", version: 2, content: "part" });
        expect(await first(store, id)).toMatchObject({ number: running.number });
        expect(await write("whole", false)).toMatchObject({ status: "chunked", version: 3 });
        expect(await first(store, id)).toBeUndefined();
        await put();
        await expect(write("part", true)).rejects.toMatchObject({ code: "lease_lost" });
        expect(await store.records.resource(at(id))).toMatchObject({ status: "queued", content: "whole" });
        const last = await lease(store, id);
        const reading = { ...wordsOnly("part"), warning: "Page 2 is still being read." };
        const change = { ...at(id), content: "part", nowIso: LATER };
        await store.records.updateResource(change, reading, { job: last, isPart: true });
        await store.records.failJob(last, { code: "internal", message: "it is broken" }, LATER);
        expect(await store.records.resource(at(id))).toMatchObject({
          status: "error",
          content: "part",
          warning: "Page 2 is not read.",
        });
      }));

    it("a newer change of a document ends the lease of the one that runs, and is due at once", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = (content: string) =>
          store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: { content } }));
        await put("one");
        const running = await lease(store, id);
        await store.queue.postpone(running, { dueMs: NOW_MS + 1000, nowMs: NOW_MS, counts: true });
        const again = await store.queue.lease({
          number: running.number,
          worker: "w",
          nowMs: NOW_MS,
          isEarly: true,
        });
        expect(again).toMatchObject({ attempts: 1 });
        await put("two");
        const change = { ...at(id), content: "one", nowIso: LATER };
        const overtaken = store.records.updateResource(change, wordsOnly("one"), { job: again ?? running });
        await expect(overtaken).rejects.toMatchObject({ code: "lease_lost" });
        expect(await store.queue.complete(again ?? running)).toBe(false);
        const next = await lease(store, id);
        expect(next).toMatchObject({ attempts: 0, body: '{"update":{"content":"two"}}' });
        expect(next.number).toBe(running.number);
      }));

    it("a document is overdue ten minutes after a worker had it last, or after its first waiting change", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = (nowMs: number) =>
          store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: {} }, { nowMs }));
        const overdue = async (nowMs: number) =>
          (await store.queue.figures("ingest", undefined, nowMs)).overdue;
        await put(NOW_MS);
        expect(await overdue(NOW_MS + OVERDUE_MS - 1)).toBe(0);
        expect(await overdue(NOW_MS + OVERDUE_MS)).toBe(1);
        await lease(store, id);
        // Overtakes the leased one, and then one that waits.
        for (const nowMs of [NOW_MS + OVERDUE_MS, NOW_MS + 1.5 * OVERDUE_MS]) {
          await put(nowMs);
          expect(await overdue(NOW_MS + 2 * OVERDUE_MS - 1)).toBe(0);
          expect(await overdue(NOW_MS + 2 * OVERDUE_MS)).toBe(1);
        }
        const later = NOW_MS + 3 * OVERDUE_MS;
        await store.queue.postpone(await lease(store, id), { dueMs: later, nowMs: NOW_MS, counts: true });
        for (const nowMs of [later + OVERDUE_MS / 2, later + OVERDUE_MS - 1]) {
          await put(nowMs);
          expect(await overdue(later + OVERDUE_MS - 1)).toBe(0);
          expect(await overdue(later + OVERDUE_MS)).toBe(1);
        }
      }));

    it("ends a job in the transaction of its write or of its failure", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = () => store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: {} }));
        const fail = async () =>
          store.records.failJob(
            await lease(store, id),
            { code: "damaged_pdf", message: "it is broken" },
            LATER,
          );
        await put();
        const overtaken = await lease(store, id);
        await put();
        await store.records.failJob(overtaken, { code: "internal", message: "it is old" }, LATER);
        // A newer change waits, so the state stays `queued`.
        expect(await store.records.resource(at(id))).toMatchObject({ status: "queued", statusMessage: null });
        expect(await store.records.failedResources(undefined)).toBe(0);
        await fail();
        expect(await store.records.resource(at(id))).toMatchObject({
          status: "error",
          statusMessage: "it is broken",
          statusError: "damaged_pdf",
          content: "old words",
          version: 1,
        });
        expect(await store.records.failedResources(fixture.account.id)).toBe(1);
        await store.records.updateResource({ ...at(id), title: "x", nowIso: LATER }, undefined);
        expect(await store.records.resource(at(id))).toMatchObject({ status: "error" });
        await store.records.updateResource({ ...at(id), clearsError: true, nowIso: LATER }, undefined);
        expect(await store.records.resource(at(id))).toMatchObject({
          status: "chunked",
          statusMessage: null,
          statusError: null,
        });
        await put();
        const change = { ...at(id), content: "new words", nowIso: LATER };
        await store.records.updateResource(change, wordsOnly("new words"), { job: await lease(store, id) });
        expect(await first(store, id)).toBeUndefined();
        expect(await store.records.resource(at(id))).toMatchObject({ status: "chunked", version: 2 });
        await put();
        await store.records.deleteResource({ ...at(id), nowIso: LATER });
        expect(await first(store, id)).toBeUndefined();
      }));

    it("writes what is apart from an unreadable text in the transaction of the failure", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        const put = () => store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: {} }));
        const fail = (of: LeasedJob) =>
          store.records.updateResource({ ...at(id), title: "apart", nowIso: LATER }, undefined, {
            job: of,
            failure: { code: "damaged_pdf", message: "it is broken" },
          });
        await put();
        const overtaken = await lease(store, id);
        await put();
        await expect(fail(overtaken)).rejects.toMatchObject({ code: "lease_lost" });
        expect(await store.records.resource(at(id))).toMatchObject({ title: "Untitled", status: "queued" });
        await fail(await lease(store, id));
        expect(await first(store, id)).toBeUndefined();
        expect(await store.records.resource(at(id))).toMatchObject({
          title: "apart",
          status: "error",
          statusMessage: "it is broken",
          statusError: "damaged_pdf",
          content: "old words",
        });
      }));

    it("writes nothing for a job whose lease was lost", () =>
      alone(async (store) => {
        const { id } = await create("old words");
        await store.records.enqueueUpdate({ ...at(id), nowIso: LATER }, job({ update: {} }));
        const lost = await lease(store, id);
        const held = await lease(store, id);
        const change = { ...at(id), content: "new words", nowIso: LATER };
        const write = (of: LeasedJob) =>
          store.records.updateResource(change, wordsOnly("new words"), { job: of });
        await expect(write(lost)).rejects.toMatchObject({ code: "lease_lost" });
        await store.records.failJob(lost, { code: "damaged_pdf", message: "it is broken" }, LATER);
        expect(await store.records.resource(at(id))).toMatchObject({
          status: "queued",
          content: "old words",
        });
        expect(await write(held)).toMatchObject({ status: "chunked", content: "new words" });
      }));

    it("refuses documents above the maximum number and size of waiting jobs", () =>
      alone(async (store) => {
        const put = (body: object, more: object) =>
          store.records.enqueueCreate(resource(""), job(body, more));
        await put({}, { charsMax: 1 });
        await expect(put({}, { charsMax: 3 })).rejects.toMatchObject({ code: "queue_full", retryable: true });
        await put({}, { jobsMax: 3 });
        await expect(put({}, { jobsMax: 2 })).rejects.toMatchObject({ code: "queue_full" });
        expect((await fixture.collection()).resources).toBe(2);
      }));

    it("reserves a share of the queue for documents of another account", () =>
      alone(async (store) => {
        const other = await store.records.ensureAccount("another");
        const put = (accountId: string, more: object) =>
          store.records.enqueueCreate(resource("", { accountId }), job({}, more));
        const own = fixture.account.id;
        const { id } = await create("words");
        for (let number = 0; number < 2; number += 1) await put(own, {});
        for (const bounds of [{ jobsMax: 3 }, { charsMax: 6 }]) {
          await expect(put(own, bounds)).rejects.toMatchObject({ code: "queue_full", retryable: true });
        }
        // Updates count like creates.
        const update = { ...at(id), nowIso: LATER };
        await expect(store.records.enqueueUpdate(update, job({}, { jobsMax: 3 }))).rejects.toMatchObject({
          code: "queue_full",
        });
        await put(other.id, { jobsMax: 3, charsMax: 6 });
        expect((await store.queue.figures("ingest", other.id)).waiting).toBe(1);
      }));
  });

  describe("the queue of deliveries", () => {
    const NOW_MS = Date.parse(NOW);
    const endpoint = (id: string) => ({
      id,
      accountId: fixture.account.id,
      url: "https://example.com/",
      description: "",
      events: [],
      secret: "whsec_x",
      enabled: true,
      nowIso: NOW,
    });
    const target = { url: "https://example.com/own", headers: { "x-own": "1" } };
    const lease = async (store: Store, nowMs = NOW_MS): Promise<LeasedJob[]> => {
      const due = await store.queue.due({ queue: "webhook", nowMs, perLine: 9 });
      const leased = due.map(({ number }) => store.queue.lease({ number, worker: "w", nowMs }));
      return (await Promise.all(leased)).filter((each) => each !== undefined);
    };

    it("queues a message for each endpoint, and orders addresses given with messages by host", () =>
      alone(async (store) => {
        await store.records.addEndpoint(endpoint("one"), 2);
        await store.records.addEndpoint(endpoint("two"), 2);
        await expect(store.records.addEndpoint(endpoint("three"), 2)).rejects.toMatchObject({
          code: "too_many_endpoints",
        });
        await create("some words");
        const accountId = fixture.account.id;
        const message = { accountId, eventId: "own", type: "chat", body: "{}" };
        await store.records.addDelivery({ ...message, to: { target }, nowMs: NOW_MS });
        const due = await lease(store);
        const byLine = new Map(due.map(({ line, name, body }) => [line, { name, ...JSON.parse(body) }]));
        expect([...byLine.keys()].toSorted()).toEqual([`${accountId} example.com`, "one", "two"]);
        expect(byLine.get("one")).toMatchObject({ type: "resource.chunked" });
        expect(byLine.get("one")).toEqual(byLine.get("two"));
        expect(byLine.get(`${accountId} example.com`)).toEqual({
          name: "own",
          type: "chat",
          body: "{}",
          target,
        });
        expect([...byLine.keys()].map(receiverOf).toSorted()).toEqual(["example.com", "one", "two"]);
        expect(await lease(store)).toEqual([]);
      }));

    it("settles messages that were delivered, failed and given up", () =>
      alone(async (store) => {
        const accountId = fixture.account.id;
        await store.records.addEndpoint(endpoint("one"), 2);
        for (const text of ["a", "b", "c"]) await create(text);
        const [a, b, c] = await lease(store);
        if (a === undefined || b === undefined || c === undefined) throw new Error("three were written");
        const retry = { kind: "retry", dueMs: NOW_MS + 5, nowMs: NOW_MS, problem: "slow" } as const;
        await store.records.settleDelivery(a, { nowIso: LATER, kind: "delivered" });
        await store.records.settleDelivery(b, { nowIso: LATER, ...retry });
        await store.records.settleDelivery(c, {
          nowIso: LATER,
          kind: "failed",
          problem: "gone",
          disable: true,
        });
        // Their leases have ended.
        for (const each of [a, b, c])
          await store.records.settleDelivery(each, { nowIso: LATER, kind: "delivered" });
        const key = { accountId, id: "one" };
        expect(await store.records.endpoint(key)).toMatchObject({
          waiting: 1,
          failed: 1,
          enabled: false,
          problem: "gone",
        });
        expect(await store.queue.nextDueMs("webhook", NOW_MS)).toBe(NOW_MS + 5);
        expect(await store.queue.purgeFailed("webhook", NOW_MS + DAY_MS, 10)).toBe(1);
        expect(await store.records.removeEndpoint(key)).toBe(true);
        expect(await store.records.removeEndpoint(key)).toBe(false);
        expect(await store.queue.figures("webhook", accountId)).toMatchObject({ waiting: 0, failed: 0 });
      }));

    it.each([
      ["whose address has changed since", { url: "https://new.example/hook" }],
      ["that was enabled again since", { enabled: true }],
    ])(
      "sends a message again that failed at an endpoint %s, and does not disable the endpoint",
      (_name, change) =>
        alone(async (store) => {
          const key = { accountId: fixture.account.id, id: "one" };
          await store.records.addEndpoint(endpoint("one"), 2);
          for (const text of ["a", "b"]) await create(text);
          const [a, b] = await lease(store);
          const before = await store.records.endpoint(key);
          if (a === undefined || b === undefined || before === undefined) throw new Error("two were written");
          await store.records.changeEndpoint({ ...key, ...change, nowIso: "2026-01-02T04:00:00.000Z" });
          const late = { endpointState: stateOf(before), nowIso: LATER, problem: "gone" };
          const retry = { kind: "retry", dueMs: NOW_MS + DAY_MS * 9, nowMs: NOW_MS } as const;
          await store.records.settleDelivery(a, { ...late, kind: "failed", disable: true });
          await store.records.settleDelivery(b, { ...late, ...retry });
          expect(await store.records.endpoint(key)).toMatchObject({
            enabled: true,
            problem: null,
            waiting: 2,
            failed: 0,
          });
          const again = await lease(store, Date.parse(LATER));
          expect(again.map(({ name }) => name)).toEqual([a.name, b.name]);
          const [now] = again;
          const after = await store.records.endpoint(key);
          if (now === undefined || after === undefined) throw new Error("two wait");
          await store.records.settleDelivery(now, {
            ...late,
            endpointState: stateOf(after),
            kind: "failed",
            disable: true,
          });
          expect(await store.records.endpoint(key)).toMatchObject({
            enabled: false,
            problem: "gone",
            failed: 1,
          });
        }),
    );

    it("queues no message for a change that is rolled back", () =>
      alone(async (store) => {
        await store.records.addEndpoint(endpoint("one"), 2);
        const { id } = await create("a");
        await expect(create("b", { id })).rejects.toMatchObject({ code: "conflict" });
        expect(await store.queue.figures("webhook", fixture.account.id)).toMatchObject({ waiting: 1 });
      }));
  });
}
