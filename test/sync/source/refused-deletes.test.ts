import { expect, it } from "vitest";
import { openRefusedDeletes } from "../../../src/sync/source/source-deletes.ts";

const MINUTE_MS = 60_000;
const one = { id: 1, path: "d/a.md", docId: "doc 1" };
const other = { id: 2, path: "e/a.md", docId: "doc 2" };

it("a refused delete is sent again after a minute, then ever later", () => {
  const refused = openRefusedDeletes();
  expect(refused.add(one, 0)).toBe(MINUTE_MS);
  expect(refused.add(other, 0)).toBe(MINUTE_MS);
  expect(refused.add(one, 0)).toBe(2 * MINUTE_MS);
  expect(refused.add(one, 0)).toBe(4 * MINUTE_MS);
  expect([refused.due(MINUTE_MS - 1), refused.due(MINUTE_MS)]).toEqual([[], [other]]);
  expect([...refused.times()]).toEqual([
    { id: 1, atMs: 4 * MINUTE_MS },
    { id: 2, atMs: MINUTE_MS },
  ]);
});

it("a refused delete that is done is removed, and a later refusal starts over", () => {
  const refused = openRefusedDeletes();
  refused.add(one, 0);
  refused.remove(1);
  expect([refused.has(1), refused.due(MINUTE_MS)]).toEqual([false, []]);
  expect(refused.add(one, 0)).toBe(MINUTE_MS);
  expect(refused.has(1)).toBe(true);
});

it("refused deletes below a folder are sent at once when a person asks, others are not", () => {
  const refused = openRefusedDeletes();
  refused.add(one, 0);
  refused.add(other, 0);
  refused.makeDue("d", 5);
  expect(refused.due(5)).toEqual([one]);
  refused.makeDue(undefined, 6);
  expect(refused.due(6)).toEqual([one, other]);
});
