import { describe, expect, it } from "vitest";
import { openJobs } from "../../../../src/sync/daemon/agenda/jobs.ts";
import type { Counted } from "../../../../src/sync/plan/version.ts";
import type { Candidate, FileState, KnownFile, Scan, ScanEntry } from "../../../../src/sync/plan/model.ts";
import { reconcileInSteps } from "../../../../src/sync/plan/reconcile.ts";
import { takeAll } from "../../../../src/lib/steps.ts";

const entry: ScanEntry = { path: "a", sizeBytes: 5, mtimeMs: 1, ctimeMs: 1, ino: 1 };
const rowOf = (state: FileState): KnownFile => ({ ...entry, id: 1, docId: "doc", state, rulesKey: 1 });
const at = (path: string, more: Partial<ScanEntry> = {}): ScanEntry => ({ ...entry, path, ...more });
const candidate = (path: string, state?: FileState): Candidate => ({
  entry: at(path),
  known: state && rowOf(state),
});
const noRow = (): Counted => "nothing";
const always = (): boolean => true;

describe("jobs", () => {
  it.each<[state: FileState | undefined, counted: Counted]>([
    [undefined, "nothing"],
    ["skipped", "nothing"],
    ["held", "nothing"],
    ["doomed", "nothing"],
    ["agreed", "agreed"],
    ["failed", "failed"],
    ["parked", "trouble"],
    ["unsure", "trouble"],
  ])("a file with a row that is %s counts as %s, once, until its job ends", (state, counted) => {
    const jobs = openJobs();
    const none = { agreed: 0, failed: 0, trouble: 0, nothing: 0 };
    for (let times = 0; times < 2; times += 1) {
      jobs.queue([candidate("a", state)], 0);
      expect([jobs.counts(noRow), jobs.hasJobs()]).toEqual([{ ...none, [counted]: 1 }, true]);
    }
    expect(jobs.end(entry)).toMatchObject({ isOutdated: false });
    expect(jobs.end(entry)).toBeUndefined();
    expect([jobs.counts(noRow), jobs.hasJobs()]).toEqual([none, false]);
  });

  it("a file whose row became unsure no longer counts as agreed", () => {
    const jobs = openJobs();
    jobs.queue([candidate("a", "agreed"), candidate("b", "agreed"), candidate("c")], 0);
    for (const path of ["a", "a", "c", "not there"]) jobs.uncount(path);
    expect(jobs.counts(noRow)).toEqual({ agreed: 1, failed: 0, trouble: 1, nothing: 1 });
    for (const path of ["a", "b", "c"]) jobs.end(at(path));
    expect(jobs.counts(noRow)).toEqual({ agreed: 0, failed: 0, trouble: 0, nothing: 0 });
  });

  it("a new file that is being sent counts as nothing until it has a row, and is known until its job ends", () => {
    const jobs = openJobs();
    jobs.queue([candidate("a"), candidate("b", "agreed"), candidate("c")], 0);
    for (const path of ["a", "b", "not there"]) jobs.send(path);
    expect(["a", "b", "c"].map((path) => jobs.isSending(path))).toEqual([true, true, false]);
    expect([...jobs.busyPaths().known()]).toEqual(["a", "b"]);
    expect(jobs.counts(noRow)).toMatchObject({ agreed: 1, nothing: 2 });
    expect(jobs.counts(() => "agreed")).toMatchObject({ agreed: 1, nothing: 1 });
    jobs.end(entry);
    expect([...jobs.busyPaths().known()]).toEqual(["b"]);
    expect(jobs.counts(() => "agreed")).toMatchObject({ agreed: 1, nothing: 1 });
  });

  it("a job is outdated by what happens while it lasts, and the next job of its path is not", () => {
    const jobs = openJobs();
    jobs.queue([candidate("a")], 0);
    for (const path of ["a", "not there"]) jobs.outdate(path);
    expect([jobs.isOutdated("a"), jobs.isOutdated("not there")]).toEqual([true, false]);
    expect(jobs.end(entry)?.isOutdated).toBe(true);
    jobs.queue([candidate("a")], 0);
    expect([jobs.isOutdated("a"), jobs.end(entry)?.isOutdated]).toEqual([false, false]);
  });
});

