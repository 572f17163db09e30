import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { codeOf, KbsyncError } from "../../../../src/lib/failure.ts";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../src/kb/store/store.ts";
import { startOwnThreads } from "../../../idle-threads.ts";
import { openRunning } from "../../service/running.ts";

startOwnThreads();

/** Threads started during the test. The store starts its writer first. */
let threads: Worker[] = [];
const note = (thread: Worker): void => void threads.push(thread);
beforeEach(() => {
  threads = [];
  process.on("worker", note);
});
afterEach(() => {
  process.off("worker", note);
});

async function kill(thread: Worker | undefined): Promise<void> {
  if (thread === undefined) throw new Error("no such thread");
  const exit = once(thread, "exit");
  await thread.terminate();
  await exit;
}

async function withStore(run: (store: Store) => Promise<void>): Promise<void> {
  const store = await openSqliteStore({ restartMs: 1 });
  try {
    await run(store);
  } finally {
    await store.close();
  }
}

it.each([
  ["writer", 0, (store: Store) => store.records.ensureAccount("local")],
  ["reader", 1, (store: Store) => store.records.collections("local")],
] as const)("restarts a %s thread that ended, and reports the problem until then", (_name, which, use) =>
  withStore(async (store) => {
    await use(store);
    expect(store.problem()).toBeUndefined();
    await kill(threads[which]);
    expect(store.problem()).toMatchObject({ code: "store_busy", retryable: true });
    await expect(use(store)).rejects.toMatchObject({ code: "store_busy", retryable: true });
    await vi.waitFor(() => expect(store.problem()).toBeUndefined(), 10_000);
    await expect(use(store)).resolves.toBeDefined();
  }),
);

it("settles a write in flight when its thread ends, and closes without the thread", async () => {
  const store = await openSqliteStore();
  const write = store.records.ensureAccount("other").then(
    () => "done",
    (error: unknown) => codeOf(error),
  );
  await kill(threads[0]);
  expect(["done", "store_busy"]).toContain(await write);
  await expect(store.close()).resolves.toBeUndefined();
});

it("reports a service as not ready, and fails its watchdog probe, while a thread of its store is gone", async () => {
  let problem: ReturnType<Store["problem"]>;
  const running = await openRunning({ wrapStore: (store) => ({ ...store, problem: () => problem }) });
  try {
    expect(await running.send("GET", "/readyz", { key: null })).toMatchObject({ status: 200 });
    await expect(running.service.probe()).resolves.toBeUndefined();
    problem = new KbsyncError("gone", { code: "store_busy", retryable: true });
    expect(await running.send("GET", "/readyz", { key: null })).toMatchObject({
      status: 503,
      json: { error: { code: "store_busy" } },
    });
    expect(await running.send("GET", "/v1/health", { key: null })).toMatchObject({
      status: 200,
      json: { status: "failing" },
    });
    await expect(running.service.probe()).rejects.toThrow("gone");
  } finally {
    await running.close();
  }
});
