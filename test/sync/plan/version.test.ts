import { array, assert, boolean, constantFrom, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countedAs,
  countVersions,
  type FileWork,
  type VersionFacts,
  versionOf,
  withWork,
} from "../../../src/sync/plan/version.ts";

const REST: VersionFacts = {
  row: "agreed",
  trouble: undefined,
  work: "none",
  sinceMs: undefined,
  change: undefined,
  leftOutBy: undefined,
  blocker: undefined,
  outage: undefined,
  hasMeaning: undefined,
};
const TROUBLE = { code: "too_odd", message: "too odd" };
const PAUSED = { code: "paused", reason: "paused until resume" } as const;
const HALTED = { code: "halted", reason: "the folder is missing" } as const;

describe("the state of a file's newest version", () => {
  it.each<[string, Partial<VersionFacts>, string, string]>([
    ["an acknowledged file", {}, "searchable", "found by words"],
    ["one with vectors", { hasMeaning: true }, "searchable", "found by words and by meaning"],
    [
      "one without vectors yet",
      { hasMeaning: false },
      "searchable",
      "found by words; its vectors are being computed",
    ],
    ["a change that was noticed", { work: "noticed" }, "waiting", "a change was noticed and is checked"],
    ["a new file in the queue", { row: undefined, work: "queued" }, "waiting", "it waits for its turn"],
    ["a file in flight", { work: "sending" }, "waiting", "it is being sent"],
    [
      "a file that the service reads",
      { row: undefined, work: "reading" },
      "reading",
      "the service is reading it",
    ],
    [
      "one that it reads during an outage",
      { work: "reading", outage: "down" },
      "reading",
      "the service is reading it",
    ],
    ["a change during an outage", { work: "queued", outage: "down" }, "waiting", "down"],
    ["an unchanged file during an outage", { outage: "down" }, "searchable", "found by words"],
    ["a change in a paused folder", { work: "queued", blocker: PAUSED }, "waiting", "paused until resume"],
    [
      "an update of it without an answer",
      { row: "unsure", blocker: PAUSED },
      "waiting",
      "paused until resume",
    ],
    ["an unchanged file in a paused folder", { blocker: PAUSED }, "searchable", "found by words"],
    ["a file of a folder that is missing", { blocker: HALTED }, "waiting", "the folder is missing"],
    [
      "a change that no daemon noticed",
      { work: "unknown", change: "its text differs" },
      "waiting",
      "its text differs",
    ],
    ["a refused file", { row: "failed", trouble: TROUBLE }, "failed", "too odd"],
    [
      "a refused file that was changed",
      { row: "failed", trouble: TROUBLE, work: "queued" },
      "waiting",
      "it waits for its turn",
    ],
    [
      "a refused file that is checked",
      { row: "failed", trouble: TROUBLE, work: "noticed" },
      "failed",
      "too odd",
    ],
    [
      "a file that is tried again later",
      { row: "parked", trouble: TROUBLE, work: "retry" },
      "waiting",
      "too odd",
    ],
    ["an update without an answer", { row: "unsure" }, "waiting", "an update had no answer yet"],
    ["a file of no supported kind", { row: "skipped", trouble: TROUBLE }, "skipped", "too odd"],
    ["a file that a rule leaves out", { row: undefined, leftOutBy: "line 3" }, "skipped", "line 3"],
    [
      "one that a rule leaves out since it was sent",
      { work: "queued", leftOutBy: "line 3" },
      "skipped",
      "line 3",
    ],
    ["a held delete", { row: "held", trouble: TROUBLE, blocker: HALTED }, "held", "too odd"],
    ["an approved delete", { row: "doomed" }, "held", "to be deleted, as agreed"],
    ["a file that was never sent", { row: undefined }, "waiting", "it was never sent"],
  ])("%s has its state and a reason", (_name, facts, state, reason) => {
    expect(versionOf({ ...REST, ...facts })).toMatchObject({ state, reason });
  });

  it("says since when a file waits, and only then", () => {
    expect(versionOf({ ...REST, work: "queued", sinceMs: 7 }).sinceMs).toBe(7);
    expect(versionOf({ ...REST, sinceMs: 7 }).sinceMs).toBeNull();
  });
});

it("counts of a source are the sums of the states of its files, whatever these are", () => {
  const file = record({
    row: constantFrom("agreed", "failed", "parked", "unsure", undefined),
    work: constantFrom<FileWork>("none", "queued", "sending", "reading"),
  })
    // A file without a row is known by its work alone.
    .filter((each) => each.row !== undefined || each.work !== "none");
  const source = record({ files: array(file, { maxLength: 30 }), isHalted: boolean() });
  assert(
    property(source, ({ files, isHalted }) => {
      const states = files.map(
        (each) => versionOf({ ...REST, ...each, blocker: isHalted ? HALTED : undefined }).state,
      );
      const count = <T>(all: readonly T[], one: T): number => all.filter((each) => each === one).length;
      const rows = files.map((each) => each.row);
      const busy = files.filter((each) => each.work !== "none");
      const counted = busy.map((each) => countedAs(each.row));
      const work = {
        backlog: count(counted, "agreed") + count(counted, "nothing"),
        backlogAgreed: count(counted, "agreed"),
        backlogFailed: count(counted, "failed"),
        reading: busy.filter((each) => each.work === "reading").length,
      };
      const [agreed, failed] = [count(rows, "agreed"), count(rows, "failed")];
      const [parked, unsure] = [count(rows, "parked"), count(rows, "unsure")];
      const counts = countVersions({ ...withWork({ agreed, failed, parked, unsure }, work), isHalted });
      expect(counts.files).toBe(files.length);
      for (const state of ["searchable", "reading", "waiting", "failed"] as const)
        expect(counts[state]).toBe(count(states, state));
    }),
  );
});
