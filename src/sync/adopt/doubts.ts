import { acknowledgeCreate, asFound } from "../actions/acknowledge.ts";
import { storedAs } from "../actions/observe.ts";
import { type ActionContext, type ActionSource, reportCompared } from "../actions/context.ts";
import { askTitle } from "../reconcile-service/presence.ts";
import type { CreateIntent } from "../ledger/intents.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Adoption, Settlement } from "../plan/settlement.ts";

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
/** A file that the service has refused since may never be sent again, and each check costs a list. */
const ANSWER_MS_MAX = 3_600_000;
/**
 * A doubt ends when it is this old and no doubt of its source made a resource for as long. A service may process
 * documents one after another, each for minutes, including those whose client has left. While resources turn up, it may
 * have more to do. The age counts by the timers' clock from when this process first saw the doubt: an intent may be a
 * day older than its last attempt, and the time of day may be set. A single pass ends earlier; passes count from the
 * intent, by the service's clock.
 */
const DOUBT_MS = 3_600_000;
/** First wait before a list is read again for a doubt. Later waits are as long as the age of the youngest doubt. */
const CHECK_MS = 30_000;

/** Opens the doubts of a source. */
export function openDoubts(options: DoubtsOptions): Doubts {
  const { context, source, stopped, once, isRemoval, isAdopting, isBusy, elapsedMs, compare } = options;
  const { ledger, remote } = context;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = WAIT_MS;
  let adoptingMs = ADOPTING_MS;
  /** When doubts were first checked, by their keys: the ledger reuses ids. */
  let doubtedSinceMs = new Map<string, number>();
  /** When a resource that no list had shown before last turned up. */
  let turnedUpMs = -Infinity;
  /** The newest activity entry when a possibly surplus resource was first seen. */
  let seenAt = new Map<string, number>();

  const wait = (maxMs: number): void => {
    checkIn(Math.min(maxMs, waitMs));
    waitMs = Math.min(maxMs, 2 * waitMs);
  };

  /** Returns the resource of a doubt's file, wherever the file is by now. */
  const ownResourceOf = ({
    path,
    docId,
  }: CreateIntent): { id: number; docId: string | null; path: string } | undefined => {
    const row = docId === null ? undefined : ledger.drift.byDoc(docId);
    return row ?? ledger.files.living(source.id, path);
  };

  /**
   * Reports whether the resource that will stay exists, by its own answer and not by a list: it can be read, or it has
   * answered a change since the other one was seen. Otherwise the file is sent once more, and the check is repeated
   * when that is answered. If the file cannot be sent, only its title is.
   */
  const hasAnswered = async (id: number, docId: string, since: number): Promise<boolean> => {
    const reply = await remote.read(docId, context.signal);
    if (reply.kind === "done" && !reply.value.isDeleted) return true;
    ledger.flush();
    // A service without this addition answers 404, as for any address it does not know.
    if (reply.kind !== "done" && ledger.drift.answeredSince(since, docId)) return true;
    const known = ledger.drift.byDoc(docId);
    // A file that cannot be sent now, or no longer, keeps its resource nevertheless.
    if (known !== undefined && known.state !== "agreed" && known.state !== "unsure")
      return (await askTitle(context, known, context.signal)) === "there";
    let path: string | undefined;
    await ledger.write(() => {
      const row = ledger.files.get(id);
      if (row?.docId !== docId) return;
      // The request in flight is about to be answered. Planning it anew would send it under another key, again and
      // again if the service takes longer than the time between two checks.
      if (row.state === "unsure" && isBusy(row.path)) return;
      if (row.state === "agreed") ledger.files.setState(id, "unsure");
      path = row.path;
    });
    if (path !== undefined) source.checkAgain(path);
    return false;
  };

  /**
   * Decides on a resource that a doubt has made. Returns false while it is unknown which one stays. A resource with
   * neither our description nor what the service made of that in the file's own resource is somebody else's, and is
   * never deleted.
   */
  const decide = async (doubt: CreateIntent, found: Adoption): Promise<boolean> => {
    ledger.flush();
    const since = seenAt.get(found.docId) ?? ledger.drift.lastActivity();
    seenAt.set(found.docId, since);
    const own = ownResourceOf(doubt);
    const isGone = own === undefined && doubt.docId !== null && ledger.intents.isDeleted(doubt.docId);
    if (isRemoval || isGone) {
      if (found.described) await remove(doubt, found.docId);
      return true;
    }
    if (own === undefined || own.docId === null) {
      if (!(await adopt(doubt, found))) return false;
      // It is compared with its file again, which may have changed since or be gone.
      source.checkAgain(doubt.path);
      return true;
    }
    if (!found.described && ledger.drift.byDoc(own.docId)?.storedLabel !== found.label) return true;
    if (!(await hasAnswered(own.id, own.docId, since))) return false;
    ledger.flush();
    // Read again: the confirmed resource must still be the file's.
    if (ownResourceOf(doubt)?.docId !== own.docId) return false;
    await remove(doubt, found.docId);
    return true;
  };

  /** Returns false if the file received another resource meanwhile. */
  const adopt = async (doubt: CreateIntent, found: Adoption): Promise<boolean> => {
    const { docId, exact, label, warning } = found;
    let isFree = true;
    let isAdopted = false;
    await ledger.write(() => {
      if (!isOpen(doubt)) return;
      isFree = (ownResourceOf(doubt)?.docId ?? null) === null;
      if (!isFree) return;
      const create = asFound(doubt, found);
      const left = acknowledgeCreate(ledger, create, docId, exact, storedAs(label, doubt.observed));
      if (left === "taken") return;
      isAdopted = true;
      ledger.files.warn(docId, warning);
      if (left !== undefined) source.deleteLater(left);
    });
    if (isAdopted) reportCompared(context, source, doubt.path, docId);
    return isFree;
  };

  const remove = async ({ path }: CreateIntent, docId: string): Promise<void> => {
    await ledger.write(() => {
      if (ledger.files.ownsDoc(docId)) return;
      source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
    });
  };

  /** A doubt whose resource was just adopted is gone, and its id may be another's. */
  const isOpen = ({ key }: CreateIntent): boolean =>
    ledger.intents.doubts(source.id).some((each) => each.key === key);

  let checking: Promise<boolean> | undefined;
  let nextCheck: Promise<boolean> | undefined;
  /**
   * Runs one check at a time. Otherwise a second check would settle again what the first one has settled, under an id
   * that is another create's by then. A caller that arrives during a check gets the next one.
   */
  const check = async (): Promise<boolean> => {
    clearTimeout(timer);
    nextCheck ??= checkNext();
    return nextCheck;
  };
  const checkNext = async (): Promise<boolean> => {
    await checking?.catch(() => undefined); // Reported to the caller that requested it.
    nextCheck = undefined;
    checking = checkDoubts();
    return checking;
  };
  const checkDoubts = async (): Promise<boolean> => {
    stopped.throwIfAborted();
    ledger.flush();
    const doubts = ledger.intents.doubts(source.id);
    if (doubts.length === 0) {
      seenAt.clear();
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
    // A twin whose create is in flight, in whatever source, has a resource that no row owns yet. That must not be
    // mistaken for this one's.
    const inFlight = new Set(ledger.intents.allCreates().map(twinKey));
    const safe = new Map(
      doubts.filter((doubt) => !inFlight.has(twinKey(doubt))).map((doubt) => [doubt.id, doubt]),
    );
    const undecided = new Set<string>();
    for (const found of [...settlement.adopted, ...settlement.extra]) {
      const doubt = safe.get(found.id);
      if (doubt === undefined) continue;
      if (!seenAt.has(found.docId)) turnedUpMs = nowMs;
      if (!(await decide(doubt, found))) undecided.add(doubt.key);
    }
    const quietMs = once ? Infinity : nowMs - turnedUpMs;
    const ageMs = (doubt: CreateIntent): number =>
      once ? serviceAgeMs(context, doubt, startedMs) : nowMs - (doubtedSinceMs.get(doubt.key) ?? nowMs);
    // Its text decides whether it is a second one, once the service shows it.
    const queued = new Set(settlement.queued);
    const isUnclear = ({ id, key }: CreateIntent): boolean => queued.has(id) || undecided.has(key);
    const over = new Set(
      [...safe.values()]
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
    if (isLong || undecided.size > 0) wait(ANSWER_MS_MAX);
    else if (over.size < doubts.length)
      checkIn(Math.max(CHECK_MS, Math.min(youngestMs, DOUBT_MS - Math.min(youngestMs, quietMs))));
    return undecided.size > 0;
  };
  const checkIn = (ms: number): void => {
    clearTimeout(timer);
    if (stopped.aborted) return;
    timer = setTimeout(() => {
      check().catch(() => undefined); // The stop ended it; the doubts are in the ledger.
    }, ms);
    timer.unref();
  };

  return { check, checkIn, stop: () => clearTimeout(timer) };
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

/** Returns a key that is equal for creates that the list cannot distinguish. */
export function twinKey({ observed }: CreateIntent): string {
  const { kind, tier, ownerId } = observed.shape;
  const what =
    kind === "file"
      ? ["u", observed.fileUrl ?? ""]
      : ["s", observed.title, observed.fileUrl ?? "", observed.digest];
  return [tier, ownerId, ...what].join("\n");
}
