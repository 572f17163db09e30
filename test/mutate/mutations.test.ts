import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeMutation, mutate, mutationsOf, sample } from "./mutations.ts";

/** What a text's mutations make of it. */
const mutants = (text: string): string[] => mutationsOf(text).map((mutation) => mutate(text, mutation));

describe("the mutations of a module", () => {
  it.each<[string, string, readonly string[]]>([
    ["negate a condition", "if (ready) go;", ["if (!(ready)) go;", "if (ready) {}"]],
    ["take a negation away", "while (!ready) wait;", ["while (ready) wait;", "while (!ready) {}"]],
    ["swap a comparison", "const a = b <= c;", ["const a = b < c;"]],
    ["swap && and ||", "const a = b && c || d;", ["const a = b || c || d;", "const a = b && c && d;"]],
    ["leave out a statement", "function f() { go(); }", ["function f() { {} }"]],
    [
      "leave out an early return, not the last one",
      "function f() { if (a === b) return; return g; }",
      ["function f() { if (a !== b) return; return g; }", "function f() { if (a === b) {} return g; }"],
    ],
    ["change small numbers by one", "const a = [0, 7];", ["const a = [1, 7];", "const a = [0, 8];"]],
    ["change large numbers to nothing", "const LIMIT = 10_000;", ["const LIMIT = 0;"]],
    ["take arithmetic of numbers alone for one number", "const LIMIT = 8 * 1024;", ["const LIMIT = 0;"]],
    [
      "change what stands in for a value that may lack",
      "const a = sizes.get(b) ?? 0;",
      ["const a = sizes.get(b) ?? 1;"],
    ],
    [
      "leave out a timer, which is more than whether it keeps a process from its end",
      "setTimeout(() => go(), 50).unref();",
      ["{}", "setTimeout(() => go(), 0).unref();"],
    ],
    ["turn true and false", "const a = true;", ["const a = false;"]],
    ["empty words that programs read", 'const a = { kind: "gone" };', ['const a = { kind: "" };']],
  ])("mutations %s", (_name, text, expected) => {
    expect(mutants(text)).toEqual(expected);
  });

  it.each([
    ["comments", "// if (a) b();\n/* 1 */"],
    ["types", 'type A = "one" | 2; interface B { readonly c: true }'],
    ["imports", 'import { a } from "./b.ts"; export * from "./c.ts";'],
    ["sentences for people", 'const words = "it is not there";'],
    ["lines of a log", 'log.warn("stopped"); const a = () => parts.log.warn({ code: "a" });'],
    ["checks of what cannot be", "assert(a === b); assert.equal(a, 1);"],
    ["whether a timer keeps a process from its end", "timer.unref();"],
    ["what stands in for an element of a list", "const a = list[at]?.size ?? 0;"],
    ["joined texts", 'const a = b + "one two";'],
    ["what takes several lines", "go(\n  a,\n);"],
  ])("the mutations of a module leave %s alone", (_name, text) => {
    expect(mutants(text)).toEqual([]);
  });

  it("the mutations of a module keep every other line as it is, in a module of the daemon", () => {
    const text = readFileSync(new URL("../../src/sync/agenda/settle.ts", import.meta.url), "utf8");
    const before = text.split("\n");
    const all = mutationsOf(text);
    expect(all.length).toBeGreaterThan(20);
    for (const mutation of all) {
      const after = mutate(text, mutation).split("\n");
      const changed = after.flatMap((line, at) => (line === before[at] ? [] : [at + 1]));
      expect(changed).toEqual([mutation.line]);
    }
  });

  it("the mutations of a module are described by the line before and after", () => {
    const text = "let a;\n  if (a) b();\n";
    const [first] = mutationsOf(text);
    expect(first && describeMutation(text, first)).toBe("negated condition: if (a) b();  →  if (!(a)) b();");
  });
});

describe("a sample", () => {
  const items = Array.from({ length: 50 }, (_, at) => at);

  it("a sample is the same for the same seed, another for another, and repeats nothing", () => {
    const drawn = sample(items, 20, 7);
    expect(sample(items, 20, 7)).toEqual(drawn);
    expect(sample(items, 20, 8)).not.toEqual(drawn);
    expect(new Set(drawn).size).toBe(20);
  });

  it("a sample has all there is where more is asked for", () => {
    expect(sample(items, 99, 1).toSorted((a, b) => a - b)).toEqual(items);
  });
});
