import { expect, it } from "vitest";
import type { Deletion } from "../../../src/sync/ledger/intents.ts";
import type { Candidate } from "../../../src/sync/plan/model.ts";
import { earliest, openPendingChanges } from "../../../src/sync/source/pending-changes.ts";

// Only the path of a candidate and the id of a delete are used.
const candidate = (path: string): Candidate => ({ entry: { path } }) as Candidate;
const deletion = (id: number): Deletion => ({ id, path: `${id}` }) as Deletion;
const always = (): boolean => true;

it("nothing waits at first", () => {
  expect(openPendingChanges().oldestMs(always)).toBeUndefined();
  expect(earliest(undefined, undefined)).toBeUndefined();
  expect(earliest(3, undefined, 2)).toBe(2);
});

it("the next oldest change waits as jobs end", () => {
  const pending = openPendingChanges();
  pending.begin([candidate("a"), candidate("b")], 10);
  pending.begin([candidate("c")], 20);
  pending.beginDeletes([deletion(1)], 15);
  pending.end("a");
  expect(pending.oldestMs(always)).toBe(10);
  pending.end("b");
  expect(pending.oldestMs(always)).toBe(15);
  pending.endDelete(deletion(1));
  expect(pending.oldestMs(always)).toBe(20);
  pending.reported("c", "refused");
  pending.end("c");
  expect(pending.oldestMs(always)).toBeUndefined();
});

it("a parked file waits since it was first planned, until it is done", () => {
  const pending = openPendingChanges();
  pending.begin([candidate("a")], 10);
  pending.reported("a", "parked");
  pending.end("a");
  pending.begin([candidate("b")], 20);
  expect(pending.oldestMs(always)).toBe(10);
  pending.begin([candidate("a")], 30);
  expect(pending.oldestMs(always)).toBe(10);
  pending.reported("a", "done");
  pending.end("a");
  expect(pending.oldestMs(always)).toBe(20);
});

it("a parked file that is no longer parked, as after its delete, does not wait", () => {
  const pending = openPendingChanges();
  pending.begin([candidate("a")], 10);
  pending.reported("a", "parked");
  pending.end("a");
  expect(pending.oldestMs(() => false)).toBeUndefined();
  expect(pending.oldestMs(always)).toBeUndefined();
});
