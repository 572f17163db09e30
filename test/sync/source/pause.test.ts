import { expect, it } from "vitest";
import { openPause } from "../../../src/sync/source/pause.ts";
import type { FileState, KnownFile, Candidate } from "../../../src/sync/plan/model.ts";

const candidate = (path: string, state?: FileState): Candidate => {
  const entry = { path, sizeBytes: 1, mtimeMs: 1, ctimeMs: 1, ino: 1 };
  const known: KnownFile | undefined = state && { ...entry, id: 1, docId: null, state, rulesKey: 1 };
  return { entry, known };
};

it("a paused source counts files without a row and older versions of agreed files, but none in trouble", () => {
  const pause = openPause(true);
  pause.note({
    candidates: [
      candidate("a"),
      candidate("b", "agreed"),
      candidate("c", "agreed"),
      candidate("d", "failed"),
    ],
    inScope: () => true,
  });
  expect([pause.isPaused(), pause.size(), pause.agreed()]).toEqual([true, 3, 2]);
  expect([...pause.paths()]).toEqual(["a", "b", "c", "d"]);
  expect([pause.has("d"), pause.has("e")]).toEqual([true, false]);
});

it("a check during a pause replaces what was recorded in its scope, and nothing else", () => {
  const pause = openPause(true);
  pause.note({ candidates: [candidate("a"), candidate("b"), candidate("c")], inScope: () => true });
  pause.note({ candidates: [candidate("b", "agreed")], inScope: (path) => path !== "c" });
  expect([...pause.paths()].toSorted()).toEqual(["b", "c"]);
  expect([pause.size(), pause.agreed()]).toEqual([2, 1]);
});

it("the end of a pause forgets what came up, and the next one begins empty", () => {
  const pause = openPause(false);
  expect(pause.isPaused()).toBe(false);
  pause.begin();
  expect(pause.isPaused()).toBe(true);
  pause.note({ candidates: [candidate("a")], inScope: () => true });
  pause.end();
  expect([pause.isPaused(), pause.size()]).toEqual([false, 0]);
  pause.begin();
  expect(pause.size()).toBe(0);
});
