import { KbsyncError } from "../../lib/failure.ts";
import { blockersOf, type Blocker } from "../ledger/blockers.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Reports sources that start to wait for a person, and the end of their wait. */
export interface Notices {
  /** Notes that something may have changed. */
  changed(): void;
  stop(): void;
}

/** The blockers of a source that were reported and are not over, by kind. */
export type Reported = ReadonlyMap<Blocker["kind"], string>;

/** The difference between the blockers of a source and the reported ones. */
export interface BlockerChanges {
  readonly started: readonly Blocker[];
  readonly ended: readonly Blocker["kind"][];
  readonly reported: Reported;
}

/**
 * Interval of the checks. The writes of a pass are in the ledger after a fraction of it, so a check that starts this long
 * after a change sees it.
 */
const CHECK_MS = 500;
/**
 * Most checks that a growing number of held deletes postpones its warning: the deletes of a burst are held as their paths settle, over
 * seconds, and a folder that keeps shrinking must be reported nevertheless.
 */
const GROWING_CHECKS_MAX = 20;

/**
 * Compares the blockers of a source with the reported ones. A reason in which only numbers changed is not new: otherwise a
 * folder that keeps shrinking would be reported at each check. Pure.
 */
export function changesOf(blockers: readonly Blocker[], reported: Reported): BlockerChanges {
  const now = new Map(blockers.map(({ kind, reason }) => [kind, essence(reason)]));
  const started = blockers.filter(({ kind, reason }) => reported.get(kind) !== essence(reason));
  return { started, ended: [...reported.keys()].filter((kind) => !now.has(kind)), reported: now };
}

/** Starts reporting for open sources. Blockers of an earlier process are reported after the source's first pass. */
export function startNotices(parts: Parts, sources: DaemonSources): Notices {
  const { ledger, warn, inform, lifecycle } = parts;
  const reported = new Map<number, Reported>();
  /** Blockers in the ledger at the start, of sources without a pass since: the folder may have returned. */
  const left = new Map(
    sources.all().map(({ id }) => [id, blockersOf(ledger.sources.get(id)).map(keyOf)] as const),
  );
  const isGrowing = openGrowth();
  let timer: NodeJS.Timeout | undefined;
  let again = false;

  const check = (): void => {
    timer = undefined;
    if (lifecycle.isEnding() || lifecycle.fatal() !== undefined) return;
    if (again) arm();
    for (const source of sources.all()) {
      const row = parts.read(() => ledger.sources.get(source.id), undefined);
      if (row === undefined) return;
      if (source.isIdle()) left.delete(source.id);
      const old = left.get(source.id) ?? [];
      const before = reported.get(source.id) ?? new Map<Blocker["kind"], string>();
      const postpones = isGrowing(source.id, row.held) && !before.has("held");
      if (postpones && timer === undefined) arm();
      const blockers = blockersOf(row).filter(
        (each) => !old.includes(keyOf(each)) && !(postpones && each.kind === "held"),
      );
      const changes = changesOf(blockers, before);
      reported.set(source.id, changes.reported);
      for (const kind of changes.ended) inform(`${row.path}: ${ENDED[kind]}`);
      for (const each of changes.started) warn(warningOf(row.path, each, row.held));
    }
  };
  const arm = (): void => {
    again = false;
    timer = setTimeout(check, CHECK_MS);
  };
  return {
    changed: () => {
      // A change while a check is scheduled may be committed after it.
      if (timer !== undefined) again = true;
      else if (!lifecycle.isEnding()) arm();
    },
    stop: () => clearTimeout(timer),
  };
}

/** Returns a function that decides at each check whether the number of held deletes of a source still grows. */
export function openGrowth(): (source: number, held: number) => boolean {
  const seen = new Map<number, { readonly held: number; readonly checks: number }>();
  return (source, held) => {
    const before = seen.get(source) ?? { held: 0, checks: 0 };
    if (held <= before.held || before.checks >= GROWING_CHECKS_MAX) {
      seen.set(source, { held, checks: held === 0 ? 0 : before.checks });
      return false;
    }
    seen.set(source, { held, checks: before.checks + 1 });
    return true;
  };
}

const ENDED: Readonly<Record<Blocker["kind"], string>> = {
  lost: "the service has its documents again or gives clear answers, or the loss was approved: the source is synced again",
  halted: "the folder is back, or its replacement was approved: the source is synced again",
  held: "no deletes are held now",
};

const CODES: Readonly<Record<Blocker["kind"], string>> = {
  lost: "service_lost",
  halted: "source_halted",
  held: "deletes_held",
};

function warningOf(path: string, { kind, reason, remedy }: Blocker, held: number): KbsyncError {
  const words =
    kind === "held"
      ? `${held} ${held === 1 ? "delete is" : "deletes are"} held: ${reason}`
      : `halted, nothing is sent: ${reason}`;
  return new KbsyncError(`${path}: ${words}`, {
    code: CODES[kind],
    subject: path,
    retryable: true,
    hint: remedy,
  });
}

function keyOf({ kind, reason }: Blocker): string {
  return `${kind}: ${essence(reason)}`;
}

function essence(reason: string): string {
  return reason.replaceAll(/\d+/g, "0");
}
