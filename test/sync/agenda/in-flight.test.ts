import { describe, expect, it } from "vitest";
import type { FileState, KnownFile, Scan, ScanEntry } from "../../../src/sync/plan/model.ts";
import { reconcileInSteps } from "../../../src/sync/plan/reconcile.ts";
import { takeAll } from "../../../src/sync/plan/steps.ts";
import { openInFlight } from "../../../src/sync/agenda/in-flight.ts";

const entry: ScanEntry = { path: "a", sizeBytes: 5, mtimeMs: 1, ctimeMs: 1, ino: 1 };
const scan: Scan = {
  root: { dev: 1, ino: 1 },
  entries: [entry],
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
};

it("a snapshot contains the paths in flight at that moment until it is closed", () => {
  const inFlight = openInFlight();
  inFlight.begin([{ entry, known: undefined }]);
  const busy = inFlight.asOfNow();
  inFlight.end(entry);
  expect(inFlight.has("a")).toBe(false);
  expect(busy.has("a")).toBe(true);
  expect(busy.has("b")).toBe(false);
  busy.close();
  expect(inFlight.asOfNow().has("a")).toBe(false);
});

it("a file whose create is acknowledged during a comparison does not count as missing", () => {
  const inFlight = openInFlight();
  inFlight.begin([{ entry, known: undefined }]);
  const busy = inFlight.asOfNow();
  const acknowledged: KnownFile = { ...entry, id: 1, docId: "doc", state: "agreed", rulesKey: 1 };
  function* rows(): Generator<KnownFile> {
    inFlight.end(entry);
    yield acknowledged;
  }
  const steps = reconcileInSteps(scan, rows(), { rulesKey: 1, busy: (path) => busy.has(path) });
  expect(takeAll(steps)).toMatchObject({ gone: [], candidates: [] });
});

const rowOf = (state: FileState): KnownFile => ({ ...entry, id: 1, docId: "doc", state, rulesKey: 1 });
const at = (path: string, more: Partial<ScanEntry> = {}): ScanEntry => ({ ...entry, path, ...more });

describe("files in flight", () => {
  it.each<[state: FileState | undefined, size: number, agreed: number]>([
    [undefined, 1, 0],
    ["skipped", 1, 0],
    ["held", 1, 0],
    ["doomed", 1, 0],
    ["agreed", 1, 1],
    ["failed", 0, 0],
    ["parked", 0, 0],
    ["unsure", 0, 0],
  ])("files with a row that is %s count as %i, of which %i is in agreement", (state, size, agreed) => {
    const inFlight = openInFlight();
    inFlight.begin([{ entry, known: state && rowOf(state) }]);
    expect([inFlight.size(), inFlight.agreed(), inFlight.isEmpty()]).toEqual([size, agreed, false]);
    inFlight.begin([{ entry, known: state && rowOf(state) }]);
    expect([inFlight.size(), inFlight.agreed()]).toEqual([size, agreed]);
    expect(inFlight.end(entry)).toEqual([]);
    inFlight.end(entry);
    expect([inFlight.size(), inFlight.agreed(), inFlight.isEmpty()]).toEqual([0, 0, true]);
  });

  it("files whose row became unsure no longer count as agreed", () => {
    const inFlight = openInFlight();
    inFlight.begin([
      { entry, known: rowOf("agreed") },
      { entry: at("b"), known: rowOf("agreed") },
      { entry: at("c"), known: undefined },
    ]);
    for (const path of ["a", "a", "c", "not there"]) inFlight.uncount(path);
    expect([inFlight.size(), inFlight.agreed()]).toEqual([2, 1]);
    for (const path of ["a", "b", "c"]) inFlight.end(at(path));
    expect([inFlight.size(), inFlight.agreed()]).toEqual([0, 0]);
  });

  it("files in transit without a counted row are known until their job ends", () => {
    const inFlight = openInFlight();
    inFlight.begin([
      { entry, known: undefined },
      { entry: at("b"), known: rowOf("agreed") },
    ]);
    for (const path of ["a", "b", "not there"]) inFlight.markInTransit(path);
    expect([...inFlight.inTransit()]).toEqual(["a"]);
    inFlight.end(entry);
    expect([...inFlight.inTransit()]).toEqual([]);
  });

  it("files are checked once after their job if something happened there since, together with those that waited for them", () => {
    const inFlight = openInFlight();
    inFlight.begin([{ entry, known: undefined }]);
    inFlight.outdate("a");
    inFlight.outdate("not there");
    expect([inFlight.isOutdated("a"), inFlight.isOutdated("not there")]).toEqual([true, false]);
    expect([
      inFlight.checkAfter("a", "b"),
      inFlight.checkAfter("a", "c"),
      inFlight.checkAfter("not there", "d"),
    ]).toEqual([true, true, false]);
    expect(inFlight.end(entry)).toEqual(["a", "b", "c"]);
    expect(inFlight.isOutdated("a")).toBe(false);
    inFlight.begin([{ entry, known: undefined }]);
    expect(inFlight.end(entry)).toEqual([]);
  });
});

it("two deletes of one path are in flight until both are done", () => {
  const inFlight = openInFlight();
  const [one, other] = [1, 2].map((id) => ({ id, path: "a", docId: `doc ${id}` }));
  if (one === undefined || other === undefined) throw new Error("two deletes");
  inFlight.beginDeletes([one, other]);
  inFlight.beginDeletes([one]);
  expect([inFlight.touches("a"), inFlight.has("a"), inFlight.isEmpty()]).toEqual([true, false, false]);
  inFlight.endDelete(one);
  inFlight.endDelete(one);
  expect([inFlight.isDeleting(1), inFlight.isDeleting(2), inFlight.touches("a")]).toEqual([
    false,
    true,
    true,
  ]);
  expect([...inFlight.paths()]).toEqual(["a"]);
  inFlight.endDelete(other);
  expect([inFlight.touches("a"), inFlight.isEmpty(), [...inFlight.paths()]]).toEqual([false, true, []]);
});

describe("snapshots of what is in flight", () => {
  it("a snapshot finds a file in flight under another path, and prefers one that has not ended", () => {
    const inFlight = openInFlight();
    inFlight.begin([{ entry, known: undefined }]);
    const busy = inFlight.asOfNow();
    const other = (isSame = true) => busy.otherPath(at("b"), () => isSame);
    expect([other(), other(false)]).toEqual(["a", undefined]);
    expect(busy.otherPath(entry, () => true)).toBeUndefined();
    expect(busy.otherPath(at("b", { ino: 2 }), () => true)).toBeUndefined();
    inFlight.end(entry);
    expect(other()).toBe("a");
    inFlight.begin([
      { entry: at("c"), known: undefined },
      { entry: at("d"), known: undefined },
    ]);
    expect(other()).toBe("c");
    inFlight.end(at("c"));
    inFlight.end(at("d"));
    busy.close();
    expect(inFlight.asOfNow().otherPath(at("b"), () => true)).toBeUndefined();
  });

  it("a snapshot finds what changed or disappeared in the scope of a scan, ended or not", () => {
    const inFlight = openInFlight();
    const paths = ["ended", "gone", "edited", "touched", "same", "elsewhere"];
    inFlight.begin(paths.map((path, ino) => ({ entry: at(path, { ino }), known: undefined })));
    const busy = inFlight.asOfNow();
    inFlight.end(at("ended", { ino: 0 }));
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
