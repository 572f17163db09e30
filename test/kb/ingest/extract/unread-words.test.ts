import { describe, expect, it } from "vitest";
import { scrapsWords, unreadWords } from "../../../../src/kb/ingest/extract/unread-words.ts";

const sought = { count: 12, words: "12 pages had no text" };
const read = (...pages: [page: number, why: "bound" | "failures" | Error][]): string | undefined =>
  unreadWords(
    pages.map(([page, why]) => ({ page, why })) as Parameters<typeof unreadWords>[0], // a failure is read by its message alone
    sought,
  );

describe("the pages that were not read", () => {
  it.each<[string, string | undefined, string | undefined]>([
    ["none", read(), undefined],
    ["one after failures", read([3, "failures"]), "Page 3 was not tried after these."],
    [
      "two runs after failures",
      read([3, "failures"], [4, "failures"], [6, "failures"]),
      "Pages 3–4, 6 were not tried after these.",
    ],
    ["one with an error", read([2, new Error("it is damaged")]), "Page 2 was not read: it is damaged."],
    [
      "those of one error together, each error in its own sentence",
      read([1, new Error("a")], [2, new Error("b")], [3, new Error("a")]),
      "Pages 1, 3 were not read: a. Page 2 was not read: b.",
    ],
    [
      "those beyond the bound",
      read([11, "bound"], [12, "bound"]),
      "Pages 11–12 were not read: 12 pages had no text, and text was recognised on the first 10 of them, as many as one document may take.",
    ],
  ])("the pages that were not read are named with their reason: %s", (_name, words, expected) => {
    expect(words).toBe(expected);
  });
});

describe("the pages that were left out as drawings", () => {
  const REASON =
    "left out: what was recognised there is no text, perhaps a drawing, or a script of none of kb.ocr.languages.";
  const everyOther = (count: number): number[] => Array.from({ length: count }, (_, at) => 1 + 2 * at);

  it.each<[readonly number[], string | undefined]>([
    [[], undefined],
    [[4], `Page 4 was ${REASON}`],
    [[4, 5, 6, 9], `Pages 4–6, 9 were ${REASON}`],
    [everyOther(10), `Pages 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 were ${REASON}`],
    [everyOther(11), `Pages 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and later ones were ${REASON}`],
  ])(
    "the pages that were left out as drawings are named as runs, the first ten of them: %j",
    (pages, expected) => {
      expect(scrapsWords(pages)).toBe(expected);
    },
  );
});
