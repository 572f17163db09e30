import { assert, json as anyJson, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { layOutJson } from "../../../../src/kb/ingest/extract/json-text.ts";
import { structuredText } from "../../../../src/kb/ingest/extract/structured-text.ts";
import { recordLines } from "../../../../src/kb/ingest/extract/table-text.ts";

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
    ["empty cells and rows", "a,b\n,2\n\n3,\n,\n", "b: 2\na: 3"],
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
  ])("%s", (_name, text, expected) => {
    expect(recordLines(text)).toBe(expected);
  });

  it("of many names and few values stay as they are, for they would grow", () => {
    const names = Array.from({ length: 50 }, (_, at) => `a_rather_long_column_name_${at}`);
    const rows = Array.from({ length: 200 }, () => names.map(() => "1").join(","));
    expect(recordLines([names.join(","), ...rows].join("\n"))).toBeUndefined();
  });
});

describe("data made to be slow to lay out", () => {
  const long = 1_900_000;
  it.each([
    ["a line of very many cells", `${"a,".repeat(long / 2)}\n`],
    ["rows of very many cells", `a,b\n${"1,".repeat(long / 2)}`],
    ["lists in each other", `${"[".repeat(long / 2)}${"]".repeat(long / 2)}`],
  ])("stays as it is: %s", (_name, text) => {
    const before = process.cpuUsage();
    expect(structuredText(text)).toBe(text);
    // What grows with the square of the length takes a minute.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
  });
});

describe("JSON", () => {
  it("keeps its value, its numbers as they are written and its strings", () => {
    assert(
      property(anyJson({ maxDepth: 5 }), (json) => {
        const padded = `[${json},${JSON.stringify("x".repeat(600))}]`;
        const written = layOutJson(padded) ?? "";
        expect(JSON.parse(written)).toEqual(JSON.parse(padded));
        expect(written.replaceAll(/\n */g, "").replaceAll('": ', '":').length).toBeLessThanOrEqual(
          padded.length + 10,
        );
      }),
      { numRuns: 200 },
    );
    const big = `{"n":12345678901234567890123,"e":1.50e3,"s":"${"y".repeat(600)}, [\\"{"}`;
    expect(layOutJson(big)).toBe(
      `{\n  "n": 12345678901234567890123,\n  "e": 1.50e3,\n  "s": "${"y".repeat(600)}, [\\"{"\n}`,
    );
  });

  it.each([
    ["with lines already", JSON.stringify({ a: [1, 2, 3] }, null, 2)],
    ["that is none", `{ a: ${"x".repeat(600)} }`],
    ["in lines of one value each", '{"a":1}\n'.repeat(100)],
    ["empty", "{}"],
  ])("%s stays as it is", (_name, text) => {
    expect(structuredText(text)).toBe(text);
  });
});
