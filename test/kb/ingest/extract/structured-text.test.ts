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
  ] as const)("stays as it is: %s", (_name, form, text) => {
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
});
