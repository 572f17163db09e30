import { describe, expect, it } from "vitest";
import { openPathStates } from "../../../../src/sync/daemon/agenda/path-states.ts";
import { EMPTY_MS } from "../../../../src/sync/daemon/agenda/settle.ts";
import { CEILING_MS, VERSION_GAP_MS, VERSIONS_AT_ONCE } from "../../../../src/sync/plan/timing.ts";

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

  it("reads a path that is rewritten without a rest once a minute", () => {
    const states = openPathStates(100);
    let read = 0;
    for (let nowMs = 0; nowMs < 10 * CEILING_MS; nowMs += 200) {
      states.event("a", nowMs);
      const due = states.take(nowMs + 150);
      if (due === undefined) continue;
      const found = entry(nowMs + 149);
      if (!states.rested(found, nowMs + 150)) continue;
      read += 1;
      states.end(found, nowMs + 150);
    }
    expect([9, 10]).toContain(read);
  });

  it("is not at rest while a path waits that is torn repeatedly", () => {
    const states = openPathStates(100);
    for (let times = 0; times <= VERSIONS_AT_ONCE; times += 1) states.torn("a", 1000);
    expect(states.rested(entry(0), 1000)).toBe(false);
    expect([states.isQuiet(), states.nextDueMs()]).toEqual([false, 1000 + 2 * VERSION_GAP_MS]);
  });

  it("checks a path at once though it is written to continually, because it may be gone", () => {
    const states = openPathStates(100);
    for (let times = 0; times < 20; times += 1) states.torn("a", times);
    expect(states.rested(entry(0), 1000)).toBe(false);
    states.event("a", 1000);
    expect(states.take(1100)?.paths).toEqual(["a"]);
  });

  it("does not delay a person who saves a few times in a row", () => {
    const states = openPathStates(100);
    for (let nowMs = 0; nowMs < VERSIONS_AT_ONCE * 2000; nowMs += 2000) {
      states.event("a", nowMs);
      expect(states.take(nowMs + 100)?.paths).toEqual(["a"]);
      expect(states.rested(entry(nowMs), nowMs + 100)).toBe(true);
    }
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

  it("remembers a file that is torn repeatedly although thousands of others come and rest", () => {
    const states = openPathStates(100);
    for (let times = 0; times <= VERSIONS_AT_ONCE; times += 1) states.torn("a", 1000);
    const ofAnother = (path: string, mtimeMs: number) => ({ ...entry(mtimeMs), path });
    for (let at = 0; at < 3000; at += 1) {
      expect(states.rested(ofAnother(`new${at}`, 3000), 3050)).toBe(false);
      expect(states.rested(ofAnother(`old${at}`, 3000), 3100)).toBe(true);
    }
    expect(states.rested(entry(3000), 1000 + 2 * VERSION_GAP_MS - 1)).toBe(false);
    expect(states.rested(entry(3000), 1000 + 2 * VERSION_GAP_MS)).toBe(true);
  });
});
