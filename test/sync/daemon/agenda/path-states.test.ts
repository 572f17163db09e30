import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Counted } from "../../../../src/sync/plan/version.ts";
import {
  openPathStates,
  type PathState,
  type PathStates,
} from "../../../../src/sync/daemon/agenda/path-states.ts";
import type { Candidate, FileState, ScanEntry } from "../../../../src/sync/plan/model.ts";
import { randomRuns } from "../../../random-runs.ts";

const SETTLE_MS = 100;
const LATER_MS = 10_000;

const at = (path: string): ScanEntry => ({ path, sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 });
const candidate = (path: string, state?: FileState): Candidate => ({
  entry: at(path),
  known: state && { ...at(path), id: 1, docId: null, state, rulesKey: 1 },
});
const noRow = (): Counted => "nothing";

/** Brings the path from rest into each state. */
const REACH: Record<PathState, (states: PathStates) => void> = {
  "at rest": () => undefined,
  waiting: (states) => states.checkAgain("a", LATER_MS, 0),
  missing: (states) => states.miss("a", 1, 0),
  settling: (states) => states.event("a", 0),
  checking: (states) => {
    states.event("a", 0);
    states.take(SETTLE_MS);
  },
  queued: (states) => states.queue([candidate("a")], 0),
  sending: (states) => {
    states.queue([candidate("a")], 0);
    states.send("a");
  },
};

/** What can happen to a path. */
const EVENTS = {
  event: (states: PathStates) => states.event("a", 0),
  soon: (states: PathStates) => states.checkAgain("a", SETTLE_MS, 0),
  later: (states: PathStates) => states.checkAgain("a", LATER_MS, 0),
  ask: (states: PathStates) => states.ask("a", 0),
  take: (states: PathStates) => void states.take(LATER_MS),
  endPass: (states: PathStates) => states.endPass(),
  decide: (states: PathStates) => states.decide("a"),
  drop: (states: PathStates) => states.drop(0),
  queue: (states: PathStates) => states.queue([candidate("a")], 0),
  send: (states: PathStates) => states.send("a"),
  end: (states: PathStates) => states.end(at("a"), 0),
} as const;

/** The state after each event. An event that is not listed leaves the state as it is. */
const TRANSITIONS: Record<PathState, Partial<Record<keyof typeof EVENTS, PathState>>> = {
  "at rest": { event: "settling", soon: "settling", later: "waiting", ask: "settling", queue: "queued" },
  waiting: { event: "settling", soon: "settling", ask: "settling", take: "checking", queue: "queued" },
  missing: { event: "settling", soon: "settling", ask: "settling", decide: "at rest", queue: "queued" },
  settling: { take: "checking", queue: "queued" },
  checking: { endPass: "at rest", queue: "queued" },
  queued: {
    event: "settling",
    soon: "settling",
    ask: "settling",
    send: "sending",
    end: "at rest",
    drop: "at rest",
  },
  sending: { queue: "queued", end: "at rest" },
};

const STATES = Object.keys(TRANSITIONS) as PathState[]; // Its keys are the states.
const NAMES = Object.keys(EVENTS) as (keyof typeof EVENTS)[]; // Likewise.
const opened = (state: PathState): PathStates => {
  const states = openPathStates(SETTLE_MS);
  REACH[state](states);
  return states;
};

describe("the transitions of a path", () => {
  it.each(STATES.flatMap((state) => NAMES.map((name) => [state, name, TRANSITIONS[state][name] ?? state])))(
    "a path that is %s is, after %s, %s",
    (state, name, after) => {
      const states = opened(state as PathState); // As the table above has it.
      expect(states.stateOf("a")).toBe(state);
      EVENTS[name as keyof typeof EVENTS](states); // Likewise.
      expect(states.stateOf("a")).toBe(after);
      expect([...states.paths()]).toEqual(after === "at rest" ? [] : ["a"]);
    },
  );

  it.each<[PathState, keyof typeof EVENTS, keyof typeof EVENTS, PathState]>([
    ["checking", "event", "endPass", "settling"],
    ["checking", "later", "endPass", "waiting"],
    ["queued", "event", "end", "settling"],
    ["queued", "soon", "end", "settling"],
    ["queued", "later", "end", "waiting"],
    ["sending", "event", "end", "settling"],
    ["sending", "ask", "end", "settling"],
    ["missing", "later", "decide", "waiting"],
    ["missing", "later", "take", "checking"],
    ["queued", "later", "drop", "waiting"],
  ])(
    "what happens to a path that is %s (%s) is not forgotten: after %s it is %s",
    (state, name, then, after) => {
      const states = opened(state);
      EVENTS[name](states);
      EVENTS[then](states);
      expect(states.stateOf("a")).toBe(after);
    },
  );

  it("a missing path is being checked by every pass", () => {
    const states = opened("missing");
    states.checkAll(0, 0);
    expect(states.take(0)).toMatchObject({ all: true, paths: [] });
    expect([states.stateOf("a"), states.isBeingChecked("a")]).toEqual(["checking", true]);
    states.endPass();
    expect([states.stateOf("a"), states.isBeingChecked("a")]).toEqual(["missing", false]);
    states.event("a", 0);
    states.event("b", 0);
    expect([states.isQuiet(), states.isQuiet({ butMissing: true })]).toEqual([false, false]);
    states.decide("b");
    states.miss("b", 2, 5);
    expect([states.isQuiet(), states.isQuiet({ butMissing: true })]).toEqual([false, true]);
    expect([...states.missing()]).toEqual([
      ["a", { id: 1, sinceMs: 0 }],
      ["b", { id: 2, sinceMs: 5 }],
    ]);
    states.forgetMissing();
    expect(states.missing().size).toBe(0);
  });

  it("a path that waits for the job of another one is checked after it", () => {
    const states = opened("sending");
    expect(["b", "c"].map((path) => states.checkAfter("a", path))).toEqual([true, true]);
    expect(states.checkAfter("not there", "d")).toBe(false);
    states.end(at("a"), 0);
    expect(["a", "b", "c", "d"].map((path) => states.stateOf(path))).toEqual([
      "at rest",
      "settling",
      "settling",
      "at rest",
    ]);
    states.queue([candidate("a")], 0);
    states.end(at("a"), 0);
    states.take(SETTLE_MS);
    expect([...states.due()]).toEqual([]);
  });

  it.each([
    [500, "settling", 500],
    [59_999, "waiting", 59_999],
    [60_000, "at rest", undefined],
  ])("a file that is to be read again at %i is then %s after its job", (atMs, after, dueMs) => {
    const states = opened("sending");
    states.rereadAt("a", atMs);
    states.rereadAt("not there", atMs);
    states.end(at("a"), 0);
    expect([states.stateOf("a"), states.nextDueMs()]).toEqual([after, dueMs]);
  });

  it("each scheduled check sets the alarm", () => {
    const dueMs: number[] = [];
    const states = openPathStates(SETTLE_MS, (atMs) => dueMs.push(atMs));
    states.event("a", 1);
    states.checkAgain("a", 7, 1);
    states.ask("a", 3);
    states.checkAll(9, 1);
    expect(dueMs).toEqual([1 + SETTLE_MS, 7, 3, 9]);
  });
});

