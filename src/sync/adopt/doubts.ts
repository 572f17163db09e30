import type { ActionContext, ActionSource } from "../actions/context.ts";
import { openDoubtedResources } from "./doubted-resources.ts";
import type { CreateIntent } from "../ledger/intents/creates.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Settlement } from "../plan/settlement.ts";

/**
 * Creates that are settled but may still have made a resource that no list has shown yet, because they were sent again
 * or given up. A resource of theirs that turns up becomes its file's resource if the file has none, and is deleted if
 * it has another. See docs/EXACTLY-ONCE.md.
 */
export interface Doubts {
  /**
   * Checks for resources they made, for the last time when none can appear any more. Returns true if something was
   * found whose fate depends on an answer that is still to come: check again when the source is idle.
   */
  check(): Promise<boolean>;
  /** The same, some time later. */
  checkIn(ms: number): void;
  /** A request for the resource has succeeded. If a doubt waits for that, it is checked again soon. */
  answered(docId: string): void;
  stop(): void;
}

export interface DoubtsOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "checkAgain" | "deleteLater">;
  readonly stopped: AbortSignal;
  /** One pass: leaves the rest to the next. */
  readonly once: boolean;
  /** The source left the configuration, and all its resources are being deleted. */
  readonly isRemoval: boolean;
  /** Reports whether the source, or another in its scope, still has candidates: a surplus resource may be theirs. */
  readonly isAdopting: () => boolean;
  /** Reports whether a file is being read or sent. */
  readonly isBusy: (path: RelativePath) => boolean;
  /** A monotonic clock. */
  readonly elapsedMs: () => number;
  /** Returns what the list shows of creates; undefined if the service does not supply the collection's id. */
  readonly compare: (creates: readonly CreateIntent[]) => Promise<Settlement | undefined>;
}

/** Doubts wait this long for candidates, then twice as long, and so on up to `ADOPTING_MS_MAX`. */
const ADOPTING_MS = 1000;
/** A file may be unreadable for days. */
const ADOPTING_MS_MAX = 60_000;
/**
 * While a collection's id is unknown, or a resource is unconfirmed, doubts wait this long, then twice as long, and so
 * on.
 */
const WAIT_MS = 1000;
/** After a resource has answered that a doubt waits for, the list is read this soon. Others may answer meanwhile. */
const ANSWERED_MS = 1000;
/** A file that the service has refused since may never be sent again, and each check costs a list. */
const ANSWER_MS_MAX = 3_600_000;
/**
 * A doubt ends when it is this old, and for the same time no doubt of its source made a resource and the service reported no
 * request in progress. A service may process documents one after another, each for minutes, including those whose client has
 * left. While resources turn up, or requests are in progress, it may have more to do. The age counts by the timers' clock from
 * when this process first saw the doubt: an intent may be a day older than its last attempt, and the time of day may be set. A
 * single pass ends earlier; passes count from the intent, by the service's clock.
 */
const DOUBT_MS = 3_600_000;
/** First wait before a list is read again for a doubt. Later waits are as long as the age of the youngest doubt. */
const CHECK_MS = 30_000;

