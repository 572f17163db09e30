import type { AuditReport, AuditedSource, Finding } from "../../wire/daemon-audit.ts";
import type { Claimed } from "../plan/audit.ts";
import type { RelativePath } from "../plan/model.ts";
import { driftWords } from "../reconcile-service/loss.ts";
import type { Drifted } from "../reconcile-service/sweep.ts";

/** Collects a report. */
export interface Reporting {
  source(source: AuditedSource): void;
  drifted(source: string, drifted: Drifted, repaired: boolean): void;
  claimed(source: string, path: RelativePath, claimed: Claimed, repaired: boolean): void;
  foreign(
    source: string,
    foreign: { count: number; first: readonly { docId: string; title: string }[] },
  ): void;
  finish(): AuditReport;
}

/** Maximum number of listed findings. Nobody reads a report of a million lines. */
export const FINDINGS_MAX = 10_000;

/** Starts a report. */
export function openReport(): Reporting {
  const sources: AuditedSource[] = [];
  const findings: Finding[] = [];
  let unnamed = 0;
  let foreign = 0;
  let agrees = true;
  let left = 0;
  const add = (finding: Finding): void => {
    if (finding.kind !== "foreign") {
      agrees = false;
      left += Number(!finding.repaired);
    }
    if (findings.length < FINDINGS_MAX) findings.push(finding);
    else if (finding.kind !== "foreign") unnamed += 1;
  };
  return {
    source: (source) => {
      agrees &&= source.searchable === source.files && source.held + source.deletesRefused === 0;
      sources.push(source);
    },
    drifted: (source, { row, ...how }, repaired) => {
      const { path, docId, title } = row;
      add({ source, path, docId, title, kind: how.kind, what: driftWords(how), repaired });
    },
    claimed: (source, path, { resource, claim, by }, repaired) => {
      const { docId, title } = resource;
      add({ source, path, docId, title, ...claimWords(claim, by), repaired });
    },
    foreign: (source, { count, first }) => {
      foreign += count;
      for (const { docId, title } of first) {
        const what = "its origin is unknown, and it is not touched";
        add({ source, path: "", docId, title, kind: "foreign", what, repaired: false });
      }
    },
    finish: () => ({ sources, findings, unnamed, foreign, agrees, left }),
  };
}

function claimWords(
  claim: Claimed["claim"],
  by: string | undefined,
): { readonly kind: Finding["kind"]; readonly what: string } {
  switch (claim) {
    case "upload":
      return {
        kind: "twice",
        what: `it duplicates ${by ?? ""}: it has the address of the same upload`,
      };
    case "twin":
      return { kind: "same", what: `it is equal to ${by ?? ""}, and may be another kbsync's` };
    case "deleted":
      return {
        kind: "returned",
        what: "kbsync deleted it, and it exists again; was the service restored?",
      };
  }
}
