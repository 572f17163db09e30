import { afterEach, beforeEach, expect, it } from "vitest";
import { endThread, keepIdleThreads, takeThread } from "../../src/lib/idle-threads.ts";
import { callWorker } from "../../src/lib/worker-calls.ts";
import { startOwnThreads } from "../idle-threads.ts";
import type { NestingMethods } from "./nesting-worker.ts";

startOwnThreads();

const MODULE = new URL("./nesting-worker.ts", import.meta.url);
beforeEach(() => keepIdleThreads(1));
afterEach(() => keepIdleThreads(0));

it("gives an idle thread to the next user of the module, who alone gets its answers", async () => {
  const first = takeThread(MODULE, {});
  expect(await callWorker<NestingMethods>(first, "first").call("same", 1)).toBe(1);
  await endThread(first, MODULE);
  const second = takeThread(MODULE, {});
  expect(second).toBe(first);
  const calls = callWorker<NestingMethods>(second, "second");
  expect(await calls.call("same", 2)).toBe(2);
  await calls.terminate();
});

it("keeps no more threads than asked for, and none that ended", async () => {
  const threads = [takeThread(MODULE, {}), takeThread(MODULE, {})];
  await Promise.all(threads.map((thread) => endThread(thread, MODULE)));
  expect(threads.map(({ threadId }) => threadId === -1)).toEqual([false, true]);
  await threads[0]?.terminate();
  const other = takeThread(MODULE, {});
  expect(threads).not.toContain(other);
  await endThread(other, MODULE);
  await keepIdleThreads(0);
  expect(other.threadId).toBe(-1);
});
