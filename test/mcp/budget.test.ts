import { describe, expect, it } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";
import { ANSWER_TOKENS, cutText, fitsAlone, fitting, readFitting } from "../../src/mcp/budget.ts";

const tokens = (entries: readonly unknown[]): number => countTokens(JSON.stringify({ entries, cursor: "c" }));

describe("the budget of an answer", () => {
  it("takes the first entries that fit, and all if they do", () => {
    const entries = Array.from({ length: 100 }, (_, at) => ({ at, text: "é".repeat(400) }));
    const some = fitting(entries);
    expect(some).toEqual(entries.slice(0, some.length));
    expect(tokens(some)).toBeLessThanOrEqual(ANSWER_TOKENS);
    expect(tokens(entries.slice(0, some.length + 3))).toBeGreaterThan(ANSWER_TOKENS);
    expect(fitting(entries.slice(0, 10))).toHaveLength(10);
    expect(fitting([])).toEqual([]);
  });

  it("takes one entry even if that is too long, so that paging advances", () => {
    const long = "a ".repeat(ANSWER_TOKENS);
    expect(fitting([long, "y"])).toEqual([long]);
    expect(fitsAlone(long, ANSWER_TOKENS)).toBe(false);
    expect(fitsAlone(long, 2 * ANSWER_TOKENS)).toBe(true);
  });

  it("reads a shorter page where a page does not fit, without losing an entry", async () => {
    const whole = Array.from({ length: 250 }, (_, at) => "x ".repeat((at % 7) * 150));
    const seen: string[] = [];
    for (let from: string | null = "0"; from !== null;) {
      const start = Number(from);
      const page: { entries: readonly string[]; nextCursor: string | null } = await readFitting(
        100,
        (limit) => {
          const entries = whole.slice(start, start + limit);
          const end = start + entries.length;
          return Promise.resolve({ entries, nextCursor: end < whole.length ? String(end) : null });
        },
      );
      expect(tokens(page.entries)).toBeLessThanOrEqual(ANSWER_TOKENS);
      seen.push(...page.entries);
      from = page.nextCursor;
    }
    expect(seen).toEqual(whole);
  });

  it.each([
    ["short", 5, "short"],
    ["longer", 5, "long…"],
    ["abc🌊d", 5, "abc…"],
  ])("cuts %s to %s characters as %s", (text, max, cut) => {
    expect(cutText(text, max)).toBe(cut);
  });
});
