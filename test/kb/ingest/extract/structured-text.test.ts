import { assert, json as anyJson, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { layOutJson } from "../../../../src/kb/ingest/extract/json-text.ts";
import { structuredText } from "../../../../src/kb/ingest/extract/structured-text.ts";

describe("data made to be slow to lay out", () => {
  const long = 1_900_000;
  it.each([
    ["a line of many cells", "csv", `${"a,".repeat(long / 2)}\n`],
    ["rows of many cells", "csv", `a,b\n${"1,".repeat(long / 2)}`],
    ["cells of many letters", "csv", `an_id,b\n${`${"a".repeat(long / 4)},b\n`.repeat(2)}"`],
    ["nested lists", "json", `${"[".repeat(long / 2)}${"]".repeat(long / 2)}`],
  ] as const)("data made to be slow to lay out stays as it is: %s", (_name, form, text) => {
    const before = process.cpuUsage();
    expect(structuredText(text, form)).toEqual({ text });
    // Quadratic time would take a minute.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
  });
});

describe("texts that are declared to be no data", () => {
  const json = JSON.stringify({ a: "x".repeat(600), b: [1] });
  it.each([
    ["tabs in plain text", "as-written", "apple\tApfel\nbread\tBrot\nmilk\tMilch\n"],
    ["commas in plain text", "as-written", "Item,Price\nBolt,1.5\nNut,2\n"],
    ["JSON in plain text", "as-written", json],
    ["a table without a declared form", "undeclared", "Item,Price\nBolt,1.5\nNut,2\n"],
    ["commas in a file of tabs", "tsv", "Item,Price\nBolt,1.5\nNut,2\n"],
  ] as const)("structuredText leaves a text unchanged: %s", (_name, form, text) => {
    expect(structuredText(text, form)).toEqual({ text });
  });
});

describe("JSON", () => {
  it("layOutJson keeps the value of JSON, its numbers as written and its strings", () => {
    assert(
      property(anyJson({ maxDepth: 5 }), (json) => {
        const padded = `[${json},${JSON.stringify("x".repeat(600))}]`;
        const written = layOutJson(padded) ?? "";
        expect(JSON.parse(written)).toEqual(JSON.parse(padded));
        expect(written.replaceAll(/\s+/g, "")).toBe(padded.replaceAll(/\s+/g, ""));
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
    expect(structuredText(text, "json")).toEqual({ text });
  });

  const LONG = "x".repeat(600);
  it.each<[name: string, json: string, expected: string | undefined]>([
    [
      "nested objects by depth, with a space after each colon",
      `{"a":{"b":{"c":"${LONG}"}}}`,
      `{\n  "a": {\n    "b": {\n      "c": "${LONG}"\n    }\n  }\n}`,
    ],
    [
      "records on a line of their own, with single spaces",
      `[{"a" : 1,\t"b":[2,3]},[{"c":null}],"${LONG}"]`,
      `[\n  {"a": 1, "b": [2, 3]},\n  [{"c": null}],\n  "${LONG}"\n]`,
    ],
    [
      "a record after a name on the line of the name",
      `{"a":{"b":1},"c":[],"d":{},"e":"${LONG}"}`,
      `{\n  "a": {"b": 1},\n  "c": [],\n  "d": {},\n  "e": "${LONG}"\n}`,
    ],
    [
      "a record of 240 characters on one line, and a longer one on several",
      `[["${"y".repeat(236)}"],["${"y".repeat(237)}"],"${LONG}"]`,
      `[\n  ["${"y".repeat(236)}"],\n  [\n    "${"y".repeat(237)}"\n  ],\n  "${LONG}"\n]`,
    ],
    [
      "strings with escaped quotes and backslashes unchanged",
      `["\\"a\\\\",{"b":"\\\\"},"${LONG}"]`,
      `[\n  "\\"a\\\\",\n  {"b": "\\\\"},\n  "${LONG}"\n]`,
    ],
    ["nothing of a text with less than 500 characters", `["${"x".repeat(495)}"]`, undefined],
    ["a text of 500 characters", `["${"x".repeat(496)}"]`, `[\n  "${"x".repeat(496)}"\n]`],
    ["nothing of a value that is no list or object", `"${LONG}"`, undefined],
  ])("layOutJson lays out %s", (_name, json, expected) => {
    expect(layOutJson(` ${json}\n`)).toBe(expected);
  });

  it("layOutJson indents by eight levels at most", () => {
    const json = "[".repeat(12) + `"${LONG}"` + "]".repeat(12);
    const lines = layOutJson(json)?.split("\n") ?? [];
    const indents = lines.map((line) => line.length - line.trimStart().length);
    const up = [0, 2, 4, 6, 8, 10, 12, 14, 16, 16, 16, 16];
    expect(indents).toEqual([...up, 16, ...up.toReversed()]);
  });

  it.each([
    ["json", 2_000_000, true],
    ["json", 2_000_001, false],
    ["undeclared", 2_000_000, true],
    ["subtitles", 2_000_001, false],
    ["notebook", 2_000_001, true],
  ] as const)("structuredText lays out %s of %i characters: %s", (form, chars, isLaidOut) => {
    const texts = {
      json: (length: number) => `["${"x".repeat(length - 4)}"]`,
      undeclared: (length: number) => `["${"x".repeat(length - 4)}"]`,
      subtitles: (length: number) => `WEBVTT\n\n00:01.000 --> 00:02.000\n${"x".repeat(length - 32)}`,
      notebook: (length: number) => {
        const empty = JSON.stringify({ nbformat: 4, cells: [{ cell_type: "markdown", source: "" }] });
        return empty.replace('"source":""', `"source":"${"x".repeat(length - empty.length)}"`);
      },
    };
    const text = texts[form](chars);
    expect(text).toHaveLength(chars);
    expect(structuredText(text, form).text === text).toBe(!isLaidOut);
  });
});
