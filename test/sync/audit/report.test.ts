import { beforeEach, expect, it } from "vitest";
import { FINDINGS_MAX, openReport, type Reporting } from "../../../src/sync/audit/report.ts";
import type { Drifted } from "../../../src/sync/reconcile-service/sweep.ts";
import type { Claimed } from "../../../src/sync/plan/audit.ts";

let report: Reporting;
beforeEach(() => {
  report = openReport();
});

// What a report uses of a row and of a resource.
const missing = {
  row: { path: "a", docId: "1", title: "A" },
  kind: "missing",
  alterations: [],
} as unknown as Drifted;
const claimed = (claim: Claimed["claim"]): Claimed =>
  ({ resource: { docId: "2", title: "B" }, claim, by: "b.md" }) as unknown as Claimed;

it("an audit that found nothing agrees", () => {
  expect(report.finish()).toEqual({
    sources: [],
    findings: [],
    unnamed: 0,
    foreign: 0,
    agrees: true,
    left: 0,
  });
});

it("resources of unknown origin are counted and named, and are no disagreement", () => {
  report.foreign("/docs", { count: 3, first: [{ docId: "9", title: "F" }] });
  report.foreign("/docs", { count: 2, first: [] });
  expect(report.finish()).toMatchObject({
    foreign: 5,
    agrees: true,
    left: 0,
    findings: [{ kind: "foreign", docId: "9", title: "F", path: "", repaired: false }],
  });
});

it("a repaired difference is a disagreement, and not left over", () => {
  report.drifted("/docs", missing, true);
  expect(report.finish()).toMatchObject({
    agrees: false,
    left: 0,
    findings: [{ source: "/docs", path: "a", docId: "1", title: "A", kind: "missing", repaired: true }],
  });
  report.drifted("/docs", missing, false);
  expect(report.finish().left).toBe(1);
});

it.each([
  ["upload", "twice", /duplicates b\.md/],
  ["twin", "same", /equal to b\.md/],
  ["deleted", "returned", /deleted it, and it exists again/],
] as const)("a surplus resource is named by what shows whose it is: %s", (claim, kind, what) => {
  report.claimed("/docs", "b.md", claimed(claim), false);
  expect(report.finish()).toMatchObject({
    agrees: false,
    left: 1,
    findings: [{ kind, path: "b.md", docId: "2", title: "B", what: expect.stringMatching(what) as string }],
  });
});

it("a report names a bounded number of findings, and counts the others except foreign ones", () => {
  for (let count = 0; count < FINDINGS_MAX + 2; count += 1) report.drifted("/docs", missing, false);
  report.foreign("/docs", { count: 1, first: [{ docId: "9", title: "F" }] });
  const { findings, unnamed, left, foreign } = report.finish();
  expect([findings.length, unnamed, left, foreign]).toEqual([FINDINGS_MAX, 2, FINDINGS_MAX + 2, 1]);
});