describe("laws of path states", () => {
  const PATHS = ["a", "b", "c"];
  const steps = fc.array(
    fc.record({
      name: fc.constantFrom(...NAMES, "miss", "follow", "park"),
      path: fc.constantFrom(...PATHS),
      afterMs: fc.integer({ min: 0, max: 400 }),
    }),
    { minLength: 20, maxLength: 80 },
  );

  /** What a source does; returns paths of which it expects another check, and those that this check has taken. */
  const apply = (
    states: PathStates,
    { name, path }: { readonly name: string; readonly path: string },
    nowMs: number,
  ): { readonly noticed?: readonly string[]; readonly taken?: readonly string[] } => {
    const other = PATHS.find((each) => each !== path) ?? path;
    switch (name) {
      case "event":
        states.event(path, nowMs);
        return { noticed: [path] };
      case "soon":
      case "later":
        states.checkAgain(path, nowMs + (name === "soon" ? SETTLE_MS : LATER_MS), nowMs);
        return { noticed: [path] };
      case "ask":
        states.ask(path, nowMs);
        return { noticed: [path] };
      case "follow":
        return { noticed: states.checkAfter(path, other) ? [other] : [] };
      case "take":
        states.endPass();
        return { taken: states.take(nowMs)?.paths ?? [] };
      case "endPass":
        states.endPass();
        return {};
      // A pass decides only about paths without a job.
      case "miss":
        if (!states.hasJob(path)) states.miss(path, 1, nowMs);
        return {};
      case "decide":
        states.decide(path);
        return {};
      case "drop":
        states.drop(nowMs);
        return {};
      case "queue":
        if (!states.hasJob(path)) states.queue([candidate(path)], nowMs);
        return {};
      case "send":
        states.send(path);
        return {};
      case "park":
        states.reported(path, "parked");
        return {};
      default:
        states.end(at(path), nowMs);
        return {};
    }
  };

  it("a path is always in one state, and what happened to it is checked: it is never forgotten", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const states = openPathStates(SETTLE_MS);
        const expected = new Set<string>();
        let nowMs = 0;
        for (const step of list) {
          nowMs += step.afterMs;
          const { noticed = [], taken = [] } = apply(states, step, nowMs);
          for (const path of taken) expected.delete(path);
          for (const path of noticed) expected.add(path);
          const inState = PATHS.filter((path) => states.stateOf(path) !== "at rest");
          expect([...states.paths()].toSorted()).toEqual(inState);
          const counts = states.counts(noRow);
          const jobs = PATHS.filter((path) => states.hasJob(path));
          expect([...states.jobPaths()].toSorted()).toEqual(jobs);
          expect(counts.nothing).toBeGreaterThanOrEqual(jobs.length);
          for (const path of PATHS) {
            const state = states.stateOf(path);
            expect(states.hasJob(path)).toBe(state === "queued" || state === "sending");
            expect(states.isSending(path)).toBe(state === "sending");
            expect(states.hasJob(path) && states.isParked(path)).toBe(false);
            expect(states.isOutdated(path) && !states.hasJob(path)).toBe(false);
            const isFollower = expected.has(path) && jobs.length > 0;
            expect(expected.has(path) && state === "at rest" && !isFollower).toBe(false);
          }
        }
        for (const path of PATHS) states.end(at(path), nowMs);
        states.forgetMissing();
        states.endPass();
        expect([...expected].filter((path) => !states.isDue(path))).toEqual([]);
        states.take(nowMs + 2 * LATER_MS);
        states.endPass();
        expect([states.paths().size, states.isQuiet(), states.nextDueMs()]).toEqual([0, true, undefined]);
        expect([states.hasJobs(), states.oldestMs(() => false)]).toEqual([false, undefined]);
        expect(states.counts(noRow)).toEqual({ agreed: 0, failed: 0, trouble: 0, nothing: 0 });
      }),
      { numRuns: randomRuns(300) },
    );
  });
});
