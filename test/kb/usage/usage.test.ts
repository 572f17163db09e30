import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openUsage, type Usage, type UsageParts } from "../../../src/kb/usage/usage.ts";

const HOUR_MS = 3_600_000;
const HOUR = 490_000;

let nowMs: number;
let stored: Parameters<UsageParts["records"]["addUsage"]>[0][];
let waiting: number;
let failure: Error | undefined;
let problems: unknown[];
let usage: Usage;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  [nowMs, stored, waiting, failure, problems] = [HOUR * HOUR_MS + 1000, [], 0, undefined, []];
  const collections = [2, 3].map(
    (resources) => ({ id: "c", tier: "fastest", resources, chunks: 9 }) as const,
  );
  usage = openUsage({
    records: {
      addUsage: async (hour) => {
        if (failure !== undefined) throw failure;
        stored.push(hour);
      },
      collections: async () => collections,
    },
    queue: { figures: async () => ({ waiting, dead: 0, oldestMs: null, overdue: 0 }) },
    nowMs: () => nowMs,
    onProblem: (error) => problems.push(error),
  });
});
afterEach(async () => {
  await usage.close();
  vi.useRealTimers();
});

const counts = (...at: readonly [range: number, count: number][]): number[] => {
  const list = Array.from({ length: 14 }, () => 0);
  for (const [range, count] of at) list[range] = count;
  return list;
};

describe("the use of accounts", () => {
  it("the use of accounts is stored by hour: searches by their duration, documents, and those that wait", async () => {
    for (const seconds of [0.001, 0.015, 0.015, 60]) usage.noteSearch("a", seconds);
    usage.noteChange("b");
    await usage.flush();
    expect(stored).toEqual([
      { accountId: "a", hour: HOUR, documents: 5, queued: 0, searches: counts([0, 1], [4, 2], [13, 1]) },
      { accountId: "b", hour: HOUR, documents: 5, queued: 0, searches: counts() },
    ]);
    await usage.flush();
    expect(stored).toHaveLength(2);
  });

  it("the use of accounts is stored for one account on request", async () => {
    usage.noteSearch("a", 0);
    usage.noteSearch("b", 0);
    await usage.flush("b");
    expect(stored.map(({ accountId }) => accountId)).toEqual(["b"]);
  });

  it("the use of accounts is stored again while documents of the account wait", async () => {
    waiting = 4;
    usage.noteSearch("a", 0);
    await usage.flush();
    waiting = 0;
    nowMs += HOUR_MS;
    await usage.flush();
    await usage.flush();
    expect(stored.map(({ hour, queued, searches }) => [hour, queued, searches[0]])).toEqual([
      [HOUR, 4, 1],
      [HOUR + 1, 0, 0],
    ]);
  });

  it("the use of accounts is not lost when the store fails", async () => {
    failure = new Error("full");
    usage.noteSearch("a", 0);
    await expect(usage.flush()).rejects.toBe(failure);
    usage.noteSearch("a", 0);
    failure = undefined;
    await usage.flush();
    expect(stored.map(({ searches }) => searches)).toEqual([counts([0, 2])]);
  });

  it("the use of accounts is stored every 15 seconds, and the first of several failures is reported", async () => {
    const tick = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
    usage.noteSearch("a", 0);
    await tick(14_999);
    expect(stored).toHaveLength(0);
    await tick(1);
    await vi.waitFor(() => expect(stored).toHaveLength(1));
    failure = new Error("full");
    usage.noteSearch("a", 0);
    await tick(15_000);
    await vi.waitFor(() => expect(problems).toEqual([failure]));
    await tick(15_000);
    failure = undefined;
    await tick(15_000);
    await vi.waitFor(() => expect(stored).toHaveLength(2));
    expect(problems).toHaveLength(1);
    failure = new Error("full again");
    usage.noteSearch("a", 0);
    await tick(15_000);
    await vi.waitFor(() => expect(problems).toHaveLength(2));
  });

  it("the use of accounts is stored at the end, which no failure of the store prevents", async () => {
    usage.noteSearch("a", 0);
    await usage.close();
    expect(stored).toHaveLength(1);
    usage.noteSearch("a", 0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stored).toHaveLength(1);
    failure = new Error("gone");
    await usage.close();
    expect(problems).toEqual([failure]);
  });
});
