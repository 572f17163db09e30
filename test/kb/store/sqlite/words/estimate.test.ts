import { expect, it } from "vitest";
import { makeRowSet } from "../../../../../src/kb/index/row-set.ts";
import { rowOf } from "../../../../../src/kb/index/rows.ts";
import { prepareEstimate } from "../../../../../src/kb/store/sqlite/words/estimate.ts";

it("selects all of a few filtered chunks of a resource, up to its last, and none of its neighbours", () => {
  const first = 10;
  const last = 19;
  const target = {
    scope: 3,
    chunks: 40,
    words: 40,
    nextSequence: 40,
    retitled: 0,
    range: { first: rowOf(3, first), last: rowOf(3, last) },
    rangeChunks: 10,
    // The chunks of the resource before and after pass the filter too.
    allowed: makeRowSet(40, [
      { first: 0, last: first },
      { first: last, last: 30 },
    ]),
  };
  const unused = (): never => {
    throw new Error("a list was read");
  };
  const estimate = prepareEstimate({ beginSlice: unused, of: unused, goneNamed: unused });
  expect(estimate(target, [], 2)?.map(({ sequence }) => sequence)).toEqual([first, last]);
});
