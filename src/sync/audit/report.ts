import type { Claimed } from "../plan/audit.ts";
import type { RelativePath } from "../plan/model.ts";
import { driftWords } from "../reconcile-service/loss.ts";
import type { Drifted } from "../reconcile-service/sweep.ts";

/** Something that the service's list shows and the ledger does not expect. */
export interface Finding {
  /** Folder of the source; of a place that several share, one of them. */
  readonly source: string;
  /** Empty for a resource that belongs to no file. */
  readonly path: RelativePath;
  readonly docId: string;
  readonly title: string;
  /**
   * `missing`, `altered`: a file's resource. `twice`: a second one of ours. `same`: equal to one of ours, perhaps
   * another's. `returned`: we deleted it, and it is there again. `foreign`: of nobody that is known here.
   */
  readonly kind: "missing" | "altered" | "twice" | "same" | "returned" | "foreign";
  /** In words. */
  readonly what: string;
  /** Whether it is being put right; a foreign resource never is. */
  readonly repaired: boolean;
}

/** How a source's resources were found. */
export interface AuditedSource {
  readonly path: string;
  /** Resources that were compared; those sent a short while ago are not. */
  readonly resources: number;
  readonly missing: number;
  readonly altered: number;
  /** Resources that are too new to be judged by a list that may lag. */
  readonly unjudged: number;
  /** Why nothing is sent again although much is missing or altered; null where nothing stands against it. */
  readonly lost: string | null;
  /** False: there is no list yet, for the service has not told the collection's id. */
  readonly listed: boolean;
}

/** What an audit found. */
export interface AuditReport {
  readonly sources: readonly AuditedSource[];
  /** At most `FINDINGS_MAX`; foreign resources among them are only the first few. */
  readonly findings: readonly Finding[];
  /** Findings that are not named; foreign ones are not among them. */
  readonly unnamed: number;
  /** Resources of nobody that is known here. They are never touched. */
  readonly foreign: number;
  /** Whether every file's resource is there as it was acknowledged, and nothing of ours twice. */
  readonly agrees: boolean;
  /** Findings that are not put right; foreign resources are none. */
  readonly left: number;
}

/** Gathers a report. */
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

/** Findings that are named. A report of a million lines helps nobody. */
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
        const what = "it was made by nobody that is known here, and is left alone";
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
        what: `it is a second one of ${by ?? ""}: it has the address of the same upload`,
      };
    case "twin":
      return { kind: "same", what: `it is equal to ${by ?? ""}, and may be another kbsync's` };
    case "deleted":
      return {
        kind: "returned",
        what: "it was deleted from here, and is there again; was the service restored?",
      };
  }
}
