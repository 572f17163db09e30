import { expect, it } from "vitest";
import {
  joinLocated,
  joinRows,
  locatedAt,
  type LocationStart,
  locationName,
  trimLocated,
} from "../../../src/formats/markup/located-text.ts";

it("joins the non-empty texts by blank lines and shifts their locations", () => {
  const joined = joinLocated([
    { text: "Title" },
    locatedAt("one", { page: 1 }),
    locatedAt("", { page: 2 }),
    locatedAt("three", { page: 3 }),
    { text: "end" },
  ]);
  expect(joined).toEqual({
    text: "Title\n\none\n\nthree\n\nend",
    locations: [{ start: 7, page: 1 }, { start: 12, page: 3 }, { start: 19 }],
  });
});

it("joins texts without locations to one without locations", () => {
  expect(joinLocated([{ text: "a" }, { text: "b" }])).toEqual({ text: "a\n\nb" });
});

it.each<[string, readonly number[], readonly Omit<LocationStart, "sheet">[]]>([
  ["consecutive rows", [1, 2, 3], [{ start: 0, rows: { first: 1, last: 3 } }]],
  [
    "a row of two lines",
    [1, 1, 2],
    [
      { start: 0, rows: { first: 1, last: 1 } },
      { start: 4, rows: { first: 2, last: 2 } },
    ],
  ],
  [
    "gaps",
    [2, 5, 6],
    [
      { start: 0, rows: { first: 2, last: 2 } },
      { start: 2, rows: { first: 5, last: 6 } },
    ],
  ],
  ["more gaps than are located", Array.from({ length: 1001 }, (_, at) => 2 * at + 1), [{ start: 0 }]],
])("locates the rows of a table: %s", (_name, rows, locations) => {
  const table = joinRows(
    rows.map((row) => ({ text: "x", row })),
    { sheet: "Q1" },
  );
  expect(table.text).toBe(rows.map(() => "x").join("\n"));
  expect(table.locations).toEqual(locations.map((location) => ({ ...location, sheet: "Q1" })));
});

it("removes the white space around a text and shifts its locations", () => {
  const located = {
    text: "\n\n a \n",
    locations: [
      { start: 0, page: 1 },
      { start: 3, page: 2 },
    ],
  };
  expect(trimLocated(located)).toEqual({
    text: "a",
    locations: [
      { start: 0, page: 1 },
      { start: 0, page: 2 },
    ],
  });
});

it("makes the name of a place one short line", () => {
  expect(locationName("  a\nb  ")).toBe("a b");
  expect(locationName("x".repeat(1000))).toHaveLength(200);
});
