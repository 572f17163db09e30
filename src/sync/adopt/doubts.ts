import { acknowledgeCreate, withSettings } from "../actions/acknowledge.ts";
import { storedAs } from "../actions/observe.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { askTitle } from "../reconcile-service/presence.ts";
import type { CreateIntent } from "../ledger/intents.ts";
import type { RelativePath } from "../plan/model.ts";
import type { Adoption, Settlement } from "../plan/settlement.ts";

/**
 * Creates that are settled and may have made a resource all the same, one that no list has shown yet: they were sent
 * again, or given up. What turns up of them becomes its file's resource where the file has none, and is deleted where
 * it has another one. See docs/EXACTLY-ONCE.md.
 */
export interface Doubts {
  /**
   * Looks for what they made, and for the last time when nothing can come any more. True: something was found, and what
   * becomes of it depends on an answer that is still to come; look again when the source is idle.
   */
  check(): Promise<boolean>;
  /** The same, some time later. */
  checkIn(ms: number): void;
  stop(): void;
}

export interface DoubtsOptions {
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "lookAgain" | "deleteLater">;
  readonly stopped: AbortSignal;
  /** One pass: what is left is for the next. */
  readonly once: boolean;
  /** The source left the configuration, and all that it has goes. */
  readonly isRemoval: boolean;
  /** Whether files of the source, or of another in its place, still look for their resources: one that seems too many may be theirs. */
  readonly isAdopting: () => boolean;
  /** Whether a file is being read or sent. */
  readonly isBusy: (path: RelativePath) => boolean;
  /** A clock that nobody sets. */
  readonly elapsedMs: () => number;
  /** What the list shows of creates; undefined if the service does not tell the collection's id. */
  readonly compare: (creates: readonly CreateIntent[]) => Promise<Settlement | undefined>;
}

/** Doubts wait this long for files that look for their resources; then twice as long, and so on, up to `ADOPTING_MS_MAX`. */
const ADOPTING_MS = 1000;
/** A file that cannot be read may stay so for days. */
const ADOPTING_MS_MAX = 60_000;
/** While a collection's id is unknown, or a resource has not answered yet, doubts wait this long; then twice as long, and so on. */
const WAIT_MS = 1000;
/** A file that the service refuses since may never be sent again: each question costs a list. */
const ANSWER_MS_MAX = 3_600_000;
/**
 * A doubt ends when it is this old and no doubt of its source made a resource for as long. A service may work on documents
 * one after another, on each for minutes, and on one whose client has left as on any other: while resources turn up, it may
 * have more to do. Counted by the timers' clock from when this process first saw the doubt: an intent may be a day older
 * than its last attempt, and the time of day may be set. One pass ends before that: passes count from the intent.
 */
const DOUBT_MS = 3_600_000;
/** First wait before a list is read again for a doubt; then as long as the youngest doubt is old. */
const LOOK_MS = 30_000;

