import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import { auditWords } from "../../../src/sync/daemon/audits.ts";
import { type ChoreOptions, type Chores, startChores } from "../../../src/sync/daemon/chores.ts";

const NOTHING: AuditReport = { sources: [], findings: [], unnamed: 0, foreign: 0, agrees: true, left: 0 };
const HOUR_MS = 3_600_000;

describe("audits by themselves", () => {
  let chores: Chores | undefined;
  let audits: number[];
  let startMs: number;
  beforeEach(() => {
    vi.useFakeTimers();
    audits = [];
    startMs = Date.now();
  });
  afterEach(() => {
    void chores?.stop();
    vi.useRealTimers();
  });
  const begin = (more: Partial<ChoreOptions> = {}): void => {
    chores = startChores({
      periodMs: 24 * HOUR_MS,
      auditedMs: undefined,
      random: () => 0,
      isIdle: () => true,
      audit: () => {
        audits.push(Date.now() - startMs);
        return Promise.resolve();
      },
      compareAgain: () => Promise.resolve(),
      prune: () => Promise.resolve(),
      onFailure: () => undefined,
      ...more,
    });
  };

  it("audits come some minutes after the start, then once a period", async () => {
    begin();
    await vi.advanceTimersByTimeAsync(50 * HOUR_MS);
    expect(audits).toEqual([10 * 60_000, 24 * HOUR_MS + 10 * 60_000, 48 * HOUR_MS + 10 * 60_000]);
  });

  it("audits are no more frequent for a daemon that is restarted repeatedly", async () => {
    begin({ auditedMs: startMs - 20 * HOUR_MS });
    await vi.advanceTimersByTimeAsync(5 * HOUR_MS);
    expect(audits).toEqual([4 * HOUR_MS]);
  });

  it("audits wait until there is nothing else to do", async () => {
    begin({ isIdle: () => Date.now() - startMs > HOUR_MS });
    await vi.advanceTimersByTimeAsync(HOUR_MS);
    expect(audits).toEqual([]);
    await vi.advanceTimersByTimeAsync(2 * 60_000);
    expect(audits).toHaveLength(1);
  });

  it("audits are spread randomly", async () => {
    begin({ random: () => 0.99, auditedMs: startMs });
    await vi.advanceTimersByTimeAsync(24 * HOUR_MS);
    expect(audits).toEqual([]);
    await vi.advanceTimersByTimeAsync(3 * HOUR_MS);
    expect(audits).toHaveLength(1);
  });

  it("audits continue after one that failed, and report it", async () => {
    const failures: unknown[] = [];
    begin({
      audit: () => {
        audits.push(0);
        return Promise.reject(new Error("no list"));
      },
      onFailure: (error) => failures.push(error),
    });
    await vi.advanceTimersByTimeAsync(25 * HOUR_MS);
    expect([audits.length, failures.length]).toEqual([2, 2]);
  });

  it("audits never come with a period of 0, nor once stopped", async () => {
    begin({ periodMs: 0 });
    await vi.advanceTimersByTimeAsync(100 * HOUR_MS);
    begin();
    void chores?.stop();
    await vi.advanceTimersByTimeAsync(100 * HOUR_MS);
    expect(audits).toEqual([]);
  });

  it("audits are not postponed for years by a clock that was wrong once", async () => {
    begin({ auditedMs: startMs + 1000 * 24 * HOUR_MS });
    await vi.advanceTimersByTimeAsync(25 * HOUR_MS);
    expect(audits).toHaveLength(1);
  });
});

describe("the report of an audit", () => {
  const source = {
    path: "/d",
    resources: 9,
    missing: 0,
    altered: 0,
    files: 9,
    searchable: 9,
    reading: 0,
    waiting: 0,
    failed: 0,
    held: 0,
    deletesRefused: 0,
    unreadable: 0,
    lost: null,
    unjudged: 0,
    listed: true,
  };
  it.each<[string, AuditReport, string | undefined]>([
    ["nothing if all agree", NOTHING, undefined],
    ["nothing of foreign resources", { ...NOTHING, foreign: 3 }, undefined],
    [
      "counts of what differs",
      {
        ...NOTHING,
        agrees: false,
        sources: [{ ...source, missing: 2, altered: 1 }],
        findings: [
          { source: "/d", path: "a", docId: "1", title: "a", kind: "twice", what: "", repaired: true },
        ],
      },
      "2 missing, 1 altered, 1 there twice",
    ],
  ])("an audit reports %s", (_, report, words) => {
    expect(auditWords(report) ?? "nothing").toContain(words ?? "nothing");
  });
});
