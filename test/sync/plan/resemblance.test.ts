import { expect, it } from "vitest";
import { indexTitles, lettersOf } from "../../../src/sync/plan/resemblance.ts";

it.each([
  ["Annual Report (2024)", "annualreport2024"],
  ["Ä-ﬁne", "äfine"],
  ["!?", ""],
])("the letters of %j are %j", (title, letters) => {
  expect(lettersOf(title)).toBe(letters);
});

it.each<[what: string, stored: string, found: string[]]>([
  ["the same title first, then those that it may be cut from", "Plan", ["Plan", "Plan B", "planning"]],
  ["a title without some characters", "planb", ["Plan B"]],
  ["a title that was cut", "Annual re", ["Annual Report"]],
  ["a title that was cut to two letters", "An", ["Annual Report"]],
  ["no title that continues in another way", "Planet", []],
  ["no title that is longer", "Annual Report 2025", []],
  ["a title of one letter, only where that is all of it", "P", ["P", "p."]],
  ["a title without letters, only where it is the same", "??", ["??"]],
  ["nothing for another title without letters", "!", []],
])("a title index finds %s", (_what, stored, found) => {
  const titles = ["planning", "Plan B", "Plan", "P", "p.", "??", "Annual Report"];
  expect(
    indexTitles(titles, (title) => title)
      .find(stored)
      .toSorted(),
  ).toEqual(found.toSorted());
  expect(indexTitles(titles, (title) => title).find(stored)[0]).toBe(
    titles.includes(stored) ? stored : found.toSorted((a, b) => titles.indexOf(a) - titles.indexOf(b))[0],
  );
});
