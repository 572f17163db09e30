import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openForWriting, type Connection } from "../../../../../src/kb/store/sqlite/database/connection.ts";
import { prepareFilters } from "../../../../../src/kb/store/sqlite/scopes/filters.ts";
import type { Filter } from "../../../../../src/wire/filter.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-filters-"));
let db: Connection;
beforeAll(() => {
  db = openForWriting(join(folder, "kb.sqlite"));
});
afterAll(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const MEGABYTE = 1024 * 1024;
/** A scope whose sets take 2 MB each. */
const SCOPE = { scope: 1, nextSequence: 16 * MEGABYTE, refiltered: 0 };
/** With its own megabyte, the result of such a filter takes 3 of the cache's 16. */
const longFilter = (letter: string): Filter => ({
  kind: "in",
  path: "path",
  values: [letter.repeat(MEGABYTE)],
});
const [a, b, c, d, e, f] = ["a", "b", "c", "d", "e", "f"].map(longFilter) as [
  Filter,
  Filter,
  Filter,
  Filter,
  Filter,
  Filter,
]; // six letters

it("returns the same set until the scope changes", () => {
  const filterRows = prepareFilters(db);
  const first = filterRows(SCOPE, a);
  expect(filterRows(SCOPE, a)).toBe(first);
  expect(filterRows({ ...SCOPE, scope: 2 }, a)).not.toBe(first);
  expect(filterRows({ ...SCOPE, refiltered: 1 }, a)).not.toBe(first);
  const second = filterRows(SCOPE, a);
  expect(second).not.toBe(first);
  expect(filterRows({ ...SCOPE, nextSequence: SCOPE.nextSequence + 1 }, a)).not.toBe(second);
});

it("counts a set once however often it is used, and evicts those that were not used for longest", () => {
  const filterRows = prepareFilters(db);
  const sets = new Map([a, b, c, d, e].map((filter) => [filter, filterRows(SCOPE, filter)]));
  for (let time = 0; time < 20; time += 1)
    for (const filter of [b, a]) expect(filterRows(SCOPE, filter)).toBe(sets.get(filter));
  filterRows(SCOPE, f); // one more than there is memory for
  for (const filter of [a, b, d, e]) expect(filterRows(SCOPE, filter)).toBe(sets.get(filter));
  expect(filterRows(SCOPE, c)).not.toBe(sets.get(c));
});
