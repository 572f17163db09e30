import { assert, constantFrom, nat, property, stringMatching } from "fast-check";
import { describe, expect, it } from "vitest";
import { nearTerms } from "../../../src/kb/lexical/near-terms.ts";

describe("nearTerms", () => {
  it.each([
    ["a letter missing", "reciev", "recieve"],
    ["a letter added", "tabble", "table"],
    ["a letter replaced", "serven", "server"],
    ["two letters swapped", "reciev", "receiv"],
    ["the first letter", "xable", "table"],
    ["the last letter", "tabl", "table"],
  ])("nearTerms has the term that was meant: %s", (_name, typed, meant) => {
    expect(nearTerms(typed)).toContain(meant);
  });

  it("nearTerms is empty for short and long words, numbers and other scripts", () => {
    for (const term of ["the", "b12c", "möhre", "москва", "x".repeat(21)])
      expect(nearTerms(term)).toEqual([]);
  });

  it("nearTerms has the terms with the same first letter first, each once and not the term itself", () => {
    const near = nearTerms("table");
    expect(new Set(near).size).toBe(near.length);
    expect(near).not.toContain("table");
    const starts = near.map((term) => term.startsWith("t"));
    expect(starts).toEqual(starts.toSorted((a, b) => Number(b) - Number(a)));
  });

  it("nearTerms is symmetric for a letter that is added anywhere", () => {
    assert(
      property(
        stringMatching(/^[a-z]{4,12}$/),
        nat(12),
        constantFrom("a", "e", "t", "z"),
        (term, at, letter) => {
          const longer = term.slice(0, at) + letter + term.slice(at);
          expect(nearTerms(term)).toContain(longer);
          expect(nearTerms(longer)).toContain(term);
        },
      ),
    );
  });
});
