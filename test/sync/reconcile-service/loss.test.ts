import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openNumberSet, type NumberSet } from "../../../src/lib/number-set.ts";
import type { ActionContext } from "../../../src/sync/actions/context.ts";
import {
  type Check,
  driftWords,
  type LossGuard,
  openLossGuard,
} from "../../../src/sync/reconcile-service/loss.ts";
import { askTitle } from "../../../src/sync/reconcile-service/presence.ts";
import { openLedger, type Ledger } from "../../../src/sync/ledger/ledger.ts";
import type { Later } from "../../../src/sync/remote/answer.ts";

const MINUTE_MS = 60_000;

let folder: string;
let ledger: Ledger;
let source: number;
let nowMs: number;
/** The next result of the list; an error is thrown. */
let found: Check | Error | undefined;
/** Whether what the list omits is gone indeed. */
let gone: boolean | undefined;
let checks: number;
let refills: number;
let scans: number[];
let warnings: string[];
let abort: AbortController;

const open = (once = false): LossGuard =>
  openLossGuard({
    source,
    // The guard uses nothing else.
    context: { ledger, now: () => nowMs, signal: abort.signal } as unknown as ActionContext,
    once,
    check: async () => {
      checks += 1;
      if (found instanceof Error) throw found;
      return found;
    },
    scanAt: (atMs) => scans.push(atMs),
    onWarning: ({ message }) => warnings.push(message),
  });
const listed = (reason: string | undefined, ...missing: number[]): Check => {
  const rows: NumberSet = openNumberSet();
  for (const row of missing) rows.add(row);
  return {
    missing: rows,
    areGone: async () => gone,
    reason,
    refill: async () => void (refills += 1),
  };
};
const reason = (): string | undefined => {
  ledger.flush();
  return ledger.drift.loss(source)?.reason;
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-loss-"));
  ledger = openLedger(folder, "service");
  await ledger.write(() => {
    source = ledger.sources.open("/docs", "owner", "fastest").id;
    ledger.drift.setAdopted(source, true);
  });
  nowMs = 1_000_000;
  found = undefined;
  gone = true;
  checks = 0;
  refills = 0;
  scans = [];
  warnings = [];
  abort = new AbortController();
});
afterEach(() => {
  ledger.close();
  rmSync(folder, { recursive: true });
});

describe("resources that turn out to be gone", () => {
  it("up to three missing resources are created again in ten minutes; then the list is checked, and the source is checked at once", async () => {
    const guard = open();
    expect([1, 2, 3].map((row) => guard.mayRecreate(row))).toEqual([true, true, true]);
    expect(guard.isClosed()).toBe(false);
    expect([guard.mayRecreate(4), guard.mayRecreate(5)]).toEqual([false, false]);
    expect([guard.isClosed(), scans]).toEqual([true, [nowMs]]);
    expect(await guard.ready()).toBe(true);
    expect([checks, guard.isClosed()]).toEqual([1, false]);
    // The list was checked: the count starts over.
    expect(guard.mayRecreate(4)).toBe(true);
  });

  it("missing resources count across restarts, until the list was checked", async () => {
    expect([1, 2, 3].map((row) => open().mayRecreate(row))).toEqual([true, true, true]);
    const guard = open();
    expect(guard.mayRecreate(4)).toBe(false);
    expect(await guard.ready()).toBe(true);
    expect(open().mayRecreate(4)).toBe(true);
  });

  it("single missing resources are created again without a list", () => {
    const guard = open();
    for (let row = 0; row < 30; row += 1) {
      expect(guard.mayRecreate(row)).toBe(true);
      nowMs += (10 * MINUTE_MS) / 3;
    }
    expect(checks).toBe(0);
  });

  it("any number of missing resources are created again if the list showed exactly these as missing, for ten minutes after the last", () => {
    const guard = open();
    guard.allow(listed(undefined, 1, 2, 3, 4, 5, 6, 7, 8).missing);
    for (const row of [1, 2, 3, 4, 5]) {
      expect(guard.mayRecreate(row)).toBe(true);
      nowMs += 10 * MINUTE_MS - 1;
    }
    nowMs += 1;
    expect([6, 7, 8, 9].map((row) => guard.mayRecreate(row))).toEqual([true, true, true, false]);
    expect(guard.isClosed()).toBe(true);
  });
});