/** Opens the doubts of a source. */
export function openDoubts(options: DoubtsOptions): Doubts {
  const { context, source, stopped, once, isRemoval, isAdopting, isBusy, elapsedMs, compare } = options;
  const { ledger } = context;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = WAIT_MS;
  let adoptingMs = ADOPTING_MS;
  /** When doubts were first checked, by their keys: the ledger reuses ids. */
  let doubtedSinceMs = new Map<string, number>();
  /** A resource answered while a check waits for it: the check that runs, or the next one. */
  let isAnswered = false;
  const resources = openDoubtedResources({ context, source, isRemoval, isBusy });

  const wait = (maxMs: number): void => {
    checkIn(Math.min(maxMs, waitMs));
    waitMs = Math.min(maxMs, 2 * waitMs);
  };

  const check = async (): Promise<boolean> => {
    clearTimeout(timer);
    return checkInTurn();
  };
  const checkDoubts = async (): Promise<boolean> => {
    stopped.throwIfAborted();
    ledger.flush();
    const doubts = ledger.intents.doubts(source.id);
    if (doubts.length === 0) {
      resources.forget();
      return false;
    }
    if (isAdopting()) {
      // A check of any file has it tried again. That of a file in flight would give up its request, which is then in doubt
      // once more: the file would be read and sent each second.
      const resting = doubts.find(({ path }) => !isBusy(path));
      if (resting !== undefined) source.checkAgain(resting.path);
      checkIn(adoptingMs);
      adoptingMs = Math.min(ADOPTING_MS_MAX, 2 * adoptingMs);
      return false;
    }
    adoptingMs = ADOPTING_MS;
    const nowMs = elapsedMs();
    doubtedSinceMs = new Map(doubts.map(({ key }) => [key, doubtedSinceMs.get(key) ?? nowMs]));
    const startedMs = context.now();
    const settlement = await compare(doubts);
    if (settlement === undefined) {
      wait(CHECK_MS);
      return false;
    }
    isAnswered = false;
    const { safe, undecided } = await resources.decide(doubts, settlement, nowMs);
    const quietMs = once ? Infinity : nowMs - Math.max(resources.turnedUpMs(), context.underWay.seenMs);
    const ageMs = (doubt: CreateIntent): number =>
      once ? serviceAgeMs(context, doubt, startedMs) : nowMs - (doubtedSinceMs.get(doubt.key) ?? nowMs);
    // Its text decides whether it is a second one, once the service shows it.
    const queued = new Set(settlement.queued);
    const isUnclear = ({ id, key }: CreateIntent): boolean => queued.has(id) || undecided.has(key);
    const over = new Set(
      safe
        .filter((doubt) => Math.min(ageMs(doubt), quietMs) >= DOUBT_MS && !isUnclear(doubt))
        .map(({ key }) => key),
    );
    await ledger.write(() => {
      // Read again: a doubt whose resource was just adopted is gone, and its id may be another's.
      for (const { id, key } of ledger.intents.doubts(source.id))
        if (over.has(key)) ledger.intents.remove(id);
    });
    const isLong = doubts.some((doubt) => queued.has(doubt.id) && ageMs(doubt) >= DOUBT_MS);
    if (isLong) waitMs = Math.max(waitMs, DOUBT_MS / 4);
    else if (undecided.size === 0) waitMs = WAIT_MS;
    const youngestMs = Math.min(...doubts.map(ageMs));
    // A document may be processed for hours.
    if (isAnswered) checkIn(ANSWERED_MS);
    else if (isLong || undecided.size > 0) wait(ANSWER_MS_MAX);
    else if (over.size < doubts.length)
      checkIn(Math.max(CHECK_MS, Math.min(youngestMs, DOUBT_MS - Math.min(youngestMs, quietMs))));
    return undecided.size > 0;
  };
  const checkInTurn = oneAtATime(checkDoubts);
  const checkIn = (ms: number): void => {
    clearTimeout(timer);
    if (stopped.aborted) return;
    timer = setTimeout(() => {
      check().catch(() => undefined); // The stop ended it; the doubts are in the ledger.
    }, ms);
    timer.unref();
  };

  return {
    check,
    checkIn,
    answered: (docId) => {
      if (once || !resources.awaits(docId)) return;
      isAnswered = true;
      checkIn(ANSWERED_MS);
    },
    stop: () => clearTimeout(timer),
  };
}

/**
 * Runs one check at a time. Otherwise a second check would settle again what the first one has settled, under an id that is
 * another create's by then. A caller that arrives during a check gets the next one.
 */
function oneAtATime<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const runNext = async (): Promise<T> => {
    await running?.catch(() => undefined); // Reported to the caller that requested it.
    next = undefined;
    running = run();
    return running;
  };
  return () => (next ??= runNext());
}

/** Returns a create's age by the service's clock: ours may have been set since its intent was written. */
export function serviceAgeMs(
  { ledger }: Pick<ActionContext, "ledger">,
  { atMs, clockOffsetMs }: CreateIntent,
  nowMs: number,
): number {
  const offsetMs = ledger.intents.clockOffset() ?? 0;
  return nowMs + offsetMs - (atMs + (clockOffsetMs ?? offsetMs));
}
