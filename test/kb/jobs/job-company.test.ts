import { expect, it } from "vitest";
import { admit, ENDS_MAX, isSpent, type Admission, type Suspect } from "../../../src/kb/jobs/job-company.ts";

const LAST = ENDS_MAX;

/** A job of an account of its own, or of the named one. */
const of = (begun: number, accountId = "other"): Suspect => ({ accountId, begun });

it.each<[string, number, readonly Suspect[], Admission]>([
  ["a new job alone", 0, [], "now"],
  ["a new job among new ones", 0, [of(0), of(0), of(0, "own")], "now"],
  ["a new job beside one that was under way at an end", 0, [of(0), of(1, "own")], "now"],
  ["one that was under way at an end, alone", 1, [], "now"],
  ["one that was under way at an end, among new ones", 2, [of(0), of(0, "own")], "now"],
  ["one that was under way at an end, beside another", 1, [of(0), of(2)], "later"],
  ["one at its last try, alone", LAST, [], "now"],
  ["one at its last try, beside a new one of its account", LAST, [of(0, "own")], "next"],
  ["one at its last try, beside new ones of other accounts", LAST, [of(0)], "now"],
  ["one at its last try, beside another that was under way at an end", LAST, [of(1)], "next"],
  ["a new job beside one of its account at its last try", 0, [of(LAST, "own")], "next"],
  ["a new job beside one of another account at its last try", 0, [of(LAST)], "now"],
  ["any other beside one of its account at its last try", 1, [of(LAST, "own")], "next"],
])("%s is begun as it may be", (_name, begun, underWay, admission) => {
  expect(admit({ accountId: "own", begun }, underWay)).toBe(admission);
});

it("a job is spent once the process ended with it alone among those that were under way", () => {
  const beginnings = Array.from({ length: ENDS_MAX + 2 }, (_, at) => isSpent(at + 1));
  expect(beginnings).toEqual([...Array.from({ length: ENDS_MAX + 1 }, () => false), true]);
});
