import { expect, it } from "vitest";
import type { KnownFile, Scan, ScanEntry } from "../../src/sync/plan/model.ts";
import { reconcileInSteps } from "../../src/sync/plan/reconcile.ts";
import { takeAll } from "../../src/sync/plan/steps.ts";
import { openUnderWay } from "../../src/sync/under-way.ts";

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
  expect(takeAll(steps)).toMatchObject({ gone: [], looks: [], unchanged: 0 });
});