describe("a list that omits resources", () => {
  const mayRecreate = (guard: LossGuard): readonly boolean[] =>
    [1, 2, 3, 4, 5].map((row) => guard.mayRecreate(row));

  it.each([
    { isGone: true, result: [true, true, true, true, true] },
    { isGone: false, result: [true, true, true, false, false] },
    { isGone: undefined, result: [true, true, true, false, false] },
  ])(
    "a list that omits resources permits to create them again if they are gone: $isGone",
    async ({ isGone, result }) => {
      const guard = open();
      found = listed(undefined, 1, 2, 3, 4, 5);
      gone = isGone;
      guard.suspect();
      expect(await guard.ready()).toBe(true);
      expect(mayRecreate(guard)).toEqual(result);
    },
  );

  it("a list that omits resources of which none can be requested leaves what was permitted before", async () => {
    const guard = open();
    guard.allow(listed(undefined, 1, 2, 3, 4, 5).missing);
    found = listed(undefined, 6);
    gone = undefined;
    guard.suspect();
    expect(await guard.ready()).toBe(true);
    expect(mayRecreate(guard)).toEqual([true, true, true, true, true]);
  });

  it("a list that omits resources permits to create them again if a person agrees, whether they are gone or not", async () => {
    const guard = open();
    guard.hold("most are gone");
    found = listed("most are gone", 1, 2, 3, 4, 5);
    gone = false;
    await ledger.write(() => ledger.sources.approve(source));
    expect(await guard.ready()).toBe(true);
    expect(mayRecreate(guard)).toEqual([true, true, true, true, true]);
  });
});

describe("a source that lost most of its resources", () => {
  it("a source with a loss is held with the reason, and compared again at growing intervals", async () => {
    const guard = open();
    guard.suspect();
    guard.suspect();
    expect(scans).toEqual([nowMs]);
    found = listed("most are gone");
    expect(await guard.ready()).toBe(false);
    expect([reason(), guard.isClosed()]).toEqual(["most are gone", true]);
    guard.suspect();
    expect(scans.slice(1)).toEqual([nowMs + MINUTE_MS]);
    expect(guard.nextCheckMs()).toBe(nowMs + MINUTE_MS);
    nowMs += MINUTE_MS - 1;
    expect([await guard.ready(), checks]).toEqual([false, 1]);
    nowMs += 1;
    expect([await guard.ready(), checks]).toEqual([false, 2]);
    expect(guard.nextCheckMs()).toBe(nowMs + 2 * MINUTE_MS);
  });

  it("a source with a loss is held after a restart as well", () => {
    open().hold("most are gone");
    ledger.flush();
    expect(open().isClosed()).toBe(true);
  });

  it("a source with a loss continues by itself when the resources are back, and its next loss is compared as soon as the first", async () => {
    const guard = open();
    guard.hold("most are gone");
    nowMs = guard.nextCheckMs();
    guard.hold("most are gone");
    nowMs = guard.nextCheckMs();
    found = listed(undefined);
    expect(await guard.ready()).toBe(true);
    expect([reason(), guard.isClosed(), refills]).toEqual([undefined, false, 0]);
    guard.hold("gone again");
    expect(guard.nextCheckMs()).toBe(nowMs + MINUTE_MS);
  });

  it("a source with a loss is filled again when a person agrees, without waiting for the next check", async () => {
    const guard = open();
    found = listed("most are gone", 1, 2, 3, 4, 5);
    guard.suspect();
    expect(await guard.ready()).toBe(false);
    await ledger.write(() => ledger.sources.approve(source));
    expect(await guard.ready()).toBe(true);
    expect([reason(), refills]).toEqual([undefined, 1]);
    expect([1, 2, 3, 4, 5].map((row) => guard.mayRecreate(row))).toEqual([true, true, true, true, true]);
  });

  it("a source with a loss is left to the adoption if its rows are those of an old ledger", async () => {
    const guard = open();
    guard.hold("most are gone");
    await ledger.write(() => ledger.drift.distrust(source));
    nowMs = guard.nextCheckMs();
    expect([await guard.ready(), checks, guard.isClosed()]).toEqual([true, 0, false]);
    guard.suspect();
    expect(guard.isClosed()).toBe(true);
  });
});

