import { expect, it } from "vitest";
import {
  admit,
  CRASHES_MAX,
  isSpent,
  type Admission,
  type Suspect,
} from "../../../src/kb/queue/admission.ts";

const LAST = CRASHES_MAX;

/** A job of an account of its own, or of the named one. */
const of = (crashes: number, accountId = "other"): Suspect => ({ accountId, crashes });

it.each<[string, number, readonly Suspect[], Admission]>([
  ["a new job alone", 0, [], "now"],
  ["a new job among new ones", 0, [of(0), of(0), of(0, "own")], "now"],
  ["a new job beside one that was worked on at a crash", 0, [of(0), of(1, "own")], "now"],
  ["one that was worked on at a crash, alone", 1, [], "now"],
  ["one that was worked on at a crash, among new ones", 2, [of(0), of(0, "own")], "now"],
  ["one that was worked on at a crash, beside another", 1, [of(0), of(2)], "later"],
  ["one at its last try, alone", LAST, [], "now"],
  ["one at its last try, beside a new one of its account", LAST, [of(0, "own")], "next"],
  ["one at its last try, beside new ones of other accounts", LAST, [of(0)], "now"],
  ["one at its last try, beside another that was worked on at a crash", LAST, [of(1)], "next"],
  ["a new job beside one of its account at its last try", 0, [of(LAST, "own")], "next"],
  ["a new job beside one of another account at its last try", 0, [of(LAST)], "now"],
  ["any other beside one of its account at its last try", 1, [of(LAST, "own")], "next"],
])("admits %s as it may", (_name, crashes, running, admission) => {
  expect(admit({ accountId: "own", crashes }, running)).toBe(admission);
});

it("gives a job up once it crashed the process in a first run beside others and in three runs of its own", () => {
  const spent = Array.from({ length: CRASHES_MAX + 2 }, (_, crashes) => isSpent(crashes));
  expect(spent).toEqual([...Array.from({ length: CRASHES_MAX + 1 }, () => false), true]);
});
