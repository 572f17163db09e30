import { KbsyncError } from "../../lib/failure.ts";
import { standstillsOf, type Standstill } from "../ledger/standstill.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** Tells of sources that come to wait for a person, and of their end. */
export interface Notices {
  /** Something may have changed. */
  changed(): void;
  stop(): void;
}

/** What of a source was told of and is not over, by its kind. */
export type Told = ReadonlyMap<Standstill["kind"], string>;

/** What is to be said. */
export interface News {
  readonly begun: readonly Standstill[];
  readonly over: readonly Standstill["kind"][];
  readonly told: Told;
}

/**
 * How often it is looked, in milliseconds. What a pass writes is in the ledger after a fraction of that, so a look
 * that begins this long after a change sees it.
 */
const LOOK_MS = 500;

/**
 * What to say of a source, given what was said of it before. A reason whose numbers alone have changed is no news: a
 * folder that goes on shrinking would be told of at each look. Pure.
 */
export function newsOf(standstills: readonly Standstill[], told: Told): News {
  const now = new Map(standstills.map(({ kind, reason }) => [kind, essence(reason)]));
  const begun = standstills.filter(({ kind, reason }) => told.get(kind) !== essence(reason));
  return { begun, over: [...told.keys()].filter((kind) => !now.has(kind)), told: now };
}

/** Starts telling of sources that are open. What an earlier process left is told when the source has been looked at. */
export function startNotices(parts: Parts, sources: DaemonSources): Notices {
  const { ledger, warn, inform, life } = parts;
  const told = new Map<number, Told>();
  /** What the ledger said at the start of sources that were not looked at yet: the folder may be back since. */
  const left = new Map(
    sources.all().map(({ id }) => [id, standstillsOf(ledger.sources.get(id)).map(keyOf)] as const),
  );
  let timer: NodeJS.Timeout | undefined;
  let again = false;

  const look = (): void => {
    timer = undefined;
    if (life.isEnding() || life.fatal() !== undefined) return;
    if (again) arm();
    for (const source of sources.all()) {
      const row = parts.read(() => ledger.sources.get(source.id), undefined);
      if (row === undefined) return;
      if (source.isIdle()) left.delete(source.id);
      const old = left.get(source.id) ?? [];
      const standstills = standstillsOf(row).filter((each) => !old.includes(keyOf(each)));
      const news = newsOf(standstills, told.get(source.id) ?? new Map<Standstill["kind"], string>());
      told.set(source.id, news.told);
      for (const kind of news.over) inform(`${row.path}: ${OVER[kind]}`);
      for (const each of news.begun) warn(warningOf(row.path, each, row.held));
    }
  };
  const arm = (): void => {
    again = false;
    timer = setTimeout(look, LOOK_MS);
  };
  return {
    changed: () => {
      // One that comes while a look is due may be written down after it.
      if (timer !== undefined) again = true;
      else if (!life.isEnding()) arm();
    },
    stop: () => clearTimeout(timer),
  };
}

const OVER: Readonly<Record<Standstill["kind"], string>> = {
  lost: "the service has its resources again, or its answers are clear, or a person agreed: sending goes on",
  halted: "the folder is there again, or a person agreed: the source goes on",
  held: "no deletes are held any more",
};

const CODES: Readonly<Record<Standstill["kind"], string>> = {
  lost: "service_lost",
  halted: "source_halted",
  held: "deletes_held",
};

function warningOf(path: string, { kind, reason, remedy }: Standstill, held: number): KbsyncError {
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

function keyOf({ kind, reason }: Standstill): string {
  return `${kind}: ${essence(reason)}`;
}

function essence(reason: string): string {
  return reason.replaceAll(/\d+/g, "0");
}