describe("the time since which changes wait", () => {
  it("the next oldest change waits as jobs end", () => {
    const jobs = openJobs();
    expect(jobs.oldestMs(always)).toBeUndefined();
    jobs.queue([candidate("a"), candidate("b")], 10);
    jobs.queue([candidate("c")], 20);
    jobs.end(at("a"));
    expect(jobs.oldestMs(always)).toBe(10);
    jobs.end(at("b"));
    expect(jobs.oldestMs(always)).toBe(20);
    jobs.reported("c", "refused");
    jobs.end(at("c"));
    expect(jobs.oldestMs(always)).toBeUndefined();
  });

  it("a parked file waits since it was first planned, until it is done", () => {
    const jobs = openJobs();
    jobs.queue([candidate("a")], 10);
    jobs.reported("a", "parked");
    expect(jobs.isParked("a")).toBe(false);
    jobs.end(at("a"));
    expect([jobs.isParked("a"), jobs.hasJob("a"), [...jobs.jobPaths()]]).toEqual([true, false, []]);
    jobs.queue([candidate("b")], 20);
    expect(jobs.oldestMs(always)).toBe(10);
    jobs.queue([candidate("a")], 30);
    expect([jobs.isParked("a"), jobs.oldestMs(always)]).toEqual([false, 10]);
    jobs.reported("a", "done");
    jobs.end(at("a"));
    expect(jobs.oldestMs(always)).toBe(20);
  });

  it("a parked file that is no longer parked does not wait, whatever else was reported of its path", () => {
    const jobs = openJobs();
    jobs.queue([candidate("a")], 10);
    jobs.reported("a", "parked");
    jobs.end(at("a"));
    // As by an audit, or by a delete of its resource.
    jobs.reported("a", "done");
    expect(jobs.oldestMs(() => false)).toBeUndefined();
    expect(jobs.oldestMs(always)).toBeUndefined();
  });
});

const scan: Scan = {
  root: { dev: 1, ino: 1 },
  entries: [entry],
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
};

it("a snapshot contains the paths in flight at that moment until it is closed", () => {
  const jobs = openJobs();
  jobs.queue([{ entry, known: undefined }], 0);
  const busy = jobs.busyPaths();
  jobs.end(entry);
  expect(jobs.hasJob("a")).toBe(false);
  expect(busy.has("a")).toBe(true);
  expect(busy.has("b")).toBe(false);
  busy.close();
  expect(jobs.busyPaths().has("a")).toBe(false);
});

it("a file whose create is acknowledged during a comparison does not count as missing", () => {
  const jobs = openJobs();
  jobs.queue([{ entry, known: undefined }], 0);
  const busy = jobs.busyPaths();
  const acknowledged: KnownFile = { ...entry, id: 1, docId: "doc", state: "agreed", rulesKey: 1 };
  function* rows(): Generator<KnownFile> {
    jobs.end(entry);
    yield acknowledged;
  }
  const steps = reconcileInSteps(scan, rows(), { rulesKey: 1, busy: (path) => busy.has(path) });
  expect(takeAll(steps)).toMatchObject({ gone: [], candidates: [] });
});

describe("snapshots of what is in flight", () => {
  it("a snapshot finds a file in flight under another path, and prefers one that has not ended", () => {
    const jobs = openJobs();
    jobs.queue([{ entry, known: undefined }], 0);
    const busy = jobs.busyPaths();
    const other = (isSame = true) => busy.otherPath(at("b"), () => isSame);
    expect([other(), other(false)]).toEqual(["a", undefined]);
    expect(busy.otherPath(entry, () => true)).toBeUndefined();
    expect(busy.otherPath(at("b", { ino: 2 }), () => true)).toBeUndefined();
    jobs.end(entry);
    expect(other()).toBe("a");
    jobs.queue(
      [
        { entry: at("c"), known: undefined },
        { entry: at("d"), known: undefined },
      ],
      0,
    );
    expect(other()).toBe("c");
    jobs.end(at("c"));
    jobs.end(at("d"));
    busy.close();
    expect(jobs.busyPaths().otherPath(at("b"), () => true)).toBeUndefined();
  });

  it("a snapshot finds what changed or disappeared in the scope of a scan, ended or not", () => {
    const jobs = openJobs();
    const paths = ["ended", "gone", "edited", "touched", "same", "elsewhere"];
    jobs.queue(
      paths.map((path, ino) => ({ entry: at(path, { ino }), known: undefined })),
      0,
    );
    const busy = jobs.busyPaths();
    jobs.end(at("ended", { ino: 0 }));
    const seen = [
      at("ended", { ino: 0, mtimeMs: 2 }),
      at("edited", { ino: 2, sizeBytes: 6 }),
      at("touched", { ino: 3, ctimeMs: 2 }),
      at("same", { ino: 4 }),
    ];
    const changed = takeAll(busy.changed(seen, (path) => path !== "elsewhere"));
    expect(changed).toEqual(["ended", "gone", "edited", "touched"]);
  });
});
