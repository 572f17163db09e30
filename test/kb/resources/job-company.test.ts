import { expect, it } from "vitest";
import { admit, ENDS_MAX, isSpent, type Admission } from "../../../src/kb/resources/job-company.ts";

const LAST = ENDS_MAX;

it.each<[string, number, readonly number[], Admission]>([
  ["a new job alone", 0, [], "now"],
  ["a new job among new ones", 0, [0, 0, 0], "now"],
  ["a new job beside one that was under way at an end", 0, [0, 1], "now"],
  ["one that was under way at an end, alone", 1, [], "now"],
  ["one that was under way at an end, among new ones", 2, [0, 0], "now"],
  ["one that was under way at an end, beside another", 1, [0, 2], "later"],
  ["one at its last try, alone", LAST, [], "now"],
  ["one at its last try, beside a new one", LAST, [0], "next"],
  ["one at its last try, beside another", LAST, [1], "next"],
  ["a new job beside one at its last try", 0, [LAST], "next"],
  ["any other beside one at its last try", 1, [LAST], "next"],
])("%s is begun as it may be", (_name, begunBefore, underWay, admission) => {
  expect(admit(begunBefore, underWay)).toBe(admission);
});

it("a job is spent once the process ended with it alone among those that were under way", () => {
  const beginnings = Array.from({ length: ENDS_MAX + 2 }, (_, at) => isSpent(at + 1));
  expect(beginnings).toEqual([...Array.from({ length: ENDS_MAX + 1 }, () => false), true]);
});
