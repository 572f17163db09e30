import { expect, it } from "vitest";
import type { Deletion } from "../../../src/sync/ledger/intents.ts";
import type { Look } from "../../../src/sync/plan/model.ts";
import { earliest, openWaits } from "../../../src/sync/source/waits.ts";

// Only the path of a look and the number of a delete are looked at.
const look = (path: string): Look => ({ entry: { path } }) as Look;
const deletion = (id: number): Deletion => ({ id, path: `${id}` }) as Deletion;
const always = (): boolean => true;

it("knows nothing that waits at first", () => {
  expect(openWaits().oldestMs(always)).toBeUndefined();
  expect(earliest(undefined, undefined)).toBeUndefined();
  expect(earliest(3, undefined, 2)).toBe(2);
});

it("goes on to the next oldest as jobs end", () => {
  const waits = openWaits();
  waits.begin([look("a"), look("b")], 10);
  waits.begin([look("c")], 20);
  waits.beginDeletes([deletion(1)], 15);
  waits.end("a");
  expect(waits.oldestMs(always)).toBe(10);
  waits.end("b");
  expect(waits.oldestMs(always)).toBe(15);
  waits.endDelete(deletion(1));
  expect(waits.oldestMs(always)).toBe(20);
  waits.reported("c", "refused");
  waits.end("c");
  expect(waits.oldestMs(always)).toBeUndefined();
});

it("counts a file that was put aside from when it was planned first, until it is done", () => {
  const waits = openWaits();
  waits.begin([look("a")], 10);
  waits.reported("a", "parked");
  waits.end("a");
  waits.begin([look("b")], 20);
  expect(waits.oldestMs(always)).toBe(10);
  waits.begin([look("a")], 30);
  expect(waits.oldestMs(always)).toBe(10);
  waits.reported("a", "done");
  waits.end("a");
  expect(waits.oldestMs(always)).toBe(20);
});

it("forgets a file that was put aside and is not any more, as when it was deleted", () => {
  const waits = openWaits();
  waits.begin([look("a")], 10);
  waits.reported("a", "parked");
  waits.end("a");
  expect(waits.oldestMs(() => false)).toBeUndefined();
  expect(waits.oldestMs(always)).toBeUndefined();
});