/** Opens the doubts of a source. */
export function openDoubts(options: DoubtsOptions): Doubts {
  const { context, source, stopped, once, isRemoval, isAdopting, isBusy, elapsedMs, compare } = options;
  const { ledger, remote } = context;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = WAIT_MS;
  let adoptingMs = ADOPTING_MS;
  /** When doubts were first looked at, by their keys: the ledger gives ids again. */
  let doubtedSinceMs = new Map<string, number>();
  /** When a resource last turned up that no list had shown before. */
  let turnedUpMs = -Infinity;
  /** The newest entry of the activity when a resource was first seen that may be one too many. */
  let seenAt = new Map<string, number>();

  const wait = (maxMs: number): void => {
    checkIn(Math.min(maxMs, waitMs));
    waitMs = Math.min(maxMs, 2 * waitMs);
  };

  /** The resource that a doubt's file has, wherever the file is by now. */
  const keptOf = ({
    path,
    docId,
  }: CreateIntent): { id: number; docId: string | null; path: string } | undefined => {
    const row = docId === null ? undefined : ledger.drift.byDoc(docId);
    return row ?? ledger.files.living(source.id, path);
  };

  /**
   * Whether the resource that is to stay exists, by its own word and not by a list's: it is read, or it has answered a
   * change since the other one was seen. If neither, it is sent once more, and asked again when that is answered; where the
   * file cannot be sent, its title alone is.
   */
  const hasAnswered = async (id: number, docId: string, since: number): Promise<boolean> => {
    const reply = await remote.read(docId, context.signal);
    if (reply.kind === "done" && !reply.value.isDeleted) return true;
    ledger.flush();
    // A service without this addition answers that there is none, as it does of any address that it does not know.
    if (reply.kind !== "done" && ledger.drift.answeredSince(since, docId)) return true;
    const known = ledger.drift.byDoc(docId);
    // A file that cannot be sent now, or not any more, keeps its resource all the same.
    if (known !== undefined && known.state !== "agreed" && known.state !== "unsure")
      return (await askTitle(context, known, context.signal)) === "there";
    let path: string | undefined;
    await ledger.write(() => {
      const row = ledger.files.get(id);
      if (row?.docId !== docId) return;
      // What is on its way is about to answer. To plan it anew would send it under another key, again and again where the
      // service takes longer than the time between two questions.
      if (row.state === "unsure" && isBusy(row.path)) return;
      if (row.state === "agreed") ledger.files.setState(id, "unsure");
      path = row.path;
    });
    if (path !== undefined) source.lookAgain(path);
    return false;
  };

  /**
   * Decides on a resource that a doubt has made. False: it is not known yet which one stays. One that has neither our
   * description nor what the service made of it in the file's own resource is somebody else's, and is never deleted.
   */
  const decide = async (doubt: CreateIntent, found: Adoption): Promise<boolean> => {
    ledger.flush();
    const since = seenAt.get(found.docId) ?? ledger.drift.lastActivity();
    seenAt.set(found.docId, since);
    const kept = keptOf(doubt);
    const isGone = kept === undefined && doubt.docId !== null && ledger.intents.isDeleted(doubt.docId);
    if (isRemoval || isGone) {
      if (found.described) await remove(doubt, found.docId);
      return true;
    }
    if (kept === undefined || kept.docId === null) {
      if (!(await adopt(doubt, found))) return false;
      // It is compared with its file again, which may have changed since, or be gone.
      source.lookAgain(doubt.path);
      return true;
    }
    if (!found.described && ledger.drift.byDoc(kept.docId)?.storedLabel !== found.label) return true;
    if (!(await hasAnswered(kept.id, kept.docId, since))) return false;
    ledger.flush();
    // As it is now: what has answered must still be what the file has.
    if (keptOf(doubt)?.docId !== kept.docId) return false;
    await remove(doubt, found.docId);
    return true;
  };

  /** False: the file was given another resource meanwhile. */
  const adopt = async (doubt: CreateIntent, found: Adoption): Promise<boolean> => {
    const { docId, exact, label, settings, warning } = found;
    let isFree = true;
    await ledger.write(() => {
      if (!isOpen(doubt)) return;
      isFree = (keptOf(doubt)?.docId ?? null) === null;
      if (!isFree) return;
      const create = withSettings(doubt, settings);
      const left = acknowledgeCreate(ledger, create, docId, exact, storedAs(label, doubt.observed));
      if (left === "taken") return;
      ledger.files.warn(docId, warning);
      if (left !== undefined) source.deleteLater(left);
    });
    return isFree;
  };

  const remove = async ({ path }: CreateIntent, docId: string): Promise<void> => {
    await ledger.write(() => {
      if (ledger.files.ownsDoc(docId)) return;
      source.deleteLater({ id: ledger.intents.delete(source.id, path, docId), path, docId });
    });
  };

  /** One that was just given its resource is gone, and its number may be another's. */
  const isOpen = ({ key }: CreateIntent): boolean =>
    ledger.intents.doubts(source.id).some((each) => each.key === key);

  let checking: Promise<boolean> | undefined;
  let nextCheck: Promise<boolean> | undefined;
  /**
   * One look at a time: what another one has settled meanwhile would be settled again, under a number that is another
   * create's by then. Who asks while one goes on gets the next.
   */
  const check = async (): Promise<boolean> => {
    clearTimeout(timer);
    nextCheck ??= checkNext();
    return nextCheck;
  };
  const checkNext = async (): Promise<boolean> => {
    await checking?.catch(() => undefined); // Reported to who asked for it.
    nextCheck = undefined;
    checking = lookAtDoubts();
    return checking;
  };
  const lookAtDoubts = async (): Promise<boolean> => {
    stopped.throwIfAborted();
    ledger.flush();
    const doubts = ledger.intents.doubts(source.id);
    if (doubts.length === 0) {
      seenAt.clear();
      return false;
    }
    if (isAdopting()) {
      // A look at any file has it tried again.
      source.lookAgain(doubts[0]?.path ?? "");
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
      wait(LOOK_MS);
      return false;
    }
    // A twin whose create is on its way, of whatever source, has a resource that no row owns yet, which must not be taken for that.
    const travelling = new Set(ledger.intents.allCreates().map(twinKey));
    const safe = new Map(
      doubts.filter((doubt) => !travelling.has(twinKey(doubt))).map((doubt) => [doubt.id, doubt]),
    );
    const undecided = new Set<string>();
    for (const found of [...settlement.adopted, ...settlement.extra]) {
      const doubt = safe.get(found.id);
      if (doubt === undefined) continue;
      if (!seenAt.has(found.docId)) turnedUpMs = nowMs;
      if (!(await decide(doubt, found))) undecided.add(doubt.key);
    }
    const quietMs = once ? Infinity : nowMs - turnedUpMs;
    const ageMs = ({ key, atMs }: CreateIntent): number =>
      once ? startedMs - atMs : nowMs - (doubtedSinceMs.get(key) ?? nowMs);
    // Its text tells whether it is a second one, once the service shows it.
    const queued = new Set(settlement.queued);
    const isUnclear = ({ id, key }: CreateIntent): boolean => queued.has(id) || undecided.has(key);
    const over = new Set(
      [...safe.values()]
        .filter((doubt) => Math.min(ageMs(doubt), quietMs) >= DOUBT_MS && !isUnclear(doubt))
        .map(({ key }) => key),
    );
    await ledger.write(() => {
      // As they are now: one that was just given its resource is gone, and its number may be another's.
      for (const { id, key } of ledger.intents.doubts(source.id))
        if (over.has(key)) ledger.intents.remove(id);
    });
    const isLong = doubts.some((doubt) => queued.has(doubt.id) && ageMs(doubt) >= DOUBT_MS);
    if (isLong) waitMs = Math.max(waitMs, DOUBT_MS / 4);
    else if (undecided.size === 0) waitMs = WAIT_MS;
    const youngestMs = Math.min(...doubts.map(ageMs));
    // A document may be worked on for hours.
    if (isLong || undecided.size > 0) wait(ANSWER_MS_MAX);
    else if (over.size < doubts.length)
      checkIn(Math.max(LOOK_MS, Math.min(youngestMs, DOUBT_MS - Math.min(youngestMs, quietMs))));
    return undecided.size > 0;
  };
  const checkIn = (ms: number): void => {
    clearTimeout(timer);
    if (stopped.aborted) return;
    timer = setTimeout(() => {
      check().catch(() => undefined); // Ended by the stop; the doubts are in the ledger.
    }, ms);
    timer.unref();
  };

  return { check, checkIn, stop: () => clearTimeout(timer) };
}

/** Creates with one key cannot be told apart in the list. */
export function twinKey({ observed }: CreateIntent): string {
  const { kind, tier, ownerId } = observed.shape;
  const what =
    kind === "file"
      ? ["u", observed.fileUrl ?? ""]
      : ["s", observed.title, observed.fileUrl ?? "", observed.digest];
  return [tier, ownerId, ...what].join("\n");
}
