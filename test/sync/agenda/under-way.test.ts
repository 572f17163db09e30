import { describe, expect, it } from "vitest";
import type { FileState, KnownFile, Scan, ScanEntry } from "../../../src/sync/plan/model.ts";
import { reconcileInSteps } from "../../../src/sync/plan/reconcile.ts";
import { takeAll } from "../../../src/sync/plan/steps.ts";
import { openUnderWay } from "../../../src/sync/agenda/under-way.ts";

const entry: ScanEntry = { path: "a", sizeBytes: 5, mtimeMs: 1, ctimeMs: 1, ino: 1 };
const scan: Scan = {
  root: { dev: 1, ino: 1 },
  entries: [entry],
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
};

it("tells the paths that were under way at a moment, until that is closed", () => {
  const underWay = openUnderWay();
  underWay.begin([{ entry, known: undefined }]);
  const busy = underWay.asOfNow();
  underWay.end(entry);
  expect(underWay.has("a")).toBe(false);
  expect(busy.has("a")).toBe(true);
  expect(busy.has("b")).toBe(false);
  busy.close();
  expect(underWay.asOfNow().has("a")).toBe(false);
});

it("keeps a file whose create is acknowledged during a comparison from being taken for missing", () => {
  const underWay = openUnderWay();
  underWay.begin([{ entry, known: undefined }]);
  const busy = underWay.asOfNow();
  const acknowledged: KnownFile = { ...entry, id: 1, docId: "doc", state: "agreed", rulesKey: 1 };
  function* rows(): Generator<KnownFile> {
    underWay.end(entry);
    yield acknowledged;
  }
  const steps = reconcileInSteps(scan, rows(), { rulesKey: 1, busy: (path) => busy.has(path) });
  expect(takeAll(steps)).toMatchObject({ gone: [], looks: [] });
});

const rowOf = (state: FileState): KnownFile => ({ ...entry, id: 1, docId: "doc", state, rulesKey: 1 });
const at = (path: string, more: Partial<ScanEntry> = {}): ScanEntry => ({ ...entry, path, ...more });

describe("the files under way", () => {
  it.each<[state: FileState | undefined, size: number, agreed: number]>([
    [undefined, 1, 0],
    ["skipped", 1, 0],
    ["held", 1, 0],
    ["doomed", 1, 0],
    ["agreed", 1, 1],
    ["failed", 0, 0],
    ["parked", 0, 0],
    ["unsure", 0, 0],
  ])("with a row that is %s count as %i, of which %i is in agreement", (state, size, agreed) => {
    const underWay = openUnderWay();
    underWay.begin([{ entry, known: state && rowOf(state) }]);
    expect([underWay.size(), underWay.agreed(), underWay.isEmpty()]).toEqual([size, agreed, false]);
    underWay.begin([{ entry, known: state && rowOf(state) }]);
    expect([underWay.size(), underWay.agreed()]).toEqual([size, agreed]);
    expect(underWay.end(entry)).toEqual([]);
    underWay.end(entry);
    expect([underWay.size(), underWay.agreed(), underWay.isEmpty()]).toEqual([0, 0, true]);
  });

  it("whose row became unsure count no longer as one in agreement", () => {
    const underWay = openUnderWay();
    underWay.begin([
      { entry, known: rowOf("agreed") },
      { entry: at("b"), known: rowOf("agreed") },
      { entry: at("c"), known: undefined },
    ]);
    for (const path of ["a", "a", "c", "not there"]) underWay.uncount(path);
    expect([underWay.size(), underWay.agreed()]).toEqual([2, 1]);
    for (const path of ["a", "b", "c"]) underWay.end(at(path));
    expect([underWay.size(), underWay.agreed()]).toEqual([0, 0]);
  });

  it("that are being sent and of which no row counted are known until their job ends", () => {
    const underWay = openUnderWay();
    underWay.begin([
      { entry, known: undefined },
      { entry: at("b"), known: rowOf("agreed") },
    ]);
    for (const path of ["a", "b", "not there"]) underWay.travel(path);
    expect([...underWay.inTransit()]).toEqual(["a"]);
    underWay.end(entry);
    expect([...underWay.inTransit()]).toEqual([]);
  });

  it("are looked at again at their end when something happened there since, once, with what waited for them", () => {
    const underWay = openUnderWay();
    underWay.begin([{ entry, known: undefined }]);
    underWay.outdate("a");
    underWay.outdate("not there");
    expect([underWay.isOutdated("a"), underWay.isOutdated("not there")]).toEqual([true, false]);
    expect([
      underWay.lookAfter("a", "b"),
      underWay.lookAfter("a", "c"),
      underWay.lookAfter("not there", "d"),
    ]).toEqual([true, true, false]);
    expect(underWay.end(entry)).toEqual(["a", "b", "c"]);
    expect(underWay.isOutdated("a")).toBe(false);
    underWay.begin([{ entry, known: undefined }]);
    expect(underWay.end(entry)).toEqual([]);
  });
});

it("two deletes of one path are under way until both are done", () => {
  const underWay = openUnderWay();
  const [one, other] = [1, 2].map((id) => ({ id, path: "a", docId: `doc ${id}` }));
  if (one === undefined || other === undefined) throw new Error("two deletes");
  underWay.beginDeletes([one, other]);
  underWay.beginDeletes([one]);
  expect([underWay.touches("a"), underWay.has("a"), underWay.isEmpty()]).toEqual([true, false, false]);
  underWay.endDelete(one);
  underWay.endDelete(one);
  expect([underWay.isDeleting(1), underWay.isDeleting(2), underWay.touches("a")]).toEqual([
    false,
    true,
    true,
  ]);
  expect([...underWay.paths()]).toEqual(["a"]);
  underWay.endDelete(other);
  expect([underWay.touches("a"), underWay.isEmpty(), [...underWay.paths()]]).toEqual([false, true, []]);
});

describe("a snapshot of what is under way", () => {
  it("finds a file that is on its way under another path, that which has not ended first", () => {
    const underWay = openUnderWay();
    underWay.begin([{ entry, known: undefined }]);
    const busy = underWay.asOfNow();
    const other = (isSame = true) => busy.otherPath(at("b"), () => isSame);
    expect([other(), other(false)]).toEqual(["a", undefined]);
    expect(busy.otherPath(entry, () => true)).toBeUndefined();
    expect(busy.otherPath(at("b", { ino: 2 }), () => true)).toBeUndefined();
    underWay.end(entry);
    expect(other()).toBe("a");
    underWay.begin([
      { entry: at("c"), known: undefined },
      { entry: at("d"), known: undefined },
    ]);
    expect(other()).toBe("c");
    underWay.end(at("c"));
    underWay.end(at("d"));
    busy.close();
    expect(underWay.asOfNow().otherPath(at("b"), () => true)).toBeUndefined();
  });

  it("finds what changed in the scope of a scan, or is not there, ended or not", () => {
    const underWay = openUnderWay();
    const paths = ["ended", "gone", "edited", "touched", "same", "elsewhere"];
    underWay.begin(paths.map((path, ino) => ({ entry: at(path, { ino }), known: undefined })));
    const busy = underWay.asOfNow();
    underWay.end(at("ended", { ino: 0 }));
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
