import { KbsyncError } from "../../lib/failure.ts";
import { blockersOf, type Blocker } from "../ledger/blockers.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Reports sources that start to wait for a person, and the end of their wait. */
export type Notices = ReturnType<typeof startNotices>;

type Kind = Blocker["kind"];

/** By then the writes of a pass are in the ledger, and the deletes of a burst are held, one after another. */
const WAIT_MS = 1000;

/**
 * Compares the blockers of a source with the reported ones, by kind. A reason in which only numbers changed is not new:
 * otherwise a folder that keeps shrinking would be reported at each check. Pure.
 */
export function changesOf(blockers: readonly Blocker[], reported: ReadonlyMap<Kind, string>) {
  const essence = ({ reason }: Blocker): string => reason.replaceAll(/\d+/g, "0");
  const now: ReadonlyMap<Kind, string> = new Map(blockers.map((each) => [each.kind, essence(each)]));
  return {
    started: blockers.filter((each) => reported.get(each.kind) !== essence(each)),
    ended: [...reported.keys()].filter((kind) => !now.has(kind)),
    reported: now,
  };
}

/** Starts reporting for open sources. Blockers of an earlier process are reported after the source's first pass. */
export function startNotices(parts: Parts, sources: DaemonSources) {
  const { ledger, warn, inform, lifecycle } = parts;
  const reported = new Map<number, ReadonlyMap<Kind, string>>();
  let timer: NodeJS.Timeout | undefined;

  const check = (): void => {
    timer = undefined;
    if (lifecycle.isEnding() || lifecycle.fatal() !== undefined) return;
    for (const source of sources.all()) {
      const row = parts.read(() => ledger.sources.get(source.id), undefined);
      if (row === undefined) return;
      // What is in the ledger before the first pass is of an earlier process: the folder may have returned.
      if (!source.isPlanned()) continue;
      const changes = changesOf(blockersOf(row), reported.get(source.id) ?? new Map());
      reported.set(source.id, changes.reported);
      for (const kind of changes.ended) inform(`${row.path}: ${WORDS[kind].ended}`);
      for (const each of changes.started) warn(warningOf(row.path, each, row.held));
    }
  };
  return {
    /** Notes that something may have changed. */
    changed: (): void => {
      if (!lifecycle.isEnding()) timer ??= setTimeout(check, WAIT_MS);
    },
    stop: (): void => clearTimeout(timer),
  };
}

const WORDS: Readonly<Record<Kind, { readonly code: string; readonly ended: string }>> = {
  lost: {
    code: "service_lost",
    ended:
      "the service has its documents again or gives clear answers, or the loss was approved: the source is synced again",
  },
  halted: {
    code: "source_halted",
    ended: "the folder is back, or its replacement was approved: the source is synced again",
  },
  held: { code: "deletes_held", ended: "no deletes are held now" },
};

function warningOf(path: string, { kind, reason, remedy }: Blocker, held: number): KbsyncError {
  const words =
    kind === "held"
      ? `${held} ${held === 1 ? "delete is" : "deletes are"} held: ${reason}`
      : `halted, nothing is sent: ${reason}`;
  const facts = { code: WORDS[kind].code, subject: path, retryable: true, hint: remedy };
  return new KbsyncError(`${path}: ${words}`, facts);
}
