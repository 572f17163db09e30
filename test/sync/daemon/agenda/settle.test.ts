import { describe, expect, it } from "vitest";
import { openAt } from "./at.ts";
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
    const states = openAt(1000);
    expect(states.at(1_000_100).rested(entry(1_000_000))).toBe(false);
    // It vanishes without another event. A day later there is another one.
    const laterMs = 1_000_000 + 86_400_000;
    expect(states.at(laterMs + 100).rested(entry(laterMs, 2))).toBe(false);
    expect(states.at(laterMs + 400).rested(entry(laterMs + 300, 3))).toBe(false);
    expect(states.at(laterMs + 1300).rested(entry(laterMs + 300, 3))).toBe(true);
  });

  it("waits longer for an empty file, because a program that rewrites a file empties it first", () => {
    const states = openAt(100);
    expect(states.at(1100).rested(entry(1000, 0))).toBe(false);
    expect(states.nextDueMs()).toBe(1000 + EMPTY_MS);
    expect(states.at(1000 + EMPTY_MS).rested(entry(1000, 0))).toBe(true);
    expect(states.at(3100).rested(entry(3000, 1))).toBe(true);
    // A settle time of zero requires no rest.
    expect(openAt(0).rested(entry(1000, 0), 1000)).toBe(true);
  });

  it("judges a file's age by the system's clock after a jump forward of it was corrected", () => {
    const states = openAt(100);
    // The monotonic clock is never set back: it stays a day ahead.
    const aheadMs = 86_400_000;
    expect(states.at(1050 + aheadMs).rested(entry(1000), 1050)).toBe(false);
    expect(states.nextDueMs()).toBe(1100 + aheadMs);
    expect(states.at(1100 + aheadMs).rested(entry(1000), 1100)).toBe(true);
  });

  it("reads a path that is torn repeatedly less often", () => {
    const states = openAt(100);
    let read = 0;
    for (let nowMs = 0; nowMs < 10 * CEILING_MS; nowMs += 200) {
      states.at(nowMs).event("a");
      const due = states.at(nowMs + 150).take();
      if (due === undefined || !states.at(nowMs + 150).rested(entry(nowMs))) continue;
      read += 1;
      states.at(nowMs + 150).checkTorn("a");
    }
    expect(read).toBeLessThanOrEqual((10 * CEILING_MS) / VERSION_GAP_MS + VERSIONS_AT_ONCE);
    expect(read).toBeGreaterThanOrEqual(9);
  });

  it("reads a path that is rewritten without a rest once a minute", () => {
    const states = openAt(100);
    let read = 0;
    for (let nowMs = 0; nowMs < 10 * CEILING_MS; nowMs += 200) {
      states.at(nowMs).event("a");
      const due = states.at(nowMs + 150).take();
      if (due === undefined) continue;
      const found = entry(nowMs + 149);
      if (!states.at(nowMs + 150).rested(found)) continue;
      read += 1;
      states.at(nowMs + 150).end(found);
    }
    expect([9, 10]).toContain(read);
  });

  it("is not at rest while a path waits that is torn repeatedly", () => {
    const states = openAt(100);
    for (let times = 0; times <= VERSIONS_AT_ONCE; times += 1) states.at(1000).checkTorn("a");
    states.at(1100).take();
    expect(states.rested(entry(0))).toBe(false);
    expect([states.isQuiet(), states.nextDueMs()]).toEqual([false, 1000 + 2 * VERSION_GAP_MS]);
  });

  it("checks a path at once though it is written to continually, because it may be gone", () => {
    const states = openAt(100);
    for (let times = 0; times < 20; times += 1) states.at(times).checkTorn("a");
    expect(states.at(1000).rested(entry(0))).toBe(false);
    states.at(1000).event("a");
    expect(states.at(1100).take()?.paths).toEqual(["a"]);
  });

  it("does not delay a person who saves a few times in a row", () => {
    const states = openAt(100);
    for (let nowMs = 0; nowMs < VERSIONS_AT_ONCE * 2000; nowMs += 2000) {
      states.at(nowMs).event("a");
      expect(states.at(nowMs + 100).take()?.paths).toEqual(["a"]);
      expect(states.at(nowMs + 100).rested(entry(nowMs))).toBe(true);
    }
  });

  it("does not delay a file that many checks find at rest before it is sent", () => {
    const states = openAt(100);
    for (let checks = 0; checks < 2 * VERSIONS_AT_ONCE; checks += 1)
      expect(states.at(1200 + checks).rested(entry(1000))).toBe(true);
  });

  it("releases old files at once, and fresh ones after a second check", () => {
    const states = openAt(100);
    expect(states.at(1000).rested(entry(0))).toBe(true);
    expect(states.at(1000).rested(entry(950))).toBe(false);
    expect(states.nextDueMs()).toBe(1050);
    expect(states.at(1050).take()?.paths).toEqual(["a"]);
    expect(states.at(1050).rested(entry(950))).toBe(true);
  });

  it("does not trust a modification time in the future, and does not wait for it", () => {
    const states = openAt(100);
    expect(states.at(1000).rested(entry(9_000_000))).toBe(false);
    expect(states.at(1050).rested(entry(9_000_000))).toBe(false);
    expect(states.at(1100).rested(entry(9_000_000))).toBe(true);
  });

  it("remembers a file that is torn repeatedly although thousands of others come and rest", () => {
    const states = openAt(100);
    for (let times = 0; times <= VERSIONS_AT_ONCE; times += 1) states.at(1000).checkTorn("a");
    const ofAnother = (path: string, mtimeMs: number) => ({ ...entry(mtimeMs), path });
    for (let at = 0; at < 3000; at += 1) {
      expect(states.at(3050).rested(ofAnother(`new${at}`, 3000))).toBe(false);
      expect(states.at(3100).rested(ofAnother(`old${at}`, 3000))).toBe(true);
    }
    expect(states.at(1000 + 2 * VERSION_GAP_MS - 1).rested(entry(3000))).toBe(false);
    expect(states.at(1000 + 2 * VERSION_GAP_MS).rested(entry(3000))).toBe(true);
  });
});
