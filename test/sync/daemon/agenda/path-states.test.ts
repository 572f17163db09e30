import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Counted } from "../../../../src/sync/plan/version.ts";
import type { PathState } from "../../../../src/sync/daemon/agenda/agenda.ts";
import { openAt, type TimedAgenda } from "./at.ts";
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
const REACH: Record<PathState, (states: TimedAgenda) => void> = {
  "at rest": () => undefined,
  waiting: (states) => states.at(0).checkAgain("a", LATER_MS),
  missing: (states) => states.at(0).miss("a", 1),
  settling: (states) => states.at(0).event("a"),
  checking: (states) => {
    states.at(0).event("a");
    states.at(SETTLE_MS).take();
  },
  queued: (states) => states.at(0).queue([candidate("a")]),
  sending: (states) => {
    states.at(0).queue([candidate("a")]);
    states.send("a");
  },
};

/** What can happen to a path. */
const EVENTS = {
  event: (states: TimedAgenda) => states.at(0).event("a"),
  soon: (states: TimedAgenda) => states.at(0).checkAgain("a", SETTLE_MS),
  later: (states: TimedAgenda) => states.at(0).checkAgain("a", LATER_MS),
  ask: (states: TimedAgenda) => states.at(0).ask("a"),
  take: (states: TimedAgenda) => void states.at(LATER_MS).take(),
  endPass: (states: TimedAgenda) => states.endPass(),
  decide: (states: TimedAgenda) => states.decide("a"),
  drop: (states: TimedAgenda) => states.at(0).drop(),
  queue: (states: TimedAgenda) => states.at(0).queue([candidate("a")]),
  send: (states: TimedAgenda) => states.send("a"),
  end: (states: TimedAgenda) => states.at(0).end(at("a")),
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
const opened = (state: PathState): TimedAgenda => {
  const states = openAt(SETTLE_MS);
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
    states.at(0).scanAt(0);
    expect(states.at(0).take()).toMatchObject({ all: true, paths: [] });
    expect([states.stateOf("a"), states.isBeingChecked("a")]).toEqual(["checking", true]);
    states.endPass();
    expect([states.stateOf("a"), states.isBeingChecked("a")]).toEqual(["missing", false]);
    states.at(0).event("a");
    states.at(0).event("b");
    expect([states.isQuiet(), states.isQuiet({ butMissing: true })]).toEqual([false, false]);
    states.decide("b");
    states.at(5).miss("b", 2);
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
    states.at(0).end(at("a"));
    expect(["a", "b", "c", "d"].map((path) => states.stateOf(path))).toEqual([
      "at rest",
      "settling",
      "settling",
      "at rest",
    ]);
    states.at(0).queue([candidate("a")]);
    states.at(0).end(at("a"));
    states.at(SETTLE_MS).take();
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
    states.at(0).end(at("a"));
    expect([states.stateOf("a"), states.nextDueMs()]).toEqual([after, dueMs]);
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
    states: TimedAgenda,
    { name, path }: { readonly name: string; readonly path: string },
    nowMs: number,
  ): { readonly noticed?: readonly string[]; readonly taken?: readonly string[] } => {
    const other = PATHS.find((each) => each !== path) ?? path;
    switch (name) {
      case "event":
        states.at(nowMs).event(path);
        return { noticed: [path] };
      case "soon":
      case "later":
        states.at(nowMs).checkAgain(path, nowMs + (name === "soon" ? SETTLE_MS : LATER_MS));
        return { noticed: [path] };
      case "ask":
        states.at(nowMs).ask(path);
        return { noticed: [path] };
      case "follow":
        return { noticed: states.checkAfter(path, other) ? [other] : [] };
      case "take":
        states.endPass();
        return { taken: states.at(nowMs).take()?.paths ?? [] };
      case "endPass":
        states.endPass();
        return {};
      // A pass decides only about paths without a job.
      case "miss":
        if (!states.hasJob(path)) states.at(nowMs).miss(path, 1);
        return {};
      case "decide":
        states.decide(path);
        return {};
      case "drop":
        states.at(nowMs).drop();
        return {};
      case "queue":
        if (!states.hasJob(path)) states.at(nowMs).queue([candidate(path)]);
        return {};
      case "send":
        states.send(path);
        return {};
      case "park":
        states.reported(path, "parked");
        return {};
      default:
        states.at(nowMs).end(at(path));
        return {};
    }
  };

  it("a path is always in one state, and what happened to it is checked: it is never forgotten", () => {
    fc.assert(
      fc.property(steps, (list) => {
        const states = openAt(SETTLE_MS);
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
        for (const path of PATHS) states.at(nowMs).end(at(path));
        states.forgetMissing();
        states.endPass();
        expect([...expected].filter((path) => !states.isDue(path))).toEqual([]);
        states.at(nowMs + 2 * LATER_MS).take();
        states.endPass();
        expect([states.paths().size, states.isQuiet(), states.nextDueMs()]).toEqual([0, true, undefined]);
        expect([states.hasJobs(), states.oldestMs(() => false)]).toEqual([false, undefined]);
        expect(states.counts(noRow)).toEqual({ agreed: 0, failed: 0, trouble: 0, nothing: 0 });
      }),
      { numRuns: randomRuns(300) },
    );
  });
});
