import { describe, expect, it } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import { auditText } from "../../../src/cli/commands/verify.ts";

const source = {
  path: "/docs",
  resources: 1200,
  missing: 0,
  altered: 0,
  files: 1200,
  searchable: 1200,
  reading: 0,
  waiting: 0,
  failed: 0,
  held: 0,
  deletesRefused: 0,
  unreadable: 0,
  unjudged: 0,
  lost: null,
  listed: true,
};
const report = (more: Partial<AuditReport>): AuditReport => ({
  sources: [source],
  findings: [],
  unnamed: 0,
  foreign: 0,
  agrees: true,
  left: 0,
  ...more,
});
const finding = {
  source: "/docs",
  path: "a.txt",
  docId: "1",
  title: "a.txt",
  kind: "missing",
  what: "the service no longer has it",
  repaired: true,
} as const;

describe("the words of verify", () => {
  it("the report of verify is short where all agree", () => {
    expect(auditText(report({}))).toBe("/docs: 1,200 documents compared\nall agree\n");
  });

  it("the report of verify has a line for each finding, then the sum", () => {
    const findings = [finding, { ...finding, path: "b.txt", kind: "altered", repaired: false } as const];
    expect(auditText(report({ findings, agrees: false, left: 1 }))).toBe(
      "missing  a.txt  (the service no longer has it; put right)\n" +
        "altered  b.txt  (the service no longer has it)\n" +
        "/docs: 1,200 documents compared\n2 differ, 1 of them repaired\n",
    );
  });

  it("never says that all agree while a file waits, or a delete is refused", () => {
    const waiting = { ...source, files: 1218, waiting: 18, deletesRefused: 2 };
    expect(auditText(report({ agrees: false, sources: [waiting] }))).toBe(
      "/docs: 1,200 documents compared\n" +
        "what was sent is there; 1,200 of 1,218 files searchable, 18 waiting, 2 deletes refused\n",
    );
  });

  it("says how many were sent too shortly before to be judged, and no more than was compared", () => {
    expect(auditText(report({ sources: [{ ...source, resources: 0, unjudged: 56 }] }))).toBe(
      "/docs: 0 documents compared, 56 were sent less than two minutes ago and are not checked yet\n" +
        "nothing was compared yet\n",
    );
    expect(auditText(report({ sources: [{ ...source, unjudged: 1 }] }))).toBe(
      "/docs: 1,200 documents compared, 1 was sent less than two minutes ago and is not checked yet\n" +
        "everything that was compared agrees\n",
    );
    expect(auditText(report({ sources: [{ ...source, resources: 0, listed: false }] }))).not.toContain(
      "all agree",
    );
  });

  it("says of what --repair deleted that it did, not that it was put right", () => {
    const second = { ...finding, kind: "twice", what: "it is a second document of the file of 7" } as const;
    expect(auditText(report({ findings: [second], agrees: false, left: 0 }))).toContain(
      "twice    a.txt  (deleted: it is a second document of the file of 7)\n",
    );
  });

  it("the report of verify is bounded", () => {
    const findings = Array.from({ length: 200 }, () => finding);
    const text = auditText(report({ findings, unnamed: 1000, agrees: false }));
    expect(text).toContain("… and 1,150 more");
    expect(text.split("\n").length).toBeLessThan(60);
  });

  it("says why nothing is sent, what others have there, and what cannot be compared yet", () => {
    const lost = auditText(
      report({ sources: [{ ...source, lost: "the service has lost 9 of 9" }], agrees: false }),
    );
    expect(lost).toContain("has lost 9 of 9. Nothing is sent: `kbsync status` says what to do.");
    expect(lost).not.toContain("what was sent is there");
    expect(auditText(report({ foreign: 3 }))).toContain("3 documents of others");
    expect(auditText(report({ sources: [{ ...source, listed: false }] }))).toContain(
      "nothing to compare yet",
    );
  });
});
