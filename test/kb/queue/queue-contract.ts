import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  ingestLine,
  LEASE_MS,
  type LeasedJob,
  type NewJob,
  type Queue,
} from "../../../src/kb/queue/queue.ts";
import { OVERDUE_MS } from "../../../src/kb/store/sql/queue.ts";
import type { Records } from "../../../src/kb/store/records.ts";

const NOW = 1_000_000_000;
const HOUR_MS = 60 * 60 * 1000;

/** The part of a store that the tests use. */
interface QueueStore {
  readonly queue: Queue;
  readonly records: Pick<Records, "ensureAccount">;
}

/**
 * The promises of the Queue port, for any implementation. `open` returns two handles on one store, as two processes have, and a
 * way to empty its queue between tests.
 */
export function queueContract(
  implementation: string,
  open: () => Promise<{
    readonly stores: readonly [QueueStore, QueueStore];
    empty(): void | Promise<void>;
    close(): Promise<void>;
  }>,
): void {
  describe(`${implementation}: the queue contract`, () => {
    let opened: Awaited<ReturnType<typeof open>>;
    let one: Queue;
    let other: Queue;
    let accountId: string;
    let otherAccountId: string;
    beforeAll(async () => {
      opened = await open();
      const [first, second] = opened.stores;
      [one, other] = [first.queue, second.queue];
      ({ id: accountId } = await first.records.ensureAccount("one"));
      ({ id: otherAccountId } = await first.records.ensureAccount("other"));
    });
    afterEach(() => opened.empty());
    afterAll(() => opened.close());

    const put = (line: string, more: Partial<NewJob> = {}): Promise<void> =>
      one.put({ queue: "chat", accountId, line, name: line, body: "{}", nowMs: NOW, jobsMax: 100, ...more });
    const due = (queue: NewJob["queue"] = "chat", nowMs = NOW, perLine = 10) =>
      other.due({ queue, nowMs, perLine });
    const names = async (queue: NewJob["queue"] = "chat", nowMs = NOW): Promise<string[]> =>
      (await due(queue, nowMs)).map(({ line }) => line);
    const lease = async (of: Queue = one, worker = "one", nowMs = NOW, queue: NewJob["queue"] = "chat") => {
      const [job] = await due(queue, nowMs);
      return job && of.lease({ number: job.number, worker, nowMs });
    };
    const leased = async (...given: Parameters<typeof lease>): Promise<LeasedJob> => {
      const job = await lease(...given);
      if (job === undefined) throw new Error("no job is due");
      return job;
    };
    const wait = (dueMs: number, counts = false) => ({ dueMs, nowMs: NOW, counts });

    it("leases a job to one of two workers that ask at the same time", async () => {
      for (const line of ["a", "b", "c", "d"]) await put(line);
      const numbers = (await due()).map(({ number }) => number);
      const ask = (queue: Queue, worker: string) =>
        Promise.all(numbers.map((number) => queue.lease({ number, worker, nowMs: NOW })));
      const [mine, theirs] = await Promise.all([ask(one, "one"), ask(other, "other")]);
      for (const [at] of numbers.entries()) {
        expect([mine[at], theirs[at]].filter((each) => each !== undefined)).toHaveLength(1);
      }
      expect(await due()).toEqual([]);
    });

    it("leases a job as it was put, and removes it on completion", async () => {
      await put("a", { name: "n", body: '{"a":1}' });
      const job = await leased();
      expect(job).toEqual({
        number: expect.any(Number),
        token: 1,
        accountId,
        ownerId: "",
        line: "a",
        name: "n",
        body: '{"a":1}',
        bodyBytes: 7,
        createdMs: NOW,
        attempts: 0,
        changedMs: NOW,
        crashes: 0,
      });
      expect([await one.complete(job), await one.complete(job)]).toEqual([true, false]);
      expect(await one.figures("chat", undefined)).toEqual({
        waiting: 0,
        failed: 0,
        oldestMs: null,
        overdue: 0,
        texts: 0,
      });
    });

    it("keeps the pages of a leased job, which are no part of its body", async () => {
      await put("a", { body: "{}", charsMax: 30 });
      const job = await leased();
      expect(await one.pagesOf(job)).toBeUndefined();
      const pages = JSON.stringify({ digest: "characters".repeat(10) });
      for (const written of ["{}", pages]) expect(await one.keepPages(job, written)).toBe(true);
      await put("b", { body: '{"a":"more"} ', charsMax: 30 });
      await one.postpone(job, wait(0));
      const again = await leased();
      expect(again).toMatchObject({ body: "{}", bodyBytes: 2 });
      expect(await one.pagesOf(again)).toBe(pages);
    });

    it("refuses writes under an expired lease, and accepts them under the next one", async () => {
      await put("a");
      const late = await leased();
      const after = NOW + LEASE_MS;
      const next = await leased(other, "other", after);
      expect(next.token).toBeGreaterThan(late.token);
      expect(await one.complete(late)).toBe(false);
      expect(await one.keepPages(late, "{}")).toBe(false);
      expect(await one.postpone(late, wait(0))).toBe(false);
      expect(await one.fail(late)).toBe(false);
      const renewal = { worker: "one", leases: [late], isWorking: true, nowMs: after };
      expect(await one.renew(renewal)).toEqual([]);
      expect(await other.complete(next)).toBe(true);
    });

    it("extends a lease that is renewed in time", async () => {
      await put("a");
      const job = await leased();
      const later = NOW + LEASE_MS - 1;
      const renewal = { worker: "one", leases: [job], isWorking: true, nowMs: later };
      expect(await one.renew(renewal)).toEqual([job.number]);
      expect(await names("chat", later + LEASE_MS - 1)).toEqual([]);
      expect(await names("chat", later + LEASE_MS)).toEqual(["a"]);
    });

    it("ends a lease that began in the future when a worker starts, because the clock was set back", async () => {
      await put("a");
      await leased(one, "one", NOW + 2 * HOUR_MS);
      await other.resume("other", NOW, false);
      expect(await names()).toEqual(["a"]);
    });

    it("counts a crash only for a job that was worked on", async () => {
      for (const line of ["idle", "waiting", "working"]) await put(line);
      for (const line of ["waiting", "working"]) {
        const job = (await due()).find((each) => each.line === line);
        const held = await one.lease({ number: job?.number ?? 0, worker: "one", nowMs: NOW });
        const leases = held === undefined ? [] : [held];
        await one.renew({ worker: "one", leases, nowMs: NOW, isWorking: line === "working" });
      }
      const after = NOW + LEASE_MS;
      const crashes = async () => (await due("chat", after)).map((each) => [each.line, each.crashes]);
      const counted = [
        ["idle", 0],
        ["waiting", 0],
        ["working", 1],
      ];
      expect(await crashes()).toEqual(counted);
      for (const { number } of await due("chat", after))
        await other.lease({ number, worker: "other", nowMs: after });
      await other.release("other");
      expect(await crashes()).toEqual(counted);
    });

    it("ends all other leases when a worker starts alone", async () => {
      await put("a");
      await leased();
      await other.resume("other", NOW, false);
      expect(await due()).toEqual([]);
      await other.resume("other", NOW, true);
      expect(await due()).toMatchObject([{ line: "a", crashes: 1 }]);
    });

    it("takes jobs back from a worker that stops, without counting a crash", async () => {
      await put("a");
      const job = await leased();
      await one.release("one");
      expect(await due()).toMatchObject([{ line: "a", crashes: 0 }]);
      expect(await one.complete(job)).toBe(false);
    });

    it("lets a worker lease its own job again, with a new token and without counting a crash", async () => {
      await put("a");
      const job = await leased();
      const again = await one.lease({ number: job.number, worker: "one", nowMs: NOW });
      expect(again).toMatchObject({ token: job.token + 1, crashes: 0 });
      expect(await one.complete(job)).toBe(false);
    });

    it("leases the jobs of a line in order, one at a time", async () => {
      for (const name of ["first", "second"]) await put("line", { name });
      await put("apart");
      const numbers = (await due()).map(({ number }) => number);
      expect(await names()).toEqual(["apart", "line"]);
      for (const number of numbers.slice(0, 1)) await one.lease({ number, worker: "one", nowMs: NOW });
      const first = await leased();
      expect(first.name).toBe("first");
      // The second job waits while the first one is postponed.
      await one.postpone(first, wait(NOW + 1000));
      expect(await names()).toEqual([]);
      expect(await one.lease({ number: first.number + 1, worker: "one", nowMs: NOW })).toBeUndefined();
      expect((await leased(one, "one", NOW + 1000)).name).toBe("first");
    });

    it("leases several jobs of a line without order, postponed ones before new ones", async () => {
      for (const name of ["1", "2", "3", "4"]) await put("line", { queue: "webhook", name });
      const first = await leased(one, "one", NOW, "webhook");
      await one.postpone(first, wait(NOW + 1, true));
      const found = await due("webhook", NOW + 1, 3);
      expect(found.map(({ number }) => number - first.number)).toEqual([0, 1, 2]);
      const again = await one.lease({ number: first.number, worker: "one", nowMs: NOW + 1 });
      expect(again).toMatchObject({ name: "1", attempts: 1 });
    });

    it("returns the newest changes of a line first, and some of the oldest", async () => {
      const puts = ["1", "2", "3", "4", "5", "6", "7", "8"];
      for (const [at, name] of puts.entries()) {
        const change = { queue: "ingest", name, nowMs: NOW + (name === "6" ? -1 : at) } as const;
        await put("line", change);
      }
      const found = await due("ingest", NOW + 8, 4);
      expect(found.map(({ name }) => name).toSorted()).toEqual(["5", "6", "7", "8"]);
      const all = await due("ingest", NOW + 8, 10);
      expect(all.map(({ name }) => name).toSorted()).toEqual(puts);
    });

    it("leases a waiting job early on request", async () => {
      await put("a");
      const job = await leased();
      await one.postpone(job, wait(NOW + 1000));
      const request = { number: job.number, worker: "one", nowMs: NOW };
      expect(await one.lease(request)).toBeUndefined();
      expect(await one.lease({ ...request, isEarly: true })).toMatchObject({ name: "a" });
      expect(await other.lease({ ...request, worker: "other", isEarly: true })).toBeUndefined();
    });

    it("returns the entry of a document, with the time when it may be leased", async () => {
      const entry = { queue: "ingest", name: "id", ownerId: "owner" } as const;
      await put("owner's", { ...entry, body: '{"é":1}' });
      const change = (nowMs = NOW) => other.change({ accountId, id: "id", nowMs });
      const found = await change();
      expect(found).toEqual({
        number: expect.any(Number),
        accountId,
        ownerId: "owner",
        line: "owner's",
        name: "id",
        changedMs: NOW,
        crashes: 0,
        dueMs: 0,
        bodyBytes: 8,
      });
      expect(await other.change({ accountId: otherAccountId, id: "id", nowMs: NOW })).toBeUndefined();
      const job = await leased(one, "one", NOW, "ingest");
      expect(await change()).toMatchObject({ crashes: 0, dueMs: NOW + LEASE_MS });
      // The worker did not renew its lease.
      expect(await change(NOW + LEASE_MS)).toMatchObject({ crashes: 1 });
      await one.postpone(job, { ...wait(NOW + 1000), line: "elsewhere" });
      expect(await change()).toMatchObject({ line: "elsewhere", crashes: 0, dueMs: NOW + 1000 });
      await expect(put("owner's", entry)).rejects.toMatchObject({ code: "conflict" });
    });

    it("counts jobs that were due ten minutes ago and wait, but none that is leased or due later", async () => {
      for (const line of ["leased", "later", "waiting"]) await put(line);
      await leased();
      await one.postpone(await leased(), wait(NOW + HOUR_MS));
      const overdue = async (nowMs: number) => (await other.figures("chat", undefined, nowMs)).overdue;
      expect(await overdue(NOW + OVERDUE_MS - 1)).toBe(0);
      expect(await overdue(NOW + OVERDUE_MS)).toBe(1);
    });

    it("counts a job whose lease has been renewed without work for ten minutes, but none that is worked on", async () => {
      await put("a");
      const job = await leased();
      const overdueAfter = async (ms: number, isWorking: boolean) => {
        await one.renew({ worker: "one", leases: [job], isWorking, nowMs: NOW + ms });
        return (await other.figures("chat", undefined, NOW + ms)).overdue;
      };
      expect(await overdueAfter(OVERDUE_MS, true)).toBe(0);
      expect(await overdueAfter(OVERDUE_MS + 1, false)).toBe(0);
      expect(await overdueAfter(2 * OVERDUE_MS, false)).toBe(1);
      expect(await overdueAfter(2 * OVERDUE_MS, true)).toBe(0);
    });

    it("counts due jobs without a file, but none that a worker has or that waits for something else", async () => {
      const texts = async () => (await other.figures("ingest", undefined, NOW)).texts;
      const putText = (name: string, need = "", more: Partial<NewJob> = {}) =>
        put(ingestLine(accountId, "owner", need), { queue: "ingest", name, ...more });
      await putText("scan", "", { fileToken: "file" });
      await putText("link", "file");
      expect(await texts()).toBe(0);
      await putText("text");
      expect(await texts()).toBe(1);
      const found = (await due("ingest")).find(({ name }) => name === "text");
      const job = await one.lease({ number: found?.number ?? 0, worker: "one", nowMs: NOW });
      if (job === undefined) throw new TypeError("the text is not leased");
      expect(await texts()).toBe(0);
      await one.postpone(job, wait(NOW + HOUR_MS));
      expect(await texts()).toBe(0);
    });

    it("reports when the next postponed job is due, and ends waits that began in the future", async () => {
      await put("a");
      expect(await one.nextDueMs("chat", NOW)).toBeUndefined();
      const job = await leased();
      expect(await other.nextDueMs("chat", NOW)).toBe(NOW + LEASE_MS);
      await one.postpone(job, wait(NOW + HOUR_MS));
      expect(await other.nextDueMs("chat", NOW)).toBe(NOW + HOUR_MS);
      await one.resume("one", NOW, true);
      expect(await names()).toEqual([]);
      await one.resume("one", NOW - 2 * HOUR_MS, true);
      expect(await names("chat", NOW - 2 * HOUR_MS)).toEqual(["a"]);
    });

    it("stores a failed job to be counted, and never leases it again", async () => {
      await put("a", { queue: "webhook" });
      const job = await leased(one, "one", NOW, "webhook");
      expect(await one.fail(job)).toBe(true);
      expect(await names("webhook", NOW + HOUR_MS)).toEqual([]);
      expect(await one.figures("webhook", accountId)).toEqual({
        waiting: 0,
        failed: 1,
        oldestMs: null,
        overdue: 0,
        texts: 0,
      });
    });

    it("removes failed jobs of one queue that were put before a time, a few at a time", async () => {
      for (const nowMs of [NOW, NOW + 1, NOW + HOUR_MS]) {
        await put("a", { queue: "webhook", nowMs });
        await one.fail(await leased(one, "one", NOW + HOUR_MS, "webhook"));
      }
      await put("waiting", { queue: "webhook" });
      expect(await one.purgeFailed("chat", NOW + HOUR_MS, 10)).toBe(0);
      expect(await one.purgeFailed("webhook", NOW + HOUR_MS, 1)).toBe(1);
      expect(await one.purgeFailed("webhook", NOW + HOUR_MS, 10)).toBe(1);
      expect(await other.figures("webhook", accountId)).toMatchObject({ waiting: 1, failed: 1 });
    });

    it("refuses an account more than three quarters of a queue, and counts each queue and account separately", async () => {
      const full = { jobsMax: 3 };
      for (const line of ["a", "b"]) await put(line, full);
      await expect(put("c", full)).rejects.toMatchObject({ code: "queue_full", retryable: true });
      await put("c", { ...full, accountId: otherAccountId, nowMs: NOW + 1 });
      await put("c", { ...full, queue: "webhook" });
      expect(await one.figures("chat", undefined)).toEqual({
        waiting: 3,
        failed: 0,
        oldestMs: NOW,
        overdue: 0,
        texts: 0,
      });
      expect(await one.figures("chat", otherAccountId)).toMatchObject({ waiting: 1, oldestMs: NOW + 1 });
    });

    it("refuses a job whose body exceeds the bound on characters", async () => {
      await put("a", { charsMax: 1 });
      await expect(put("b", { charsMax: 3 })).rejects.toMatchObject({ code: "queue_full" });
      await put("b", { charsMax: 8 });
    });

    it("finds all due jobs of a thousand lines", async () => {
      const lines = Array.from({ length: 1200 }, (_, at) => `line ${String(at).padStart(4, "0")}`);
      await Promise.all(lines.map((line) => put(line, { jobsMax: 2000 })));
      expect(await names()).toEqual(lines);
    });
  });
}
