import { describe, expect, it } from "vitest";
import type { LocationStart } from "../../../src/formats/markup/located-text.ts";
import { recordLines } from "../../../src/formats/markup/record-lines.ts";

describe("tables", () => {
  it.each<[string, string, string | undefined]>([
    ["commas", "a,b\n1,2\n3,4\n", "a: 1; b: 2\na: 3; b: 4"],
    ["tabs, without a line's end at the end", "a\tb\n1\t2\n3\t4", "a: 1; b: 2\na: 3; b: 4"],
    ["semicolons, commas in numbers", "a;b\n1,5;2\n3;4", "a: 1,5; b: 2\na: 3; b: 4"],
    [
      "quotes, with line ends and quotes in them",
      'a,b\n"x, ""y""\nz",2\n3,4',
      'a: x, "y" z; b: 2\na: 3; b: 4',
    ],
    ["empty cells and rows", "a,b\n,2\n\n3,\n,\n,4\n", "b: 2\na: 3\nb: 4"],
    ["Windows line ends", "a,b\r\n1,2\r\n3,4\r\n", "a: 1; b: 2\na: 3; b: 4"],
    ["one row is no table", "a,b\n1,2\n", undefined],
    ["rows of other lengths", "a,b\n1,2\n3\n", undefined],
    ["a head of numbers", "1,2\n3,4\n5,6", undefined],
    ["two columns of one name", "a,a\n1,2\n3,4", undefined],
    ["prose with a comma in each line", "We came, we saw\nYou came, you saw\nThey came, they saw", undefined],
    ["code", "import { a,b } from x\nfoo(a,b)\nbar(c,d)\n", undefined],
    ["an open quote", 'a,b\n"1,2\n3,4', undefined],
    ["text behind a quote", 'a,b\n"1"x,2\n3,4', undefined],
    ["nothing", "", undefined],
    ["a vocabulary without names of columns", "apple\tApfel\nbread\tBrot\nmilk\tMilch\n", undefined],
    ["words of which the first row may be names or not", "word,Wort\napple,Apfel\nbread,Brot\n", undefined],
    ["a name that is also a value", "red,1\nblue,2\nred,3\n", undefined],
    ["one value without a digit", "a,b\nx,1\ny,none\n", undefined],
    [
      "names as fields have them",
      "first_name,lastName\nAnn,Lee\nBob,Ray\n",
      "first_name: Ann; lastName: Lee\nfirst_name: Bob; lastName: Ray",
    ],
    [
      "addresses of mail",
      "who,where\nAnn,ann@a.example\nBob,bob@b.example",
      "who: Ann; where: ann@a.example\nwho: Bob; where: bob@b.example",
    ],
  ])("makes lines of records of a table: %s", (_name, text, expected) => {
    expect(recordLines(text, "csv")?.text).toBe(expected);
  });

  const tableOf = (first: string, rows: number, row: (at: number) => string): string =>
    [first, ...Array.from({ length: rows }, (_, at) => row(at))].join("\n");
  const people = (at: number): string => `Person${"abcdefghij"[at % 10]}${"abcdefghij"[Math.floor(at / 10)]}`;
  const cities = ["Rome", "Bonn", "Oslo", "Rome", "Oslo", "Bonn", "Bonn"];
  const cityOf = (at: number): string => cities[at % cities.length] ?? "";

  it.each<[string, string]>([
    ["numbers below", "Item,Price\nBolt,1.5\nNut,2"],
    ["amounts with a currency", "Item,Price\nBolt,CHF 1.50\nNut,EUR 2"],
    ["measures and dates", "Item,Length,Since\nBolt,5 mm,2020-01-02\nNut,7 mm,3. May 2021"],
    ["codes", "Part,Name\nA-12,Bolt\n47b,Nut"],
    ["numbers under names with digits", "Region,Q1,Q2\nNorth,5,6\nSouth,7,8"],
    ["links", "Site,Link\nMine,https://a.example/\nYours,http://b.example/"],
    ["numbers, of which some are missing", "Item,Price\nBolt,1.5\nNut,n/a\nCap,2"],
    [
      "numbers with a note in one of fifty",
      tableOf("Item,Price", 50, (at) => `Bolt,${at === 30 ? "on demand" : at}`),
    ],
    ["values that recur in any order", tableOf("who,city", 40, (at) => `${people(at)},${cityOf(at)}`)],
    ["field names over words", "order_id,city\nAlpha,Rome\nBeta,Bonn"],
  ])("takes the first row for names: %s", (_name, text) => {
    expect(recordLines(text, "csv")?.text).toMatch(/^[^:\n]+: .*; [^:\n]+: /);
  });

  it.each<[string, string]>([
    [
      "a unique value above a few that recur",
      tableOf("Zoe,Paris", 12, (at) => `${people(at)},${cityOf(at)}`),
    ],
    [
      "a unique value above many that recur and some that do not",
      tableOf("Zoe,Paris", 60, (at) => `${people(at)},${at % 10 === 0 ? people(at) : cityOf(at)}`),
    ],
    [
      "the first group of a sorted table",
      tableOf("Zoe,Austria", 80, (at) => `${people(at)},${at < 40 ? "Belgium" : "Chile"}`),
    ],
    [
      "two values that belong together",
      tableOf("Zoe,Paris,France", 12, (at) => `${people(at)},${cityOf(at)},${cityOf(at)}land`),
    ],
    ["a missing number", "Bolt,unknown\nNut,2\nCap,3"],
    ["a code above codes and words above numbers", "A12,free\nA13,5\nA14,6"],
    [
      "an address above addresses and words above numbers",
      "ann@a.example,soon\nbob@b.example,5\ncem@c.example,6",
    ],
    ["words above addresses of streets", "Anna,Castle Hill\nOtto,Main Street 5\nIda,Elm Street 7"],
    ["a note above numbers and notes", "Bolt,on demand\nNut,2\nCap,3\nPin,ask us\nRod,4"],
    ["a name of a user above such names", "max_ray,rome\nanna,bonn\ncem,oslo"],
    ["a field name beside a word", "max_ray,Rome\nAnna,Bonn\nCem,Oslo"],
    ["a value and yes or no", "Anna,perhaps\nOtto,yes\nIda,no"],
  ])("takes the first row for values where it may be one: %s", (_name, text) => {
    expect(recordLines(text, "csv")).toBeUndefined();
  });

  it.each<[string, string, readonly LocationStart[]]>([
    ["rows without gaps", "a,b\n1,2\n3,4", [{ start: 0, rows: { first: 2, last: 3 } }]],
    [
      "empty rows, blank lines and a cell of two lines",
      'a,b\n1,2\n,\n\n"3\n",4\n5,6',
      [
        { start: 0, rows: { first: 2, last: 2 } },
        { start: 11, rows: { first: 5, last: 6 } },
      ],
    ],
  ])("names the rows as a spreadsheet counts them: %s", (_name, text, locations) => {
    expect(recordLines(text, "csv")?.locations).toEqual(locations);
  });

  it("a table of many names and few values stays unchanged, because it would grow", () => {
    const names = Array.from({ length: 50 }, (_, at) => `a_rather_long_column_name_${at}`);
    const rows = Array.from({ length: 200 }, () => names.map(() => "1").join(","));
    expect(recordLines([names.join(","), ...rows].join("\n"), "csv")).toBeUndefined();
  });
});
