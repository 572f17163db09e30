import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Refusal } from "../../../../src/kb/resources/refusal.ts";
import { CreateBody } from "../../../../src/wire/resource.ts";
import { readBody } from "../../../../src/kb/http/body/validate.ts";
import { parseJsonBody } from "../../../../src/kb/http/body/json-body.ts";

const MB = 1024 * 1024;

describe("parseJsonBody", () => {
  it("parses the output of JSON.stringify", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(parseJsonBody(Buffer.from(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("returns undefined for an empty body", () => {
    expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined();
  });

  it.each([
    ["invalid JSON", () => parseJsonBody(Buffer.from("x"))],
    ["invalid UTF-8", () => parseJsonBody(Buffer.from([0xff]))],
    ["a value that is no object", () => readBody(CreateBody, 1)],
    ["an object without a required field", () => readBody(CreateBody, {})],
  ])("refuses %s without the cost of a stack", (_name, refuse) => {
    let refusal: unknown;
    try {
      refuse();
    } catch (error) {
      refusal = error;
    }
    if (!(refusal instanceof Refusal)) throw new Error("it was not refused", { cause: refusal });
    expect(refusal.stack).not.toContain("\n    at ");
    expect(refusal.cause instanceof Error ? refusal.cause.stack : "").not.toContain("\n    at ");
    expect(new Error("another").stack).toContain("\n    at ");
  });

  it("refuses invalid UTF-8 instead of replacing it", () => {
    for (const bytes of [
      [0x22, 0xff, 0x22],
      [0x22, 0xc3, 0x22],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
    ]) {
      expect(() => parseJsonBody(Buffer.from(bytes))).toThrow("not valid UTF-8");
    }
  });

  it("parses a long text full of brackets, commas, quotes and backslashes", () => {
    const content = '[{,"\\'.repeat(500_000);
    expect(parseJsonBody(Buffer.from(JSON.stringify({ content })))).toEqual({ content });
  });

  it.each([
    { name: "10 million arrays", body: `[${"[],".repeat(10 * MB)}[]]` },
    { name: "5 million objects", body: `[${"{},".repeat(5 * MB)}{}]` },
    { name: "a million numbers", body: `[${"0,".repeat(MB)}0]` },
    { name: "a million keys", body: `{${Array.from({ length: MB }, (_, i) => `"${i}":0`).join()}}` },
  ])("refuses $name without building them", ({ body }) => {
    const before = process.memoryUsage().heapUsed;
    expect(() => parseJsonBody(Buffer.from(body))).toThrow("more than 10000 JSON values");
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * MB);
  });

  it("accepts 100 levels and refuses one more, whatever the length of the body", () => {
    const nested = (levels: number, text: string): Buffer =>
      Buffer.from(`${'{"a":['.repeat(levels / 2)}${JSON.stringify(text)}${"]}".repeat(levels / 2)}`);
    for (const text of ["", '[{"\\'.repeat(300_000)]) {
      expect(parseJsonBody(nested(100, text))).toBeInstanceOf(Object);
      expect(() => parseJsonBody(nested(102, text))).toThrow("nested deeper than 100 levels");
    }
    expect(parseJsonBody(Buffer.from(`[${"[],".repeat(4000)}[]]`))).toHaveLength(4001);
    expect(() => parseJsonBody(Buffer.from("[".repeat(30 * MB)))).toThrow("nested deeper than 100 levels");
  });

  it.each([
    ["hello secret", "an unexpected character"],
    ['{"title": secret}', "an unexpected character"],
    ['{"a":"secret', "it ends too early"],
    ['{"a":', "it ends too early"],
    ['{"a":"b",}', "a mistake at line 1, column 10"],
    ['{"a":\n1 2}', "a mistake at line 2, column 3"],
    ["[1,2", "a mistake at line 1, column 5"],
    ['"secret\n"', "a mistake at line 1, column 8"],
    ["\ufeff{}", "an unexpected character"],
  ])("refuses %j in words of its own and does not quote it", (body, where) => {
    expect(() => parseJsonBody(Buffer.from(body))).toThrow(
      expect.objectContaining({ message: `The body is not valid JSON: ${where}.` }),
    );
  });
});
