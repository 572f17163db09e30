import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import type { WaitingJob } from "../../../src/kb/queue/queue.ts";
import { openLeases, type Leases } from "../../../src/kb/queue/leases.ts";
import type { Loop } from "../../../src/kb/queue/loop.ts";
import { inTurns, openRunner, type RunnerParts } from "../../../src/kb/queue/runner.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";

const WAIT = { timeout: 30_000, interval: 10 };

let folder: string;
/** Two handles on one store, as two processes have. */
let stores: readonly Store[];
let accountId: string;
const runners: Loop[] = [];
const opened: Leases[] = [];
let jobs = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-runner-"));
  const path = join(folder, "kb.sqlite");
  stores = [await openSqliteStore({ path }), await openSqliteStore({ path })];
  accountId = (await stores[0]?.records.ensureAccount("one"))?.id ?? "";
}, 60_000);
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close();
  for (const leases of opened.splice(0)) await leases.close();
});
afterAll(async () => {
  for (const store of stores) await store.close();
  await rm(folder, { recursive: true });
});

function storeAt(at: number): Store {
  const store = stores[at];
  if (store === undefined) throw new Error("there are two stores");
  return store;
}

function open(at: number, work: RunnerParts["work"], more: Partial<RunnerParts> = {}): Loop {
  const leases = openLeases(storeAt(at).queue, `worker ${at}`, Date.now, () => undefined);
  opened.push(leases);
  const runner = openRunner({
    queue: storeAt(at).queue,
    name: "chat",
    leases,
    nowMs: Date.now,
    perLine: 1,
    choose: (due, running) => due.slice(0, Math.max(0, 4 - running.length)),
    work,
    onProblem: () => undefined,
    ...more,
  });
  runners.push(runner);
  return runner;
}

async function put(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const name = `job ${++jobs}`;
    const job = { queue: "chat", accountId, line: name, name, body: "{}" } as const;
    await storeAt(0).queue.put({ ...job, nowMs: Date.now(), jobsMax: 1000 });
  }
}

it("runs each job in one of two processes only", async () => {
  const worked: string[] = [];
  const runnerAt = (at: number): Loop =>
    open(at, async (job) => {
      worked.push(job.name);
      expect(await storeAt(at).queue.complete(job)).toBe(true);
      return undefined;
    });
  await put(40);
  for (const runner of [runnerAt(0), runnerAt(1)]) runner.wake();
  await vi.waitFor(() => expect(worked.length).toBeGreaterThanOrEqual(40), WAIT);
  await vi.waitFor(
    async () => expect(await storeAt(0).queue.figures("chat", undefined)).toMatchObject({ waiting: 0 }),
    WAIT,
  );
  expect(new Set(worked).size).toBe(worked.length);
});

it("renews the lease of a job that waits in memory, and runs it again", async () => {
  let runs = 0;
  const work = async (job: Parameters<RunnerParts["work"]>[0]): Promise<number | undefined> => {
    runs += 1;
    expect(job.crashes).toBe(0);
    if (runs === 1) return 20;
    await storeAt(0).queue.complete(job);
    return undefined;
  };
  await put(1);
  open(0, work).wake();
  await vi.waitFor(() => expect(runs).toBe(1), WAIT);
  expect(await storeAt(1).queue.due({ queue: "chat", nowMs: Date.now(), perLine: 1 })).toEqual([]);
  await vi.waitFor(() => expect(runs).toBe(2), WAIT);
});

it("tries a due job that another transaction has locked again after a pause, not at once", async () => {
  const { queue } = storeAt(0);
  let tries = 0;
  let isLocked = true;
  let runs = 0;
  const leases: Leases = {
    ...openLeases(queue, "worker 0", Date.now, () => undefined),
    take: async (number) => {
      tries += 1;
      return isLocked ? undefined : queue.lease({ number, worker: "worker 0", nowMs: Date.now() });
    },
  };
  opened.push(leases);
  const work = async (job: Parameters<RunnerParts["work"]>[0]): Promise<undefined> => {
    runs += 1;
    await queue.complete(job);
    return undefined;
  };
  await put(1);
  open(0, work, { leases }).wake();
  await vi.waitFor(() => expect(tries).toBe(1), WAIT);
  await sleep(300);
  expect(tries).toBe(1);
  isLocked = false;
  await vi.waitFor(() => expect(runs).toBe(1), WAIT);
});

it("hands an aborted job to the next process without counting a crash", async () => {
  const started = Promise.withResolvers<void>();
  await put(1);
  const runner = open(0, async (_job, signal) => {
    started.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return undefined;
  });
  runner.wake();
  await started.promise;
  await runner.close();
  await storeAt(0).queue.release("worker 0");
  const crashes = new Set<number>();
  open(1, async (job) => {
    crashes.add(job.crashes);
    await storeAt(1).queue.complete(job);
    return undefined;
  }).wake();
  await vi.waitFor(() => expect([...crashes]).toEqual([0]), WAIT);
});

it("lets accounts take turns, those with fewer running jobs first", () => {
  let number = 0;
  const of = (account: string): WaitingJob => ({
    number: ++number,
    accountId: account,
    ownerId: "",
    name: "",
    bodyBytes: 2,
    line: "",
    changedMs: 0,
    crashes: 0,
  });
  const accounts = (due: readonly WaitingJob[], running: readonly WaitingJob[] = []): string =>
    inTurns(due, running, (job) => job.accountId)
      .map((job) => job.accountId)
      .join("");
  const due = ["a", "a", "a", "b", "b"].map(of);
  expect(accounts(due)).toBe("ababa");
  expect(accounts(due, ["a", "a"].map(of))).toBe("bbaaa");
});
