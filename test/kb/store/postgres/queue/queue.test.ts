import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { NewJob } from "../../../../../src/kb/queue/queue.ts";
import { openDatabase, type Database } from "../../../../../src/kb/store/postgres/database/database.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { queueOn } from "../../../../../src/kb/store/postgres/queue/queue.ts";
import { queueContract } from "../../../queue/queue-contract.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";

const NOW = 1_800_000_000_000;

describe.skipIf(isSkipped())("PostgreSQL", () => {
  queueContract("PostgreSQL", async () => {
    const url = await newDatabase();
    const stores = [await openPostgresStore(url), await openPostgresStore(url)] as const;
    return {
      stores,
      empty: () => query(url, "DELETE FROM job"),
      close: async () => {
        for (const store of stores) await store.close();
      },
    };
  });
});

describe.skipIf(isSkipped())("a job in a transaction", () => {
  let database: Database;
  let store: Store;
  let accountId: string;
  beforeAll(async () => {
    const url = await newDatabase();
    database = openDatabase(url);
    store = await openPostgresStore(url);
    ({ id: accountId } = await store.records.ensureAccount("one"));
  });
  afterAll(async () => {
    await Promise.all([store.close(), database.close()]);
  });

  const job = (line: string, name: string): NewJob => {
    return { queue: "chat", accountId, line, name, body: "{}", nowMs: NOW, jobsMax: 100 };
  };
  const firstOf = async (line: string) => {
    const due = await store.queue.due({ queue: "chat", nowMs: NOW, perLine: 1 });
    return due.find((each) => each.line === line);
  };
  /** Puts a job in a transaction that commits when the returned function is called. */
  const putLate = async (late: NewJob): Promise<() => Promise<void>> => {
    const [isPut, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = database.run("write", "", async (tx) => {
      await queueOn(tx).put(late);
      isPut.resolve();
      await mayCommit.promise;
    });
    await isPut.promise;
    return async () => {
      mayCommit.resolve();
      await writing;
    };
  };

  it("a job whose transaction commits late comes before the next job of its line", async () => {
    const commit = await putLate(job("c", "late"));
    const next = store.queue.put(job("c", "next"));
    await commit();
    await next;
    const first = await firstOf("c");
    expect(await store.queue.lease({ number: first?.number ?? 0, worker: "one", nowMs: NOW })).toMatchObject({
      name: "late",
    });
  });

  /** Puts jobs and leases them, and locks the first in a transaction that commits when `commit` is called. */
  const openLocked = async (...lines: readonly string[]) => {
    const leases: { readonly number: number; readonly token: number }[] = [];
    for (const line of lines) {
      await store.queue.put(job(line, line));
      const { number = 0 } = (await firstOf(line)) ?? {};
      const leased = await store.queue.lease({ number, worker: "two", nowMs: NOW });
      leases.push({ number, token: leased?.token ?? 0 });
    }
    const [isLocked, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writing = database.run("write", "", async (tx) => {
      await tx.run("SELECT 1 FROM job WHERE number = @number FOR UPDATE", { number: leases[0]?.number ?? 0 });
      isLocked.resolve();
      await mayCommit.promise;
    });
    await isLocked.promise;
    const commit = async (): Promise<void> => {
      mayCommit.resolve();
      await writing;
    };
    return { leases, numbers: leases.map(({ number }) => number), commit };
  };

  it("a lease is renewed while the transaction of another job of its worker has locked that one", async () => {
    const { leases, numbers, commit } = await openLocked("d", "e");
    const renewal = { worker: "two", leases, isWorking: true, nowMs: NOW + 1 };
    expect(await store.queue.renew(renewal)).toEqual([numbers[1]]);
    const renewing = store.queue.renew({ ...renewal, waits: true });
    await commit();
    expect(new Set(await renewing)).toEqual(new Set(numbers));
  });

  it("a worker gets its own job again once the transaction that locked it has ended, if it waits", async () => {
    const { numbers, commit } = await openLocked("h");
    const request = { number: numbers[0] ?? 0, worker: "two", nowMs: NOW + 1 };
    expect(await store.queue.lease(request)).toBeUndefined();
    const waiting = store.queue.lease({ ...request, waits: true });
    await commit();
    expect(await waiting).toMatchObject({ number: numbers[0], crashes: 0 });
  });

  it("a worker that stops hands back the jobs that no transaction has locked", async () => {
    const { numbers, commit } = await openLocked("f", "g");
    await store.queue.release("two");
    const free = await store.queue.due({ queue: "chat", nowMs: NOW + 2, perLine: 1 });
    expect(numbers.map((number) => free.some((each) => each.number === number))).toEqual([false, true]);
    await commit();
  });
});
