import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Agenda, openAgenda } from "../../../../src/sync/daemon/agenda/agenda.ts";
import type { Due } from "../../../../src/sync/daemon/agenda/checks.ts";
import type { ScanEntry } from "../../../../src/sync/plan/model.ts";

const SETTLE_MS = 1000;

let nowMs: number;
let agenda: Agenda;
const open = (once = false): Agenda => {
  agenda = openAgenda({ settleMs: SETTLE_MS, now: () => nowMs, once });
  return agenda;
};
const entry: ScanEntry = { path: "a.md", sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 };
const begin = (): void => agenda.queue([{ entry, known: undefined }]);
const take = (inMs: number): Due | undefined => {
  nowMs += inMs;
  return agenda.take();
};
const isOutdated = (): boolean => agenda.isOutdated(entry.path);
/** How long until something is due; undefined: nothing is. */
const dueIn = (): number | undefined => {
  const dueMs = agenda.nextDueMs();
  return dueMs === undefined ? undefined : dueMs - nowMs;
};
/** Whether the loop has woken. */
const isAwake = async (): Promise<boolean> => {
  let woken = false;
  void agenda.time().then(() => (woken = true));
  for (let turns = 0; turns < 3; turns += 1) await new Promise(setImmediate);
  return woken;
};

beforeEach(() => {
  nowMs = 1_000_000;
  open();
});
afterEach(() => agenda.stop());

describe("events", () => {
  it("an event has its path checked once that has rested", () => {
    agenda.hint("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
    expect(take(SETTLE_MS)).toMatchObject({ all: false, paths: ["a.md"] });
  });

  it("an event of the whole source has it checked at once", () => {
    agenda.hint(undefined);
    expect(take(0)).toMatchObject({ all: true });
  });

  it("an event of a path whose job waits ends the job, and has the path checked soon", () => {
    begin();
    agenda.hint("a.md");
    expect([agenda.hasJob("a.md"), dueIn()]).toEqual([false, SETTLE_MS]);
  });

  it("an event of a path that is being sent has it checked after the job", () => {
    begin();
    agenda.send("a.md");
    agenda.hint("a.md");
    expect([isOutdated(), dueIn()]).toEqual([true, undefined]);
    agenda.end(entry);
    expect(dueIn()).toBe(SETTLE_MS);
  });
});

describe("paths that are checked again", () => {
  it("checks a path again after the settle time, or at a time", () => {
    agenda.checkAgain("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
    agenda.checkAgain("a.md", nowMs + 10);
    expect(dueIn()).toBe(10);
  });

  it("leaves a path to its job when it is due soon, and marks it when it is due later", () => {
    begin();
    agenda.send("a.md");
    agenda.checkAgain("a.md", nowMs + SETTLE_MS + 1);
    expect([isOutdated(), dueIn()]).toEqual([false, SETTLE_MS + 1]);
    agenda.end(entry);
    begin();
    agenda.send("a.md");
    expect(take(SETTLE_MS + 1)?.paths).toEqual(["a.md"]);
    agenda.checkAgain("a.md");
    expect([isOutdated(), dueIn()]).toEqual([true, undefined]);
  });

  it("leaves a check that is due much later to the next pass, in a single pass", () => {
    open(true).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBeUndefined();
    agenda.checkAgain("a.md", nowMs + 5000);
    expect(dueIn()).toBe(5000);
    open(false).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBe(5001);
  });

  it.each([
    [true, 5001, undefined],
    [true, 5000, 5000],
    [false, 5001, 5001],
  ])(
    "reads a file again after its job, unless a single pass (%s) ends before (%i)",
    (once, inMs, expected) => {
      open(once);
      begin();
      agenda.rereadAt("a.md", nowMs + inMs);
      expect(dueIn()).toBeUndefined();
      agenda.end(entry);
      expect(dueIn()).toBe(expected);
    },
  );

  it("checks a file that changed while it was read after the settle time", () => {
    agenda.checkTorn("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
  });
});

describe("checks that a person requests", () => {
  it("answers a person with a check that began after the request, at once", () => {
    expect([agenda.asked(), agenda.answered()]).toEqual([0, 0]);
    expect(agenda.ask("a.md")).toBe(1);
    expect(take(0)).toMatchObject({ all: false, paths: ["a.md"] });
    expect(agenda.ask(undefined)).toBe(2);
    expect(take(0)).toMatchObject({ all: true });
    agenda.answer(1);
    expect([agenda.asked(), agenda.answered()]).toEqual([2, 1]);
  });

  it("checks a file in flight that a person asks about, and leaves its job alone", () => {
    begin();
    agenda.send("a.md");
    agenda.ask("a.md");
    expect([isOutdated(), dueIn()]).toEqual([false, 0]);
  });
});

describe("checks of the whole source", () => {
  it("a future check of the whole source is a retry, for which nothing waits", () => {
    agenda.scanAt(nowMs + 60_000);
    expect([dueIn(), agenda.isQuiet()]).toEqual([60_000, true]);
  });

  it("a check for an ignore file that settles is waited for, unless it is overdue", () => {
    agenda.awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: false });
    expect([dueIn(), agenda.isQuiet()]).toEqual([60_000, false]);
    open().awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: true });
    expect([dueIn(), agenda.isQuiet()]).toEqual([60_000, true]);
  });
});

describe("the loop", () => {
  it("the loop waits while nothing is due, and work that is due wakes it", async () => {
    expect(await isAwake()).toBe(false);
    agenda.wakeAt(nowMs + 3_600_000);
    expect(await isAwake()).toBe(false);
    agenda.ask("a.md");
    await agenda.time();
  });

  it.each<[string, () => void]>([
    ["an event of the whole source", () => agenda.hint(undefined)],
    ["a check of the whole source", () => agenda.scanAt(nowMs)],
    ["an ignore file that has settled", () => agenda.awaitIgnoreFile({ atMs: nowMs, isOverdue: false })],
    ["a path to check again", () => agenda.checkAgain("a.md", nowMs)],
    ["a time that has come", () => agenda.wakeAt(nowMs)],
    ["its stop", () => agenda.stop()],
  ])("%s wakes the loop", async (_what, wake) => {
    agenda.wakeAt(nowMs + 3_600_000);
    wake();
    await expect(agenda.time()).resolves.toBeUndefined();
  });

  it("a stopped loop has no timer", async () => {
    agenda.stop();
    await agenda.time();
    agenda.hint(undefined);
    expect(await isAwake()).toBe(false);
  });
});
