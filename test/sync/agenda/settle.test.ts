import { describe, expect, it } from "vitest";
import { openPathStates } from "../../../src/sync/agenda/path-states.ts";
import { EMPTY_MS } from "../../../src/sync/agenda/settle.ts";
import { CEILING_MS, UNREST_MS_MAX } from "../../../src/sync/plan/timing.ts";

const entry = (
  mtimeMs: number,
  sizeBytes = 1,
): { path: string; sizeBytes: number; mtimeMs: number; ctimeMs: number; ino: number } => ({
  path: "a",
  sizeBytes,
  mtimeMs,
  ctimeMs: mtimeMs,
  ino: 1,
});

/** Files held back: the only ones here that are counted. */
const heldBackOf = (states: ReturnType<typeof openPathStates>): string[] => {
  const counted: string[] = [];
  states.counts((path) => {
    counted.push(path);
    return "agreed";
  }, false);
  return counted;
};

describe("files that settle", () => {
  it("waits for a file that is rewritten, though an earlier one of its name was unrested and disappeared", () => {
    const states = openPathStates(1000);
    expect(states.rested(entry(1_000_000), 1_000_100)).toBe(false);
    // It vanishes without another event. A day later there is another one.
    const laterMs = 1_000_000 + 86_400_000;
    expect(states.rested(entry(laterMs, 2), laterMs + 100)).toBe(false);
    expect(states.rested(entry(laterMs + 300, 3), laterMs + 400)).toBe(false);
    expect(states.rested(entry(laterMs + 300, 3), laterMs + 1300)).toBe(true);
  });

  it("waits longer for an empty file, because a program that rewrites a file empties it first", () => {
    const states = openPathStates(100);
    expect(states.rested(entry(1000, 0), 1100)).toBe(false);
    expect(states.nextDueMs()).toBe(1000 + EMPTY_MS);
    expect(states.rested(entry(1000, 0), 1000 + EMPTY_MS)).toBe(true);
    expect(states.rested(entry(3000, 1), 3100)).toBe(true);
    // A settle time of zero requires no rest.
    expect(openPathStates(0).rested(entry(1000, 0), 1000)).toBe(true);
  });

  it("judges a file's age by the system's clock after a jump forward of it was corrected", () => {
    const states = openPathStates(100);
    // The monotonic clock is never set back: it stays a day ahead.
    const aheadMs = 86_400_000;
    expect(states.rested(entry(1000), 1050 + aheadMs, 1050)).toBe(false);
    expect(states.nextDueMs()).toBe(1100 + aheadMs);
    expect(states.rested(entry(1000), 1100 + aheadMs, 1100)).toBe(true);
  });

  it("reads a path that is torn repeatedly less often", () => {
    const states = openPathStates(100);
    let read = 0;
    for (let nowMs = 0; nowMs < 10 * CEILING_MS; nowMs += 200) {
      states.event("a", nowMs);
      const due = states.take(nowMs + 150);
      if (due === undefined || !states.rested(entry(nowMs), nowMs + 150)) continue;
      read += 1;
      states.torn("a", nowMs + 150);
    }
    expect(read).toBeLessThan(40);
    expect(read).toBeGreaterThanOrEqual(9);
  });

  it("reads a path that is rewritten without a rest every ten seconds", () => {
    const states = openPathStates(100);
    let read = 0;
    for (let nowMs = 0; nowMs < 10 * CEILING_MS; nowMs += 200) {
      states.event("a", nowMs);
      const due = states.take(nowMs + 150);
      if (due === undefined) continue;
      if (states.rested(entry(nowMs + 149), nowMs + 150)) read += 1;
    }
    expect(read).toBeLessThanOrEqual((10 * CEILING_MS) / UNREST_MS_MAX);
    expect(read).toBeGreaterThanOrEqual(50);
  });

  it("lists a path as held back from when it is torn continually until it is read or gone", () => {
    const states = openPathStates(100);
    for (let nowMs = 0; nowMs < 8; nowMs += 1) states.torn("a", nowMs);
    expect(heldBackOf(states)).toEqual([]);
    expect(states.rested(entry(0), 1000)).toBe(false);
    expect(heldBackOf(states)).toEqual(["a"]);
    states.event("a", 1000);
    expect(states.take(1100)?.paths).toEqual(["a"]);
    expect(heldBackOf(states)).toEqual(["a"]);
    expect(states.rested(entry(0), 1100)).toBe(false);
    expect(states.take(CEILING_MS)?.paths).toEqual(["a"]);
    expect(states.rested(entry(0), CEILING_MS)).toBe(true);
    expect(heldBackOf(states)).toEqual([]);

    for (let nowMs = 0; nowMs < 8; nowMs += 1) states.torn("a", 2 * CEILING_MS);
    expect(states.rested(entry(0), 2 * CEILING_MS)).toBe(false);
    // It was checked and is gone: nothing marks it again.
    states.take(3 * CEILING_MS);
    states.take(3 * CEILING_MS);
    expect(heldBackOf(states)).toEqual([]);
  });

  it("checks a path at once though it is written to continually, because it may be gone", () => {
    const states = openPathStates(100);
    for (let times = 0; times < 20; times += 1) states.torn("a", times);
    expect(states.rested(entry(0), 1000)).toBe(false);
    states.event("a", 1000);
    expect(states.take(1100)?.paths).toEqual(["a"]);
  });

  it("does not delay a person who saves often", () => {
    const states = openPathStates(100);
    for (let nowMs = 0; nowMs < 3 * CEILING_MS; nowMs += 2000) {
      states.event("a", nowMs);
      expect(states.take(nowMs + 100)?.paths).toEqual(["a"]);
      expect(states.rested(entry(nowMs), nowMs + 100)).toBe(true);
    }
  });

  it.each([0, 150])(
    "with a settle time of %i ms returns a file that grows every half second at first, then once a minute, and soon after the end",
    (settleMs) => {
      const states = openPathStates(settleMs);
      const readAtMs: number[] = [];
      const beginMs = 1_000_000;
      const endMs = beginMs + 3 * CEILING_MS;
      let sizeBytes = 0;
      let mtimeMs = 0;
      for (let nowMs = beginMs; nowMs < endMs + 20_000; nowMs += 10) {
        if (nowMs < endMs && (nowMs - beginMs) % 600 === 0) {
          sizeBytes += 100;
          mtimeMs = nowMs;
          states.event("a", nowMs);
        }
        const due = states.take(nowMs);
        // A file that was read without a rest is not checked again.
        if (due !== undefined && states.rested(entry(mtimeMs, sizeBytes), nowMs)) {
          readAtMs.push(nowMs - beginMs);
        }
      }
      const [last] = readAtMs.slice(-1);
      expect(readAtMs.length).toBeLessThanOrEqual(3 + 3 + 1);
      expect(readAtMs.filter((atMs) => atMs > CEILING_MS).length).toBeGreaterThanOrEqual(2);
      expect(last).toBeGreaterThanOrEqual(endMs - beginMs - 600);
      expect(last).toBeLessThan(endMs - beginMs + 6000);
    },
  );

  it.each([
    { leastMs: 2000, mostMs: 5000, coarseMs: 1, sendMs: 0 },
    { leastMs: 5000, mostMs: 10_000, coarseMs: 1, sendMs: 0 },
    { leastMs: 2000, mostMs: 10_000, coarseMs: 1, sendMs: 0 },
    { leastMs: 400, mostMs: 10_000, coarseMs: 1, sendMs: 0 },
    { leastMs: 2000, mostMs: 10_000, coarseMs: 2000, sendMs: 0 },
    { leastMs: 600, mostMs: 601, coarseMs: 1, sendMs: 10_000 },
    { leastMs: 4000, mostMs: 10_000, coarseMs: 1, sendMs: 8000 },
  ])(
    "returns a file that grows every $leastMs to $mostMs ms, with times in steps of $coarseMs ms, and takes $sendMs ms to send, once a minute after the first four",
    ({ leastMs, mostMs, coarseMs, sendMs }) => {
      for (let seed = 0; seed < 20; seed += 1) {
        const states = openPathStates(150);
        const readAtMs: number[] = [];
        const beginMs = 1_000_000;
        const endMs = beginMs + 5 * CEILING_MS;
        let appends = 0;
        let nextMs = beginMs;
        let mtimeMs = 0;
        let busyUntilMs = 0;
        let readBytes = 0;
        for (let nowMs = beginMs; nowMs < endMs + CEILING_MS; nowMs += 10) {
          if (nowMs === busyUntilMs) {
            states.end(entry(mtimeMs), nowMs);
            states.event("a", nowMs);
          }
          if (nowMs >= nextMs && nowMs < endMs) {
            appends += 1;
            mtimeMs = Math.floor(nowMs / coarseMs) * coarseMs;
            if (nowMs >= busyUntilMs) states.event("a", nowMs);
            nextMs += leastMs + (((seed + 1) * appends * 3701) % (mostMs - leastMs));
          }
          const due = states.take(nowMs);
          if (due === undefined || !states.rested(entry(mtimeMs, appends), nowMs)) continue;
          if (readBytes === appends) continue;
          readAtMs.push(nowMs - beginMs);
          readBytes = appends;
          busyUntilMs = nowMs + sendMs;
          const free = nowMs < endMs ? 4 : 5;
          expect(readAtMs.length).toBeLessThanOrEqual(free + (nowMs - beginMs) / CEILING_MS);
        }
        expect(readAtMs.length).toBeGreaterThanOrEqual(3 + 4);
        expect(readAtMs.at(-1)).toBeGreaterThanOrEqual(endMs - beginMs - mostMs);
      }
    },
  );

  it("returns a file that grows for twenty seconds between rests of a few once a minute after the first four", () => {
    const states = openPathStates(1000);
    let nowMs = 1_000_000;
    let sizeBytes = 0;
    const readMs: number[] = [];
    const append = (): void => {
      sizeBytes += 1;
      states.event("a", nowMs);
    };
    const mtimes = new Map<number, number>();
    for (const restMs of [1500, 5000, 8000, 9000, 2000, 7000, 9000, 5000, 3000, 8000]) {
      for (let writeMs = 0; writeMs < 20_000 + restMs; writeMs += 10) {
        if (writeMs < 20_000 && writeMs % 600 === 0) {
          append();
          mtimes.set(sizeBytes, nowMs);
        }
        const mtimeMs = mtimes.get(sizeBytes) ?? 0;
        const due = states.take(nowMs);
        if (due !== undefined && states.rested(entry(mtimeMs, sizeBytes), nowMs)) {
          readMs.push(nowMs);
          states.end(entry(mtimeMs), nowMs);
        }
        nowMs += 10;
      }
    }
    expect(readMs.length).toBeLessThanOrEqual(4 + (nowMs - 1_000_000) / CEILING_MS);
    expect(readMs.length).toBeGreaterThanOrEqual(4);
  });

  it("does not delay a person who saves a growing text every twenty seconds", () => {
    const states = openPathStates(100);
    for (let nowMs = 1_000_000; nowMs < 1_000_000 + 5 * CEILING_MS; nowMs += 20_000) {
      states.event("a", nowMs);
      expect(states.take(nowMs + 100)?.paths).toEqual(["a"]);
      expect(states.rested(entry(nowMs, nowMs), nowMs + 100)).toBe(true);
    }
  });

  it("returns a growing file once a minute although the due version's job ends unsent and the same version is due again", () => {
    const states = openPathStates(0);
    const readBytes: number[] = [];
    const beginMs = 1_000_000;
    let sizeBytes = 0;
    let mtimeMs = 0;
    let restarts = 0;
    for (let nowMs = beginMs; nowMs < beginMs + 5 * CEILING_MS; nowMs += 10) {
      if ((nowMs - beginMs) % 600 === 0) {
        sizeBytes += 100;
        mtimeMs = nowMs;
        states.event("a", nowMs);
      }
      const due = states.take(nowMs);
      if (due === undefined || !states.rested(entry(mtimeMs, sizeBytes), nowMs)) continue;
      const isAgain = readBytes.at(-1) === sizeBytes;
      readBytes.push(sizeBytes);
      states.end(entry(mtimeMs), nowMs);
      if (isAgain) continue;
      restarts += 1;
      states.checkAgain("a", nowMs + 10, nowMs);
    }
    expect(restarts).toBeGreaterThanOrEqual(5);
    expect(new Set(readBytes).size).toBeLessThanOrEqual(3 + 5);
  });

  it("releases old files at once, and fresh ones after a second check", () => {
    const states = openPathStates(100);
    expect(states.rested(entry(0), 1000)).toBe(true);
    expect(states.rested(entry(950), 1000)).toBe(false);
    expect(states.nextDueMs()).toBe(1050);
    expect(states.take(1050)?.paths).toEqual(["a"]);
    expect(states.rested(entry(950), 1050)).toBe(true);
  });

  it("does not trust a modification time in the future, and does not wait for it", () => {
    const states = openPathStates(100);
    expect(states.rested(entry(9_000_000), 1000)).toBe(false);
    expect(states.rested(entry(9_000_000), 1050)).toBe(false);
    expect(states.rested(entry(9_000_000), 1100)).toBe(true);
  });

  it("remembers a file that is written to continually although thousands of others come and rest", () => {
    const states = openPathStates(100);
    for (let nowMs = 1000; nowMs < 1008; nowMs += 1) states.torn("a", nowMs);
    const ofAnother = (path: string, mtimeMs: number) => ({ ...entry(mtimeMs), path });
    for (let at = 0; at < 3000; at += 1) {
      expect(states.rested(ofAnother(`new${at}`, 20_000), 20_050)).toBe(false);
      expect(states.rested(ofAnother(`old${at}`, 20_000), 20_100)).toBe(true);
    }
    // It has rested, and is still held back until the minute is over.
    expect(states.rested(entry(20_000), 30_000)).toBe(false);
    expect(heldBackOf(states)).toEqual(["a"]);
    expect(states.rested(entry(20_000), 1000 + CEILING_MS - 1)).toBe(false);
    expect(states.rested(entry(20_000), 1000 + CEILING_MS)).toBe(true);
  });

  it("remembers a file that grows continually although thousands of others are read", () => {
    const states = openPathStates(0);
    const grow = (sizeBytes: number, nowMs: number): boolean => states.rested(entry(nowMs, sizeBytes), nowMs);
    expect([1, 2, 3].map((size) => grow(size, 1_000_000 + 1000 * size))).toEqual([true, true, true]);
    for (let at = 0; at < 3000; at += 1)
      expect(states.rested({ ...entry(1_004_000), path: `other${at}` }, 1_004_000)).toBe(true);
    expect(grow(4, 1_004_000)).toBe(false);
    // It is released when it has rested for four seconds and twice the longest gap so far.
    expect(states.rested(entry(1_004_000, 4), 1_009_999)).toBe(false);
    expect(states.rested(entry(1_004_000, 4), 1_010_000)).toBe(true);
  });

  it.each([
    ["grew twice", [1, 2, 3, 4], false],
    ["grew once", [1, 2, 3], true],
    ["shrank meanwhile", [1, 2, 1, 2, 3], true],
    ["was released again unchanged", [1, 2, 2, 3, 4], false],
  ] as const)("a file that %s is read at its next version without a rest: %3$s", (_what, sizes, isRead) => {
    const states = openPathStates(0);
    const found = sizes.map((size, at) => {
      const nowMs = 1_000_000 + 1000 * at;
      return states.rested(entry(nowMs, size), nowMs);
    });
    expect(found).toEqual([...sizes.slice(1).map(() => true), isRead]);
  });
});