it("a source whose old ledger found another folder is filled again when a person agrees to its loss", async () => {
  // Its rows were compared with the list then, its files were not.
  await ledger.write(() => {
    ledger.drift.distrust(source);
    ledger.drift.setAdopted(source, false);
    ledger.drift.setUnsearched(source, { parts: [""], sinceMs: nowMs });
  });
  const guard = open();
  guard.hold("most are gone");
  found = listed("most are gone", 1, 2, 3, 4, 5);
  await ledger.write(() => ledger.sources.approve(source));
  expect(await guard.ready()).toBe(true);
  expect([reason(), refills]).toEqual([undefined, 1]);
});

describe("a list that cannot be had", () => {
  it("a running daemon requests a list again later if it cannot get one, and reports it", async () => {
    const guard = open();
    guard.suspect();
    found = new Error("no list");
    expect(await guard.ready()).toBe(false);
    expect([warnings, guard.isClosed()]).toEqual([["no list"], true]);
    expect(scans).toEqual([nowMs, nowMs + MINUTE_MS]);
    expect(guard.nextCheckMs()).toBe(nowMs + MINUTE_MS);
  });

  it("a list that cannot be had ends a single pass", async () => {
    const guard = open(true);
    guard.suspect();
    found = new Error("no list");
    await expect(guard.ready()).rejects.toThrow("no list");
  });

  it("a stop ends a daemon's check that waits for a list", async () => {
    const guard = open();
    guard.suspect();
    found = new Error("stopped");
    abort.abort();
    await expect(guard.ready()).rejects.toThrow("stopped");
    expect(warnings).toEqual([]);
  });
});

it("a source without suspicion requests no list", async () => {
  expect([await open().ready(), checks]).toEqual([true, 0]);
});

it.each([
  [{ kind: "missing", alterations: [] }, "the service no longer has it"],
  [{ kind: "altered", alterations: [] }, "it was changed at the service"],
  [{ kind: "altered", alterations: ["text"] }, "its text was changed at the service"],
  [{ kind: "altered", alterations: ["text", "address"] }, "its text and address were changed at the service"],
] as const)("%o is described in words", (drifted, words) => {
  expect(driftWords(drifted)).toBe(words);
});

describe("a resource that is asked after by its title", () => {
  const later: Later = { kind: "later", acted: "no", blame: "service", reason: "not now" };
  /** Returns how often it is requested, and the result, when the service gives these answers and then confirms it. */
  const ask = async (answers: readonly Later[]): Promise<readonly [string, number]> => {
    let asked = 0;
    const update = async (): Promise<unknown> =>
      await Promise.resolve(answers[asked++] ?? { kind: "done", value: {} });
    // Nothing else is used.
    const context = { remote: { update } } as unknown as ActionContext;
    const presence = await askTitle(context, { docId: "doc", title: "a title" }, abort.signal);
    return [presence, asked];
  };

  it("a paused source is queried by title once, because nothing is sent before it resumes", async () => {
    expect(await ask(Array.from({ length: 9 }, () => ({ ...later, isPaused: true })))).toEqual([
      "unanswered",
      1,
    ]);
  });

  it("a resource is queried by title again when the service as a whole did not answer, however often", async () => {
    expect(await ask(Array.from({ length: 9 }, () => later))).toEqual(["there", 10]);
  });

  it("a query by title is given up when the service fails on that resource alone", async () => {
    const alone: Later = { ...later, acted: "maybe", blame: "request" };
    expect(await ask(Array.from({ length: 9 }, () => alone))).toEqual(["unanswered", 3]);
  });
});
