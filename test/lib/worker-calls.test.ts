import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { callWorker } from "../../src/lib/worker-calls.ts";
import type { WorkerCalls } from "../../src/lib/worker-calls.ts";
import type { NestingMethods } from "./nesting-worker.ts";

let opened: WorkerCalls<NestingMethods> | undefined;
afterEach(() => opened?.terminate());

function open(stackSizeMb: number): WorkerCalls<NestingMethods> {
  const thread = new Worker(new URL("./nesting-worker.ts", import.meta.url), {
    resourceLimits: { stackSizeMb },
  });
  opened = callWorker<NestingMethods>(thread, "test");
  return opened;
}

describe("a message that cannot be read", () => {
  it("an unreadable answer fails every open call, and the worker keeps answering", async () => {
    const calls = open(64);
    const open1 = calls.call("never", undefined);
    const open2 = calls.call("nested", 50_000);
    await expect(open1).rejects.toMatchObject({ code: "worker_message_lost" });
    await expect(open2).rejects.toMatchObject({ code: "worker_message_lost" });
    expect(calls.pending()).toBe(0);
    expect(await calls.call("same", "still there")).toBe("still there");
  });

  it("an unreadable call fails every open call, and the worker keeps answering", async () => {
    const calls = open(4);
    const lost = calls.call("unreadable", undefined);
    const other = calls.call("never", undefined);
    await expect(lost).rejects.toMatchObject({ code: "worker_message_lost" });
    await expect(other).rejects.toMatchObject({ code: "worker_message_lost" });
    expect(await calls.call("same", "still there")).toBe("still there");
  });

  it("a message that cannot be sent fails only its own call", async () => {
    const calls = open(4);
    await expect(calls.call("same", () => {})).rejects.toThrow("could not be cloned");
    expect(calls.pending()).toBe(0);
    expect(await calls.call("same", 1)).toBe(1);
  });
});
