import type { FileCounts } from "../../wire/file-state.ts";
import type { AuditReport, AuditedSource, Finding } from "../../wire/daemon-audit.ts";
import type { ActionContext } from "../send/context.ts";
import { unknownSource } from "../scan/disk/source-path.ts";
import type { Candidate } from "../plan/model.ts";
import { type Counted, countedAs, countVersions, type SourceWork, withWork } from "../plan/version.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { Rules } from "../scan/rules/rules.ts";
import type { Compared, Contact } from "./contact.ts";
import { UNCLEAR_LISTS } from "./hold-words.ts";

/** A source that is audited. */
interface AuditSource {
  readonly id: number;
  readonly rules: Pick<Rules, "source">;
  readonly contact: Pick<Contact, "compare">;
  /** Whether the whole folder was compared with the ledger, so that the source's work is known. */
  isPlanned(): boolean;
  activity(): SourceWork;
  /** Compares the folder with the ledger. */
  preview(row: SourceRow): Promise<{
    readonly braked: { readonly halted: boolean };
    readonly candidates: readonly Candidate[];
    readonly unreadable: number;
  }>;
}

export interface AuditOptions {
  /** Repairs what it can: sends missing and altered resources again, and deletes second ones of ours. */
  readonly repair?: boolean;
  /** A source's folder; default all. Another folder throws `source_unknown`. */
  readonly folder?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Maximum number of listed findings. Nobody reads a report of a million lines. */
const FINDINGS_MAX = 10_000;

/** Compares sources with the service's list, one after another, and reports the differences. Throws `list_refused`. */
export async function auditSources(
  context: ActionContext,
  all: readonly AuditSource[],
  { repair = false, folder, signal = context.signal }: AuditOptions = {},
): Promise<AuditReport> {
  const chosen = all.filter((source) => folder === undefined || pathOf(source) === folder);
  if (folder !== undefined && chosen.length === 0) throw unknownSource(folder, all.map(pathOf));
  const sources: AuditedSource[] = [];
  const findings: Finding[] = [];
  let foreign = 0;
  for (const source of chosen) {
    const compared = await source.contact.compare({ repair, signal });
    sources.push(await sourceOf(context, source, compared));
    findings.push(...findingsOf(source, compared));
    if ("gathered" in compared) foreign += compared.gathered.foreign.count;
  }
  const own = findings.filter(({ kind }) => kind !== "foreign");
  const left = own.filter(({ repaired }) => !repaired).length;
  return {
    sources,
    findings: findings.slice(0, FINDINGS_MAX),
    unnamed: Math.max(0, own.length - FINDINGS_MAX),
    foreign,
    agrees:
      left === 0 &&
      sources.every(
        ({ files, searchable, held, deletesRefused, unreadable, lost }) =>
          searchable === files && held + deletesRefused + unreadable === 0 && lost === null,
      ),
    left,
  };
}

async function sourceOf(
  context: ActionContext,
  source: AuditSource,
  compared: Compared,
): Promise<AuditedSource> {
  const path = pathOf(source);
  const files = await countFiles(context, source);
  const nothing = { path, ...files, resources: 0, missing: 0, altered: 0, unjudged: 0, lost: null };
  if (compared.kind === "unlisted") return { ...nothing, listed: false };
  if (compared.kind === "unclear") return { ...nothing, listed: true, lost: UNCLEAR_LISTS };
  const { gathered } = compared;
  const shown = { ...nothing, listed: true, resources: gathered.shown + gathered.rows.size };
  switch (compared.kind) {
    case "held":
    case "lost":
      return { ...shown, lost: compared.reason };
    case "incomplete":
      return { ...shown, unjudged: compared.missing };
    case "applied": {
      const count = (kind: Finding["kind"]): number =>
        compared.findings.filter((each) => each.kind === kind).length;
      return {
        ...shown,
        missing: count("missing"),
        altered: count("altered"),
        unjudged: compared.unjudged,
      };
    }
  }
}

function findingsOf(source: AuditSource, compared: Compared): readonly Finding[] {
  const path = pathOf(source);
  const found =
    compared.kind === "applied"
      ? compared.findings.map(({ isRepaired, ...finding }) => ({
          ...finding,
          source: path,
          repaired: isRepaired,
        }))
      : [];
  if (!("gathered" in compared)) return found;
  const foreign = compared.gathered.foreign.first.map(({ docId, title }) => ({
    source: path,
    path: "",
    docId,
    title,
    kind: "foreign" as const,
    what: "its origin is unknown, and it is not touched",
    repaired: false,
  }));
  return [...found, ...foreign];
}

/** Counts the files of a source by state, and its deletes. A source that was not compared with the disk yet is compared. */
async function countFiles(
  { ledger }: ActionContext,
  source: AuditSource,
): Promise<FileCounts & Pick<AuditedSource, "held" | "deletesRefused" | "unreadable">> {
  ledger.flush();
  const row = ledger.sources.get(source.id);
  const found = source.isPlanned() ? undefined : await source.preview(row);
  const isHalted = found?.braked.halted === true || row.lost !== null || row.halted !== null;
  const work = found === undefined ? source.activity() : workOf(found.candidates);
  const { held, deletesRefused } = row;
  const unreadable = found?.unreadable ?? row.unreadable;
  return { ...countVersions({ ...withWork(row, work), isHalted }), held, deletesRefused, unreadable };
}

/** The work of a source that does not run yet. */
function workOf(candidates: readonly Candidate[]): SourceWork {
  const count = (as: Counted): number =>
    candidates.filter(({ known }) => countedAs(known?.state) === as).length;
  const [agreed, failed] = [count("agreed"), count("failed")];
  return { backlog: agreed + count("nothing"), backlogAgreed: agreed, backlogFailed: failed, reading: 0 };
}

function pathOf({ rules }: AuditSource): string {
  return rules.source.absolutePath;
}
