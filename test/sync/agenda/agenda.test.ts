import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Agenda, openAgenda } from "../../../src/sync/agenda/agenda.ts";

const SETTLE_MS = 1000;

let nowMs: number;
let busy: Set<string>;
let outdated: string[];
let agenda: Agenda;
const open = (once = false): Agenda => {
  agenda = openAgenda({
    settleMs: SETTLE_MS,
    inFlight: { has: (path) => busy.has(path), outdate: (path) => void outdated.push(path) },
    now: () => nowMs,
    once,
  });
  return agenda;
};
/** How long until something is due; undefined: nothing is. */
const dueIn = (): number | undefined => {
  const dueMs = agenda.dirty.nextDueMs();
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
  busy = new Set();
  outdated = [];
  open();
});
afterEach(() => agenda.stop());

describe("events", () => {
  it("an event has its path checked once that has rested", () => {
    agenda.hint("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
    expect(agenda.dirty.take(nowMs + SETTLE_MS)).toMatchObject({ all: false, paths: ["a.md"] });
  });

  it("an event of the whole source has it checked at once", () => {
    agenda.hint(undefined);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: true });
  });

  it("an event of a path with a job outdates that job, and marks nothing", () => {
    busy.add("a.md");
    agenda.hint("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], undefined]);
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
    busy.add("a.md");
    agenda.checkAgain("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], undefined]);
    agenda.checkAgain("a.md", nowMs + SETTLE_MS + 1);
    expect([outdated, dueIn()]).toEqual([["a.md"], SETTLE_MS + 1]);
  });

  it("leaves a check that is due much later to the next pass, in a single pass", () => {
    open(true).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBeUndefined();
    agenda.checkAgain("a.md", nowMs + 5000);
    expect(dueIn()).toBe(5000);
    open(false).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBe(5001);
  });

  it("checks a file that changed while it was read after the settle time", () => {
    agenda.checkTorn("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
  });
});

describe("checks that a person requests", () => {
  it("answers a person with a check that began after the request, at once", () => {
    expect([agenda.asked(), agenda.answered()]).toEqual([0, 0]);
    expect(agenda.ask("a.md")).toBe(1);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: false, paths: ["a.md"] });
    expect(agenda.ask(undefined)).toBe(2);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: true });
    agenda.answer(1);
    expect([agenda.asked(), agenda.answered()]).toEqual([2, 1]);
  });

  it("outdates the job of the path that a person asks about", () => {
    busy.add("a.md");
    agenda.ask("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], 0]);
    agenda.ask("b.md");
    expect(outdated).toEqual(["a.md"]);
  });
});

describe("checks of the whole source", () => {
  it("a future check of the whole source is a retry, for which nothing waits", () => {
    agenda.scanAt(nowMs + 60_000);
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, true]);
  });

  it("a check for an ignore file that settles is waited for, unless it is overdue", () => {
    agenda.awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: false });
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, false]);
    open().awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: true });
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, true]);
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
