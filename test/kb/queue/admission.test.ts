import { expect, it } from "vitest";
import {
  admit,
  CRASHES_MAX,
  isExhausted,
  type Admission,
  type Suspect,
} from "../../../src/kb/queue/admission.ts";

const LAST = CRASHES_MAX;

/** A job of another account, or of the named one. */
const of = (crashes: number, accountId = "other"): Suspect => ({ accountId, crashes });

it.each<[string, number, readonly Suspect[], Admission]>([
  ["starts a new job when nothing runs", 0, [], "now"],
  ["starts a new job while new ones run", 0, [of(0), of(0), of(0, "own")], "now"],
  ["starts a new job while a suspect runs", 0, [of(0), of(1, "own")], "now"],
  ["starts a suspect when nothing runs", 1, [], "now"],
  ["starts a suspect while new jobs run", 2, [of(0), of(0, "own")], "now"],
  ["delays a suspect while another one runs", 1, [of(0), of(2)], "later"],
  ["starts the last run of a job when nothing runs", LAST, [], "now"],
  ["delays the last run of a job while a new one of its account runs", LAST, [of(0, "own")], "next"],
  ["starts the last run of a job while other accounts' jobs run", LAST, [of(0)], "now"],
  ["delays the last run of a job while a suspect runs", LAST, [of(1)], "next"],
  ["delays a new job during the last run of one of its account", 0, [of(LAST, "own")], "next"],
  ["starts a new job during the last run of another account's job", 0, [of(LAST)], "now"],
  ["delays a suspect during the last run of a job of its account", 1, [of(LAST, "own")], "next"],
])("%s", (_name, crashes, running, admission) => {
  expect(admit({ accountId: "own", crashes }, running)).toBe(admission);
});

it("gives a job up after its fourth crash", () => {
  const spent = Array.from({ length: CRASHES_MAX + 2 }, (_, crashes) => isExhausted(crashes));
  expect(spent).toEqual([...Array.from({ length: CRASHES_MAX + 1 }, () => false), true]);
});
