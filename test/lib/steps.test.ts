import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { KnownFile, Scan, ScanEntry } from "../../src/sync/plan/model.ts";
import { reconcile, reconcileInSteps } from "../../src/sync/plan/reconcile.ts";
import { STEP_ITEMS, takeAll } from "../../src/lib/steps.ts";

/** More than two steps, and not a multiple of a step. */
const FILES = 3 * STEP_ITEMS + 7;

const entryOf = (index: number, folder = "old"): ScanEntry => ({
  path: `${folder}/${index}`,
  sizeBytes: 5,
  mtimeMs: 1,
  ctimeMs: 1,
  ino: index + 1,
});
const rowOf = (index: number): KnownFile => ({
  ...entryOf(index),
  id: index + 1,
  docId: `doc${index}`,
  state: "agreed",
  rulesKey: 1,
});
const scanOf = (entries: readonly ScanEntry[]): Scan => ({
  root: { dev: 1, ino: 1 },
  entries,
  unreadable: [],
  refused: [],
  skipped: [],
  scope: undefined,
});
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

it.each([
  { name: "an unchanged folder", entries: range(FILES).map((index) => entryOf(index)), rows: FILES },
  { name: "a first scan", entries: range(FILES).map((index) => entryOf(index)), rows: 0 },
  { name: "a renamed folder", entries: range(FILES).map((index) => entryOf(index, "new")), rows: FILES },
  { name: "a folder that is gone", entries: [], rows: FILES },
])("reads few rows between two steps: $name", ({ entries, rows }) => {
  let read = 0;
  let most = 0;
  function* known(): Generator<KnownFile> {
    for (const index of range(rows)) {
      read += 1;
      yield rowOf(index);
    }
  }
  const steps = reconcileInSteps(scanOf(entries), known(), { rulesKey: 1 });
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    most = Math.max(most, read);
    read = 0;
    count += 1;
  }
  expect(most).toBeLessThanOrEqual(STEP_ITEMS);
  expect(count).toBeGreaterThanOrEqual(Math.floor((entries.length + rows) / STEP_ITEMS));
  // Each step reads the clock. A file takes part in a few steps at most.
  expect(count).toBeLessThanOrEqual((10 * (entries.length + rows)) / STEP_ITEMS);
  expect(step.value).toEqual(reconcile(scanOf(entries), range(rows).map(rowOf), { rulesKey: 1 }));
});

it("gives the same result whenever the rows are delivered", () => {
  const indexes = fc.uniqueArray(fc.nat(2 * STEP_ITEMS), { maxLength: 2 * STEP_ITEMS, size: "max" });
  fc.assert(
    fc.property(indexes, indexes, fc.nat(6), (disk, ledger, pauses) => {
      const scan = scanOf(disk.map((index) => entryOf(index, index % 3 === 0 ? "new" : "old")));
      const rows = ledger.map(rowOf);
      const handed: KnownFile[] = [];
      // Rows of a page that is read only after the steps before it, as a ledger's are.
      const pages = (function* () {
        for (const row of rows) {
          handed.push(row);
          yield row;
        }
      })();
      const steps = reconcileInSteps(scan, pages, { rulesKey: 1 });
      let step = steps.next();
      for (let pause = 0; pause < pauses && step.done !== true; pause++) step = steps.next();
      const result = step.done === true ? step.value : takeAll(steps);
      expect(result).toEqual(reconcile(scan, rows, { rulesKey: 1 }));
      expect(handed).toEqual(rows);
    }),
    { numRuns: 40 },
  );
});
