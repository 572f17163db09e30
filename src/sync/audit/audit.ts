import type { FileCounts } from "../../wire/file-state.ts";
import type { AuditedSource, AuditReport } from "../../wire/daemon-audit.ts";
import { openNumberSet } from "../../lib/number-set.ts";
import { openTurns } from "../../lib/turns.ts";
import type { ActionContext } from "../actions/context.ts";
import type { Scope } from "../ledger/drift/drift.ts";
import type { Recheck } from "../ledger/drift/adoptions.ts";
import { NO_COUNTS, type Claimed } from "../plan/audit.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import { type Counted, countedAs, countVersions, withWork } from "../plan/version.ts";
import type { SourceActivity } from "../source/progress.ts";
import type { SourceSync } from "../source/source.ts";
import { unknownSource } from "../disk/source-path.ts";
import { areGone, judgeLoss, type Check } from "../reconcile-service/loss.ts";
import { takeInstead, takeOlder } from "./older.ts";
import { askPresence } from "../reconcile-service/presence.ts";
import { deleteExtra, openResending, type Resending } from "./repair.ts";
import { openReport, type Reporting } from "./report.ts";
import { sweepScope, type Adopted, type Sweep } from "../reconcile-service/sweep.ts";

export interface AuditOptions {
  /** Repairs what it can: sends missing and altered resources again, and deletes second ones of ours. */
  readonly repair?: boolean;
  /**
   * A person requested it. Then it also deletes resources that only seem to be second ones of ours, because they equal
   * one of them or were deleted before. That would be wrong without a request: two state folders on one folder make
   * equal resources, and each daemon would delete the other's.
   */
  readonly byPerson?: boolean;
  /** A source's folder; default all. Another folder throws `source_unknown`. */
  readonly folder?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The audits of a daemon. */
export interface Audits {
  /** Compares all sources with the service's list. Throws `list_refused`. */
  audit(options?: AuditOptions): Promise<AuditReport>;
  /** Compares one source; undefined if there is no list yet. */
  check(source: number): Promise<Check | undefined>;
  /**
   * Compares a source that was adopted some time ago, and repairs what its adoption could not see. Returns true if
   * nothing was found. Throws `list_refused`.
   */
  recheck(source: SourceSync, recheck: Recheck): Promise<boolean>;
}

export interface AuditsOptions {
  readonly context: ActionContext;
  readonly sources: () => readonly SourceSync[];
  /** How far the service's list may lag behind its answers. */
  readonly lagMs: number;
}

/** Opens the audits. One runs at a time. */
export function openAudits({ context, sources, lagMs }: AuditsOptions): Audits {
  const turns = openTurns();

  const sourceOf = (id: number): SourceSync | undefined => sources().find((source) => source.id === id);
  const sweep = (scope: Scope, signal: AbortSignal, adopted?: Adopted): Promise<Sweep | undefined> => {
    const isBusy = (source: number, path: RelativePath): boolean => sourceOf(source)?.isBusy(path) ?? true;
    return sweepScope(context, scope, { isBusy, lagMs, signal, ...(adopted && { adopted }) });
  };

  const auditScope = async (
    group: readonly SourceSync[],
    options: AuditOptions,
    report: Reporting,
    found: Sweep | undefined,
  ): Promise<void> => {
    const [first] = group;
    if (first === undefined) return;
    const resending = await judgeSources(context, group, options, report, found);
    if (found === undefined) return;
    for (const claimed of found.claims.claimed) {
      const owner = ownerOf(claimed) ?? { source: first, path: "" };
      if (!group.includes(owner.source)) continue;
      const mayGo =
        resending.has(owner.source.id) && (options.byPerson === true || claimed.claim === "upload");
      const goes = mayGo && (await settleClaim(context, claimed, owner));
      report.claimed(pathOf(owner.source), owner.path, claimed, goes);
    }
    for await (const drifted of found.drifted()) {
      // Other sources share the scope, and a person may have asked for only one.
      const source = group.find(({ id }) => id === drifted.row.source);
      const again = resending.get(drifted.row.source);
      if (source !== undefined) report.drifted(pathOf(source), drifted, again !== undefined);
      await again?.add(drifted);
    }
    for (const again of resending.values()) await again.finish();
    report.foreign(pathOf(first), found.claims.foreign);
  };

  /** Returns the file that a resource duplicates. */
  const ownerOf = ({ by }: Claimed): Owner | undefined => {
    const row = by === undefined ? undefined : context.ledger.drift.byDoc(by);
    const source = row && sourceOf(row.source);
    return row && source && { source, path: row.path };
  };

  return {
    audit: (options = {}) =>
      turns.run("", async () => {
        const report = openReport();
        const { folder } = options;
        const chosen = sources().filter((source) => folder === undefined || pathOf(source) === folder);
        if (folder !== undefined && chosen.length === 0) throw unknownSource(folder, sources().map(pathOf));
        const groups = Map.groupBy(chosen, (source) => JSON.stringify(scopeOf(source)));
        for (const group of groups.values()) {
          const [first] = group;
          const found = first && (await sweep(scopeOf(first), options.signal ?? context.signal));
          await auditScope(group, options, report, found);
        }
        return report.finish();
      }),
    recheck: (source, { boundMs, seen }) =>
      turns.run("", async () => {
        const { signal, ledger } = context;
        ledger.flush();
        const bornMs = ledger.drift.forgottenThereMs(ledger.intents.clockOffset() ?? 0);
        const found = await sweep(scopeOf(source), signal, {
          source: source.id,
          boundMs,
          bornMs,
          seen: new Map(seen.map(({ docId, updatedMs }) => [docId, updatedMs])),
        });
        if (found === undefined) return false;
        const report = openReport();
        await auditScope([source], { repair: true }, report, found);
        for (const older of found.older) await takeOlder(context, source, older, source.signal);
        const [came] = report.finish().sources;
        const open = came === undefined ? 1 : came.missing + came.altered + came.unjudged;
        return open + found.older.length === 0;
      }),
    check: (id) =>
      turns.run("", async () => {
        const source = sourceOf(id);
        const found = source && (await sweep(scopeOf(source), context.signal));
        if (source === undefined || found === undefined) return undefined;
        return {
          missing: found.missing,
          areGone: () => areGone(context, found, id, source.signal),
          reason: await judgeLoss(context, found, id, { signal: source.signal, withUnjudged: true }),
          refill: async () => {
            const again = openResending(context, source);
            for await (const drifted of found.drifted())
              if (drifted.row.source === id) await again.add(drifted);
            await again.finish();
          },
        };
      }),
  };
}

/** A source and the path of one of its files. */
interface Owner {
  readonly source: SourceSync;
  readonly path: RelativePath;
}

/**
 * Judges for each source whether the service lost its resources, and reports it. For a repair, returns what sends them again;
 * a source that lost too many waits for a person instead.
 */
async function judgeSources(
  context: ActionContext,
  group: readonly SourceSync[],
  { repair = false }: AuditOptions,
  report: Reporting,
  found: Sweep | undefined,
): Promise<ReadonlyMap<number, Resending>> {
  const resending = new Map<number, Resending>();
  for (const source of group) {
    const counts = found?.counts.get(source.id) ?? NO_COUNTS;
    const lost = found && (await judgeLoss(context, found, source.id, { signal: source.signal }));
    if (repair && lost !== undefined) source.guard.hold(lost);
    if (repair && lost === undefined) {
      const isGone = found && (await areGone(context, found, source.id, source.signal));
      if (found !== undefined && isGone !== undefined)
        source.guard.allow(isGone ? found.missing : openNumberSet());
      resending.set(source.id, openResending(context, source));
    }
    const { acknowledged: resources, missing, altered } = counts;
    const path = pathOf(source);
    const unjudged = found?.unjudged.get(source.id)?.rows ?? 0;
    const listed = found !== undefined;
    const files = await countFiles(context, source);
    report.source({ path, resources, missing, altered, ...files, unjudged, lost: lost ?? null, listed });
  }
  return resending;
}

/** Counts the files of a source by state, and its deletes. A source that was not compared with the disk yet is compared. */
async function countFiles(
  { ledger }: ActionContext,
  source: SourceSync,
): Promise<FileCounts & Pick<AuditedSource, "held" | "deletesRefused">> {
  ledger.flush();
  const row = ledger.sources.get(source.id);
  const found = source.isPlanned() ? undefined : await source.preview(row);
  const isHalted = found?.braked.halted === true || row.lost !== null || row.halted !== null;
  const work = found === undefined ? source.activity() : workOf(found.candidates);
  const { held, deletesRefused } = row;
  return { ...countVersions({ ...withWork(row, work), isHalted }), held, deletesRefused };
}

/** The work of a source that does not run yet. */
function workOf(candidates: readonly Candidate[]): SourceActivity {
  const count = (as: Counted): number =>
    candidates.filter(({ known }) => countedAs(known?.state) === as).length;
  const [agreed, failed] = [count("agreed"), count("failed")];
  return { backlog: agreed + count("nothing"), backlogAgreed: agreed, backlogFailed: failed, reading: 0 };
}

/**
 * Deletes a second resource of ours once the first was confirmed by its own answer: a stale list may show a first one
 * that is gone. Then the second replaces it. Returns false if both stay for now.
 */
async function settleClaim(
  context: ActionContext,
  { resource, claim, by }: Claimed,
  { source, path }: Owner,
): Promise<boolean> {
  const row = by === undefined ? undefined : context.ledger.drift.byDoc(by);
  const presence = row && (await askPresence(context, row, source.signal));
  if (presence === "unanswered") return false;
  if (row === undefined || presence === "there")
    return await deleteExtra(context, source, { path, docId: resource.docId, words: WORDS[claim] });
  const words = `it replaces ${row.docId}, which the service no longer has`;
  return await takeInstead(context, source, { row, resource, words }, source.signal);
}

const WORDS: Readonly<Record<Claimed["claim"], string>> = {
  upload: "the service has a second resource of the same upload",
  twin: "the service has an equal second resource",
  deleted: "the service has it again although it was deleted",
};

function scopeOf({ rules }: SourceSync): Scope {
  return { tier: rules.source.collection, ownerId: rules.source.ownerId };
}

function pathOf({ rules }: SourceSync): string {
  return rules.source.absolutePath;
}
