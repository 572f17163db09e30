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
/** Whether the loop has been woken. */
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

describe("a hint", () => {
  it("has a path looked at when it has rested", () => {
    agenda.hint("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
    expect(agenda.dirty.take(nowMs + SETTLE_MS)).toMatchObject({ all: false, paths: ["a.md"] });
  });

  it("of the whole source has it looked at at once", () => {
    agenda.hint(undefined);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: true });
  });

  it("of a path with a job outdates that job, and marks nothing", () => {
    busy.add("a.md");
    agenda.hint("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], undefined]);
  });
});

describe("a path that is to be looked at again", () => {
  it("is so after the settle time, or at a time", () => {
    agenda.checkAgain("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
    agenda.checkAgain("a.md", nowMs + 10);
    expect(dueIn()).toBe(10);
  });

  it("is left to its job when that is soon, and marked when it is later", () => {
    busy.add("a.md");
    agenda.checkAgain("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], undefined]);
    agenda.checkAgain("a.md", nowMs + SETTLE_MS + 1);
    expect([outdated, dueIn()]).toEqual([["a.md"], SETTLE_MS + 1]);
  });

  it("much later is left to the next pass, by one pass alone", () => {
    open(true).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBeUndefined();
    agenda.checkAgain("a.md", nowMs + 5000);
    expect(dueIn()).toBe(5000);
    open(false).checkAgain("a.md", nowMs + 5001);
    expect(dueIn()).toBe(5001);
  });

  it("because it changed while it was read is due after the settle time", () => {
    agenda.checkTorn("a.md");
    expect(dueIn()).toBe(SETTLE_MS);
  });
});

describe("a person's question", () => {
  it("is answered by a look that began after it, at once", () => {
    expect([agenda.asked(), agenda.answered()]).toEqual([0, 0]);
    expect(agenda.ask("a.md")).toBe(1);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: false, paths: ["a.md"] });
    expect(agenda.ask(undefined)).toBe(2);
    expect(agenda.dirty.take(nowMs)).toMatchObject({ all: true });
    agenda.answer(1);
    expect([agenda.asked(), agenda.answered()]).toEqual([2, 1]);
  });

  it("after a path with a job outdates the job as well", () => {
    busy.add("a.md");
    agenda.ask("a.md");
    expect([outdated, dueIn()]).toEqual([["a.md"], 0]);
    agenda.ask("b.md");
    expect(outdated).toEqual(["a.md"]);
  });
});

describe("a look at the whole source", () => {
  it("in the future is a retry, for which nothing waits", () => {
    agenda.scanAt(nowMs + 60_000);
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, true]);
  });

  it("is waited for when an ignore file settles then, unless that is overdue", () => {
    agenda.awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: false });
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, false]);
    open().awaitIgnoreFile({ atMs: nowMs + 60_000, isOverdue: true });
    expect([dueIn(), agenda.dirty.isQuiet()]).toEqual([60_000, true]);
  });
});

describe("the loop", () => {
  it("waits as long as nothing is due, and is woken by what is due now", async () => {
    expect(await isAwake()).toBe(false);
    agenda.wakeAt(nowMs + 3_600_000);
    expect(await isAwake()).toBe(false);
    agenda.ask("a.md");
    await agenda.time();
  });

  it.each<[string, () => void]>([
    ["a hint of the whole source", () => agenda.hint(undefined)],
    ["a look at the whole source", () => agenda.scanAt(nowMs)],
    ["an ignore file that has settled", () => agenda.awaitIgnoreFile({ atMs: nowMs, isOverdue: false })],
    ["a path to look at again", () => agenda.checkAgain("a.md", nowMs)],
    ["a time that has come", () => agenda.wakeAt(nowMs)],
    ["its stop", () => agenda.stop()],
  ])("goes on with %s", async (_what, wake) => {
    agenda.wakeAt(nowMs + 3_600_000);
    wake();
    await expect(agenda.time()).resolves.toBeUndefined();
  });

  it("holds no timer once it is stopped", async () => {
    agenda.stop();
    await agenda.time();
    agenda.hint(undefined);
    expect(await isAwake()).toBe(false);
  });
});
