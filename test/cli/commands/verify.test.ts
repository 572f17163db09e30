import { describe, expect, it } from "vitest";
import type { AuditReport } from "../../../src/wire/daemon-audit.ts";
import { recoverText } from "../../../src/cli/commands/sync.ts";
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
    const same = { ...finding, kind: "same", what: "it is equal to 7, and may be another kbsync's" } as const;
    expect(auditText(report({ findings: [same], agrees: false, left: 0 }))).toContain(
      "same     a.txt  (deleted: it is equal to 7, and may be another kbsync's)\n",
    );
  });

  it("the report of verify is bounded", () => {
    const findings = Array.from({ length: 200 }, () => finding);
    const text = auditText(report({ findings, unnamed: 1000, agrees: false }));
    expect(text).toContain("… and 1,150 more");
    expect(text.split("\n").length).toBeLessThan(60);
  });

  it("says why nothing is sent, what others have there, and what cannot be compared yet", () => {
    expect(auditText(report({ sources: [{ ...source, lost: "the service has lost 9 of 9." }] }))).toContain(
      "kbsync approve",
    );
    expect(auditText(report({ foreign: 3 }))).toContain("3 documents of others");
    expect(auditText(report({ sources: [{ ...source, listed: false }] }))).toContain(
      "nothing to compare yet",
    );
  });
});

describe("the words of a recovery", () => {
  const recovered = {
    source: "/docs",
    listed: true,
    adopted: 1000,
    differing: 2,
    missing: 1,
    lost: null,
    surplus: { count: 1, first: [{ docId: "9", title: "old.txt" }] },
  };
  it("the report of a recovery states what was adopted, and what is left", () => {
    const text = recoverText({
      setAside: "/state/ledger.db.set-aside-1",
      sources: [recovered],
    });
    expect(text).toContain("the previous ledger is saved as /state/ledger.db.set-aside-1");
    expect(text).toContain("1,000 adopted as they are, 2 adopted, to be sent, 1 no longer there, to be sent");
    expect(text).toContain("left     old.txt  (9)");
  });

  it("says that nothing is sent to a service that lost most, and what sends it", () => {
    const lost = "the service has lost 40 of 43 resources; was it reset, or restored from a backup?";
    const text = recoverText({ setAside: null, sources: [{ ...recovered, missing: 40, lost }] });
    expect(text).toContain("40 no longer there, held");
    expect(text).toContain(`${lost} \`kbsync approve\` sends them again.`);
  });

  it("says why nothing could be adopted yet", () => {
    const text = recoverText({ setAside: null, sources: [{ ...recovered, listed: false }] });
    expect(text).toContain("nothing adopted yet");
  });
});
