import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openLoop, type Loop } from "../../../src/kb/queue/loop.ts";

interface Job {
  readonly name: string;
  readonly ended: PromiseWithResolvers<void>;
}

let due: Job[];
let nextMs: number;
/** Names of the running jobs at each check. */
let checks: string[][];
let started: { readonly name: string; readonly signal: AbortSignal }[];
let problems: unknown[];
let loop: Loop;
beforeEach(() => {
  vi.useFakeTimers();
  [due, nextMs, checks, started, problems] = [[], Infinity, [], [], []];
  loop = openLoop<Job>({
    find: async (running) => {
      checks.push(running.map(({ name }) => name));
      return { jobs: due.splice(0), nextMs };
    },
    run: async ({ name, ended }, signal) => {
      started.push({ name, signal });
      await ended.promise;
    },
    onProblem: (error) => problems.push(error),
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const put = (name: string): Job["ended"] => {
  const ended = Promise.withResolvers<void>();
  due.push({ name, ended });
  return ended;
};
const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe("a loop", () => {
  it("a loop does nothing before it is woken, and checks again when a job ends", async () => {
    const one = put("one");
    await settle(120_000);
    expect(checks).toEqual([]);
    loop.wake();
    await settle();
    expect([checks, loop.running()]).toEqual([[[]], 1]);
    one.resolve();
    put("two");
    await settle();
    expect(checks).toEqual([[], []]);
    expect(started.map(({ name }) => name)).toEqual(["one", "two"]);
    loop.wake();
    await settle();
    expect(checks.at(-1)).toEqual(["two"]);
  });

  it("checks when the next job is due, and once a minute if none is", async () => {
    nextMs = 5000;
    loop.wake();
    await settle();
    nextMs = Infinity;
    await settle(4999);
    expect(checks).toHaveLength(1);
    await settle(1);
    expect(checks).toHaveLength(2);
    await settle(600_000);
    expect(checks).toHaveLength(12);
  });

  it("reports a failure of the store, and pauses", async () => {
    const failure = new Error("gone");
    const one = put("one");
    loop.wake();
    await settle();
    one.reject(failure);
    await settle();
    expect([problems, loop.running(), checks.length]).toEqual([[failure], 0, 1]);
    loop.wake();
    await settle(4999);
    expect(checks).toHaveLength(1);
    await settle(1);
    expect(checks).toHaveLength(2);
  });

  it("aborts its jobs when it is closed, waits for them, and starts no others", async () => {
    const one = put("one");
    loop.wake();
    await settle();
    expect(started[0]?.signal.aborted).toBe(false);
    let closed = 0;
    const closing = loop.close().then(() => (closed += 1));
    await settle(600_000);
    expect([started[0]?.signal.aborted, closed]).toEqual([true, 0]);
    one.resolve();
    put("two");
    loop.wake();
    await closing;
    await settle(600_000);
    expect(started).toHaveLength(1);
  });

  it("a loop waits for its jobs no longer than its limit", async () => {
    put("one");
    loop.wake();
    await settle();
    let closed = 0;
    const closing = loop.close(20).then(() => (closed += 1));
    vi.useRealTimers();
    await closing;
    expect([closed, loop.running()]).toEqual([1, 1]);
  });

  it("a loop ends at once when it is closed without jobs", async () => {
    loop.wake();
    await settle();
    vi.useRealTimers();
    await loop.close(60_000);
    expect(loop.running()).toBe(0);
  });
});
