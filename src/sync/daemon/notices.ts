import { counted } from "../../lib/counted.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { blockersOf, type Blocker } from "../ledger/blockers.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Reports sources that start to wait for a person, and the end of their wait. */
export type Notices = ReturnType<typeof startNotices>;

/** The blockers of a source that were reported and are not over, by kind. */
export type Reported = ReadonlyMap<Blocker["kind"], string>;

/** The difference between the blockers of a source and the reported ones. */
export interface BlockerChanges {
  readonly started: readonly Blocker[];
  readonly ended: readonly Blocker["kind"][];
  readonly reported: Reported;
}

/**
 * A check waits until nothing has changed for this long: the writes of a pass are in the ledger after a fraction of it, and
 * the deletes of a burst are held one after another, as their paths settle.
 */
const QUIET_MS = 500;
/** A folder that keeps changing is checked after this long. */
const WAIT_MS_MAX = 10_000;

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
export function startNotices(parts: Parts, sources: DaemonSources) {
  const { ledger, warn, inform, lifecycle } = parts;
  const reported = new Map<number, Reported>();
  let timer: NodeJS.Timeout | undefined;
  let sinceMs = 0;

  const check = (): void => {
    timer = undefined;
    if (lifecycle.isEnding() || lifecycle.fatal() !== undefined) return;
    for (const source of sources.all()) {
      const row = parts.read(() => ledger.sources.get(source.id), undefined);
      if (row === undefined) return;
      // What is in the ledger before the first pass is of an earlier process: the folder may have returned.
      if (!source.isPlanned()) continue;
      const before = reported.get(source.id) ?? new Map<Blocker["kind"], string>();
      const changes = changesOf(blockersOf(row), before);
      reported.set(source.id, changes.reported);
      for (const kind of changes.ended) inform(`${row.path}: ${ENDED[kind]}`);
      for (const each of changes.started) warn(warningOf(row.path, each, row.held));
    }
  };
  return {
    /** Notes that something may have changed. */
    changed: (): void => {
      if (lifecycle.isEnding()) return;
      const nowMs = performance.now();
      if (timer === undefined) {
        sinceMs = nowMs;
        timer = setTimeout(check, QUIET_MS);
      } else if (nowMs - sinceMs < WAIT_MS_MAX - QUIET_MS) timer.refresh();
    },
    stop: (): void => clearTimeout(timer),
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
      ? `${counted(held, "delete is", "deletes are")} held: ${reason}`
      : `halted, nothing is sent: ${reason}`;
  return new KbsyncError(`${path}: ${words}`, {
    code: CODES[kind],
    subject: path,
    retryable: true,
    hint: remedy,
  });
}

function essence(reason: string): string {
  return reason.replaceAll(/[\d,]+/g, "0");
}
