import { describe, expect, it } from "vitest";
import { ANSWER_CHARS_MAX, cutText, fitting, readFitting } from "../../src/mcp/budget.ts";

const chars = (entries: readonly unknown[]): number => JSON.stringify({ entries, cursor: "c" }).length;

describe("the budget of an answer", () => {
  it("takes the first entries that fit, and all if they do", () => {
    const entries = Array.from({ length: 100 }, (_, at) => ({ at, text: "é".repeat(400) }));
    const some = fitting(entries);
    expect(some).toEqual(entries.slice(0, some.length));
    expect(chars(some)).toBeLessThanOrEqual(ANSWER_CHARS_MAX);
    expect(chars(entries.slice(0, some.length + 3))).toBeGreaterThan(ANSWER_CHARS_MAX);
    expect(fitting(entries.slice(0, 10))).toHaveLength(10);
    expect(fitting([])).toEqual([]);
  });

  it("takes one entry even if that is too long, so that paging advances", () => {
    expect(fitting(["x".repeat(ANSWER_CHARS_MAX), "y"])).toHaveLength(1);
  });

  it("reads a shorter page where a page does not fit, without losing an entry", async () => {
    const whole = Array.from({ length: 250 }, (_, at) => "x".repeat((at % 7) * 700));
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
      expect(chars(page.entries)).toBeLessThanOrEqual(ANSWER_CHARS_MAX);
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
