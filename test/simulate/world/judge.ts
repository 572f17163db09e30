import { basename } from "node:path";
import type { HoldKind } from "../../../src/sync/ledger/sources/rows.ts";
import type { Clock } from "../virtual/clock.ts";
import { GROWING, SECRET } from "../worlds/folder.ts";
import { OTHER_FILE, SOURCE_ROOT } from "./disk.ts";
import { bodyOf, placeOf, SECOND_PLACE, type Expectations, type Expected, type Owners } from "./expected.ts";
import type { Answer, Resource, SentRequest, Service } from "./service.ts";

/** What must not happen, by kind, and what happened. */
export interface Failure {
  readonly kind: string;
  readonly words: string;
}

/** Watches a simulation and notes the first breach of a promise. */
export interface Judge {
  failure(): Failure | undefined;
  fail(kind: string, words: string): void;
  /** A request leaves. */
  leaves(request: SentRequest): void;
  /** Whether a create of this title, description and text has left whose answer has not come. */
  isMaking(title: string, description: string, text: string): boolean;
  /** An answer came. */
  delivered(request: SentRequest, answer: Answer): void;
  /** The daemon calls the disk with this first argument. */
  diskCall(call: string, first: unknown): void;
  /** Files came or went, or one was changed: what was refused may be sent again. */
  changed(path?: string): void;
  /** A process starts. */
  started(): void;
  /** The time of day is set. */
  clockSet(): void;
  /** A person has everything tried again now, whatever delay the service asked for. */
  retried(): void;
  /** The ignore file is not there until then. */
  rulesHidden(untilMs: number): void;
  /** The ignore file is half-written for good: what is excluded is what it says now. */
  rulesLost(): void;
  /**
   * Many files of `before` were removed in one go: their resources stay until a person agrees. 0: nothing is left of the
   * folder, so that not one of them may go.
   */
  massRemoved(places: readonly string[], before: number): void;
  /** The service lost these: most of its resources are not made again until a person agrees. */
  reset(lost: readonly Resource[], before: number): void;
  /** A person agreed to what was held: so many deletes. */
  agreed(deletes: number): void;
  /**
   * The ledger was deleted, or an old one put in its place; or a power loss took the end of it, so that it may not know what the
   * service lost.
   */
  ledgerLost(isOld: boolean): void;
  powerLost(): void;
  /** A person asks the daemon to pause; call the returned function once the daemon has answered. */
  pauses(): () => void;
  /** A person asks it to go on, which counts from then on, whatever is answered later to a pause before it. */
  resumes(): void;
  /** The daemon says that a file of a source has a resource. */
  acknowledged(source: string, path: string): void;
  /** The daemon reports a file of a source, and the resource that it has. */
  reported(source: string, path: string, docId: string | null): void;
  /** The next process is on another machine, with another ledger or a copy of it. */
  movedOn(): void;
  /** Sources are held for these reasons now, before a comparison with the list. */
  holds(kinds: readonly HoldKind[]): void;
  /** A process that is a single pass starts. It cannot ask a minute later whether a 404 was true. */
  startsPass(process: number): void;
  /** What differs between folder and service; empty when they agree. Default: metadata as well. */
  differences(but?: "metadata"): readonly string[];
  /**
   * Places with several resources, of which none was to take the place of another. No list could show one to who sent the other,
   * if neither was there yet.
   */
  doubled(): readonly string[];
  /** Files that have another resource than before the ledger was lost, though nothing asked for that. */
  exchanged(): readonly string[];
  /** What differs of the files that count, whatever else there is at the service. */
  wrong(isCounted: (file: Expected) => boolean): readonly string[];
  /**
   * Files that differ, each with what differs and when its resource was last written; undefined: it has none. Where a service
   * shows in no readable form that it still works on a resource, its answer has to be believed.
   */
  behind(): readonly {
    readonly file: Expected;
    readonly words: string;
    readonly writtenMs: number | undefined;
  }[];
  requests(): number;
  /** Requests that change something. */
  changes(): number;
  /** How often a source began to be held, by the reason. */
  heldCounts(): Readonly<Record<HoldKind, number>>;
}

export interface JudgeOptions {
  readonly clock: Clock;
  readonly service: Service;
  readonly expectations: Expectations;
  /** So many deletes of `files` are no mass. */
  readonly freeDeletes: (files: number) => number;
  readonly concurrency: number;
  readonly owners: Owners;
  readonly chunkSize: () => number;
  readonly isDown: () => boolean;
  /** Whether a write within one step of coarse file times leaves no trace. */
  readonly hasCoarseTimes: boolean;
  /** Whether the service takes metadata, perhaps only from some time on. */
  readonly takesMetadata: boolean;
  /** Whether a resource that is there can be found by the list, at every time of this history. */
  readonly isListTrue: boolean;
  /** Whether a list shows all resources, though perhaps not at every time. */
  readonly isListWhole: boolean;
  /** Whether lists show descriptions with their markers. Without, the ledger alone knows whose a resource is. */
  readonly showsMarkers: boolean;
  /** Whether lists show which of two resources is the older one. */
  readonly showsTimes: boolean;
  /** Whether records show that the service still works on them, in a form that can be read. */
  readonly showsWork: boolean;
  /** Whether records show the chunk settings, in a form that can be read. Without, the ledger alone knows them. */
  readonly showsSettings: boolean;
  /** Whether a file that is renamed while no ledger knows it keeps its resource. */
  readonly keepsRenamed: boolean;
  /** Whether the service deletes what it is asked to. */
  readonly deletes: boolean;
  /** The service loses what it acknowledges. Then a file may differ that the daemon reports. */
  readonly losesWrites: boolean;
  /** For which reasons a source may be held before its list was compared with it. */
  readonly mayHold: Readonly<Record<HoldKind, boolean>>;
  /** Whether the service lists the ids of its collections, and does not only show them in answers to creates. */
  readonly reportsCollections: boolean;
  /** Whether the daemon's ledger has the id of a collection, without which there is no list. */
  readonly knowsCollection: () => boolean;
  /** The resources that the daemon's ledger has for the file at a place. */
  readonly ownedBy: (place: string) => readonly string[];
  /** Whether the second source is configured. */
  readonly hasInner: () => boolean;
  /** Whether another folder is in the place of the source's. */
  readonly hasOtherRoot: () => boolean;
  /** Folders that another file system hid when the first resource below them was made: to the daemon, theirs is that one's. */
  readonly hiddenFolders: () => readonly string[];
  /** Whether the daemon's ledger can be asked what it has. */
  readonly isLedgerOpen: () => boolean;
  /** Whether the daemon's ledger has something to do with a resource; yes, while it cannot be asked. */
  readonly isOwned: (docId: string) => boolean;
  /** What the metadata of a file should be. */
  readonly metadataOf: (path: string) => Readonly<Record<string, unknown>>;
}

/** A file that has been there this long is known to the daemon as far as it can know it. */
const KNOWN_AFTER_MS = 60_000;
/** So long deletes may go that a person agreed to. */
const AGREED_MS = 60_000;
/** What leaves so long after a change was read after it. */
const READ_AFTER_MS = 2000;
/**
 * With coarse file times a file that was read within a step of them is read again when that is over, and sent again where
 * it was refused: which of its bytes the refusal was about is not known.
 */
const COARSE_STEP_MS = 3000;
/** Requests within one second that no honest work needs: seven for each of a hundred files, in each source. */
const SECOND_REQUESTS_MAX = 700;
/** Requests within one minute, from the second one on, to a service that does not listen. */
const DOWN_REQUESTS_MAX = 12;
const MINUTE_MS = 60_000;
/** Versions of a growing file that may be sent at once: the first three, one that was found resting, and the last. */
const GROWTH_FREE = 5;
/** Least mean time between its later versions: one every few seconds, however often it grows. */
const GROWTH_VERSION_MS = 10_000;
/** A growing file that rests for so long counts as complete. */
const GROWTH_ENDS_MS = 10_000;
/**
 * Calls with a path within a minute, from the second one on in which nothing changes on the disk, beside those that belong to
 * reads: unwatched it is scanned every 15 s.
 */
const DISK_CALLS_MAX = 1500;
/** Calls with its path that each read of a file needs. */
const DISK_CALLS_PER_READ = 4;
/**
 * Reads of one file within such a minute: all that waited for the service are read again, and those with coarse times in the
 * future, since the clock was set back, are at each scan. An upload streams its file, which no memory holds: each attempt
 * opens it once more, and attempts are bounded as requests.
 */
const READS_MAX = 8;
/** Fewer lost resources are made again without a question. */
const LOSS_MIN = 5;
/** So many may be made again before the loss is noticed, beside those on their way. */
const REMADE_MAX = 3;
/** A collection that is denied so often, which takes half a minute, is taken for one that is not there. */
const DENIALS_BELIEVED = 5;
/** A service that does not name the collection gets one file, and another one of the next process. */
const PROBES_MAX = 2;
/** Answers without the ids of the collections after which the service counts as one that names none. */
const NAMELESS_BELIEVED = 4;
/** A refused delete is sent again after some time: there is no file that could change. */
const KEPT_WHEN_REFUSED: ReadonlySet<string> = new Set(["create", "update", "upload"]);
const CHANGES: ReadonlySet<string> = new Set(["create", "update", "delete", "upload"]);

/** What the daemon did on the disk within a minute. */
interface Minute {
  readonly sinceMs: number;
  /** Something has just changed. */
  readonly first: boolean;
  /** Calls with a path, without those that belong to reads. */
  diskCalls: number;
  /** How often each file was opened. */
  readonly reads: Map<string, number>;
  /** How often each file was uploaded, by its name. */
  readonly uploads: Map<string, number>;
}

/** Opens the watch over a world. */
export function openJudge(options: JudgeOptions): Judge {
  const { clock, service, expectations, isDown } = options;
  let failure: Failure | undefined;
  let requests = 0;
  let changes = 0;
  let second = { sinceMs: 0, count: 0 };
  let downMinute = { sinceMs: -1, count: 0, first: true };
  /** By process: nothing that begins later may leave before. */
  const quiet = new Map<number, { readonly sinceMs: number; readonly untilMs: number }>();
  /** By process: when an answer first gave it the id of a collection. */
  const learnedMs = new Map<number, number>();
  /** Versions of the growing file that this process sent since it began to grow. */
  let growth = { sinceMs: 0, texts: new Set<string>() };
  let grewMs = 0;
  let minute = openMinute(0, true);
  let refusals = new Set<string>();
  /** Refused requests that were sent once more, as may be. */
  let excused = new Set<string>();
  const passes = new Set<number>();
  /** Resources whose delete did nothing. */
  const denied = new Set<string>();
  /** By process: how many lists in a row the service said that it does not know of. */
  const denials = new Map<number, number>();
  /** By process: how many answers in a row did not name the collections. A gateway may refuse their address like a key. */
  const nameless = new Map<number, number>();
  /** When something changed that may make a refused request a new one. */
  let changedMs = -1;
  /** Paths of a mass delete that nobody agreed to, and how many of their resources went. */
  let held = new Set<string>();
  let heldGone = 0;
  /** Resources that the service lost, by place, and how many were made again as they were. */
  let lost = new Map<string, Resource>();
  let lostMs = 0;
  let remade = 0;
  /** Resources that there would be without the loss, and how many of them were lost: it is one while these are most. */
  let loss = { missed: 0, before: 0 };
  let freeDeletes = 0;
  /** Everything that the service ever lost. */
  const lostIds = new Set<string>();
  let pausedSinceMs: number | undefined;
  /** The last that a person asked of pauses. */
  let lastWord = {};
  /** When a person last agreed to deletes. */
  let agreedMs = -Infinity;
  /** When a ledger was last lost or replaced by an old one, and the resources that its files had. */
  let forgotten:
    | {
        readonly atMs: number;
        readonly had: ReadonlyMap<string, readonly Resource[]>;
        /** When the daemon had last said that a file has a resource, where an old ledger took the place of its own. */
        readonly acknowledged: ReadonlyMap<string, number> | undefined;
        /** Resources of which an update was on its way: which file's they are, that decides. */
        readonly updating: ReadonlySet<string>;
        /** Another folder was in the place of the source's, and had documents: nothing shows that it is another one. */
        readonly isAstray: boolean;
      }
    | undefined;
  /** The ledger is lost, or its end, and the next process has not started. */
  let isBlank = false;
  /** When the ignore file was last taken away, and when it came back. */
  let hidden = { sinceMs: Infinity, untilMs: Infinity };
  /** A single pass with a new ledger that began while the ignore file was away. It reads the folder once. */
  let unruledPass: number | undefined;
  let areRulesLost = false;

  /** Titles, descriptions and texts of creates that were not answered. */
  const making = new Set<string>();
  /** Resources of which an update was not answered. */
  const updating = new Set<string>();
  /** When the daemon last said that a file has a resource. */
  const acknowledged = new Map<string, number>();
  /** Places and resources that the daemon reported. */
  const reported = new Set<string>();
  /**
   * Owners of resources that the daemon knows no more, or that it wrote on another machine, while nobody agreed. A source of
   * another owner finds nothing and is free.
   */
  let estranged: ReadonlySet<string> = new Set();
  /** Resources whose marker is damaged, which a person who was asked left alone. */
  const leftAlone = new Set<string>();
  /** What it created all the same, and how often the service answered to that. */
  let probes = new Set<string>();
  let probesAnswered = 0;
  let holdsNow: readonly HoldKind[] = [];
  const heldCounts = { lost: 0, unclear: 0, identity: 0 };

  const estrange = (): void => {
    estranged = new Set(ours().map(({ ownerId }) => ownerId));
    probes = new Set();
    probesAnswered = 0;
  };
  /** Reports whether a request concerns an owner's resources that the daemon does not know. An upload names no owner. */
  const isStrange = ({ operation, docId, body }: SentRequest): boolean => {
    const own = ours();
    if (operation === "upload") return own.some(({ ownerId }) => estranged.has(ownerId));
    const owner = operation === "create" ? ownerIn(body) : own.find(({ id }) => id === docId)?.ownerId;
    return owner !== undefined && estranged.has(owner) && own.some(({ ownerId }) => ownerId === owner);
  };
  const fail = (kind: string, words: string): void => {
    failure ??= { kind, words: `at ${(clock.nowMs() / 1000).toFixed(3)} s: ${words}` };
  };
  const wordOf = ({ method, path, body }: SentRequest): string =>
    `${method} ${path} ${body.toString("latin1")}`;
  /** What each key of an update was first sent with. */
  const firstUnderKey = new Map<string, string>();
  /** Whether an update is sent under the key of an earlier one: its answer may be the answer to that. */
  const hasEarlierKey = (request: SentRequest): boolean => {
    const first = firstUnderKey.get(request.headers["idempotency-key"] ?? "");
    return first !== undefined && first !== wordOf(request);
  };
  const ours = recalled(
    () => service.version(),
    (): readonly Resource[] => service.resources().filter(({ foreign, deleted }) => !foreign && !deleted),
  );
  /** Without the collection's id there is no list. */
  const hasList = (): boolean => options.knowsCollection() || options.reportsCollections;
  const isSameSort = (a: Resource, b: Resource): boolean =>
    (a.url === undefined) === (b.url === undefined) && chunkSizeOf(a) === chunkSizeOf(b);

  service.onWrite = (what, resource) => {
    const { title, id } = resource;
    if (resource.foreign) fail("foreign", `${what} of ${id}, a resource of others: ${title}`);
    if (what !== "delete") return;
    const place = placeOf(resource);
    const isOfVersion = (each: Resource): boolean => each.process !== 0 && each.sent === resource.sent;
    // A copy of an earlier version may be one that the daemon made.
    const isHere = clock.nowMs() - agreedMs > AGREED_MS && expectations.at(place)?.body !== undefined;
    if (resource.isOwnWords === true && isHere && ours().some(isOfVersion))
      fail("own-words", `the copy ${id} of ${place} is deleted, to which a person gave another text`);
    if (ours().some((each) => each.id !== id && placeOf(each) === place)) return;
    const file = expectations.at(place);
    // A create acted late whose file was emptied meanwhile: the file is no document any more.
    if (resource.late && file?.body === undefined) return;
    // A person agreed to the end of what was held; a file that could not be checked then is another one.
    if (clock.nowMs() - agreedMs < AGREED_MS && service.madeMs(id) < agreedMs) return;
    // It was another file's before a create of the same title changed it, and may go with that one.
    if (options.losesWrites && service.versionsOf(id).some((each) => placeOf(each) !== place)) return;
    // A resource whose requests all came before the file was another file's of that name.
    const isKnown =
      file !== undefined &&
      clock.nowMs() - file.sinceMs > KNOWN_AFTER_MS &&
      service.requestedMs(id) >= file.sinceMs;
    // Renamed over: the file's own resource is another one, which still goes by its old name.
    const owned = isKnown ? options.ownedBy(place).filter((each) => each !== id) : [];
    // A second one is deleted for the sake of one that the service lost meanwhile; the next audit makes it again.
    // Without markers nothing corrects an old ledger.
    const isMisled = forgotten !== undefined && (forgotten.isAstray || !options.showsMarkers);
    if (
      isKnown &&
      !isMisled &&
      !owned.some((each) => lostIds.has(each) || ours().some((one) => one.id === each))
    )
      fail("wrong-delete", `the only resource of ${place} is deleted, whose file has been there all along`);
    // Its text went on under another name, and with other settings that is another resource.
    const isReplaced = (each: Resource): boolean =>
      each.id !== id &&
      each.createdMs > resource.createdMs &&
      bodyOf(each, service) === bodyOf(resource, service);
    if (!held.has(place) || ours().some(isReplaced)) return;
    heldGone += 1;
    if (heldGone > freeDeletes) {
      fail("unheld", `${heldGone} deletes of one mass delete were not held`);
    }
  };

  /**
   * Whether a create makes again what was lost. Chunk settings and the kind, text or address, never change by an update:
   * such a file gets another resource, and nobody asks whether the old one is there. Neither is it asked for when a file
   * comes to a place whose file was removed. Who edits a file asks for it.
   */
  const isMadeAgain = (resource: Resource, before: Resource): boolean =>
    isSameSort(before, resource) &&
    bodyOf(before, service) === bodyOf(resource, service) &&
    (expectations.at(placeOf(resource))?.sinceMs ?? Infinity) <= lostMs;

  /** When the create of each resource left. */
  const begunMsOf = new Map<string, number>();
  /** Reports whether neither of two resources was there yet when the create of the other one left. */
  const wereMadeAtOnce = (one: Resource, other: Resource): boolean =>
    (begunMsOf.get(one.id) ?? Infinity) < service.madeMs(other.id) &&
    (begunMsOf.get(other.id) ?? Infinity) < service.madeMs(one.id);

  service.onCreate = (resource, { begunMs }) => {
    begunMsOf.set(resource.id, begunMs);
    const place = placeOf(resource);
    const before = lost.get(place);
    if (before !== undefined && isMadeAgain(resource, before)) {
      remade += 1;
      // One that the list does not show is made once more: it is the same file of those that were lost.
      lost.delete(place);
      if (remade > REMADE_MAX + options.concurrency) {
        fail("refilled", `${remade} of the resources that the service lost were made again unasked`);
      }
    } else {
      // What others of the source's files get since counts when the loss is noticed. A lost one that another one has
      // replaced is missed no more.
      if (lost.delete(place)) loss.missed -= 1;
      else loss.before += 1;
      if (2 * loss.missed <= loss.before) lost = new Map();
    }
    const isStranger = estranged.has(resource.ownerId);
    if (isStranger) probes.add(resource.id);
    if (resource.late || !options.isListTrue || isStranger) return;
    if (!hasList()) return;
    // It takes the place of one that the ledger has.
    if (options.ownedBy(place).length > 0) return;
    // The extra one goes.
    if ((denials.get(resource.process) ?? 0) >= DENIALS_BELIEVED) return;
    if ((nameless.get(resource.process) ?? 0) >= NAMELESS_BELIEVED) return;
    // Of two sources each may send its first file before an answer to either shows the collection's id.
    if (begunMs < (learnedMs.get(resource.process) ?? -Infinity) + READ_AFTER_MS) return;
    const listedMs = service.listedMs(resource.process) ?? Infinity;
    // A request that was on its way when its process died may be acted on after the next process has settled by a list what
    // it left. The extra one goes.
    const cameAfterList = (each: Resource): boolean =>
      each.process !== resource.process && service.writtenMs(each.id) > listedMs;
    const twin = ours().find(
      (each) =>
        !each.late &&
        each.process !== 0 &&
        !cameAfterList(each) &&
        !leftAlone.has(each.id) &&
        placeOf(each) === place &&
        isSameSort(each, resource) &&
        service.writtenMs(each.id) < begunMs &&
        !options.isOwned(each.id),
    );
    if (twin !== undefined) {
      fail("second-create", `${place} is made again, though the list has it: ${twin.id}`);
    }
  };

  /** A ledger lost while the ignore file was away: nothing shows that there was one. */
  const isUnruled = (nowMs: number): boolean =>
    areRulesLost ||
    (forgotten !== undefined && forgotten.atMs >= hidden.sinceMs && nowMs < hidden.untilMs + READ_AFTER_MS);
  /** One that rested has come to its end: what follows is another growth. */
  const noteGrowth = (): void => {
    if (clock.nowMs() - grewMs > GROWTH_ENDS_MS) growth = { sinceMs: 0, texts: new Set() };
    grewMs = clock.nowMs();
  };
  /** A growing file is sent at a bounded rate, after the first times. */
  const countGrowth = ({ body }: SentRequest): void => {
    if (!body.includes(GROWING)) return;
    // A create of what an update was to send, as for a resource that was lost, sends no other version.
    const text = contentOf(body);
    if (text === undefined || growth.texts.has(text)) return;
    growth.texts.add(text);
    if (growth.texts.size === 1) growth.sinceMs = clock.nowMs();
    const elapsedMs = clock.nowMs() - growth.sinceMs;
    if (growth.texts.size > GROWTH_FREE + elapsedMs / GROWTH_VERSION_MS)
      fail(
        "greedy",
        `${growth.texts.size} versions of a growing file are sent in ${(elapsedMs / MINUTE_MS).toFixed(1)} minutes`,
      );
  };
  /** What the service did not take is no version. */
  const uncountGrowth = ({ body }: SentRequest): void => {
    if (body.includes(GROWING)) growth.texts.delete(contentOf(body) ?? "");
  };
  const countUpload = ({ body }: SentRequest): void => {
    const name = /filename="([^"]*)"/.exec(body.toString("utf8"))?.[1] ?? "";
    minute.uploads.set(name, 1 + (minute.uploads.get(name) ?? 0));
  };
  const countDown = (nowMs: number): void => {
    if (!isDown()) downMinute = { sinceMs: -1, count: 0, first: true };
    else if (downMinute.sinceMs === -1) downMinute = { sinceMs: nowMs, count: 0, first: true };
    else if (nowMs - downMinute.sinceMs > MINUTE_MS) downMinute = { sinceMs: nowMs, count: 0, first: false };
    downMinute.count += 1;
    if (isDown() && !downMinute.first && downMinute.count > DOWN_REQUESTS_MAX) {
      fail("tight-loop", `${downMinute.count} requests within a minute to a service that does not listen`);
    }
  };

  /** The metadata of a resource and of its file, as text. */
  const metadataWords = (file: Expected, resource: Resource): readonly [found: string, wanted: string] => {
    const left = ["modified", "created"];
    return [without(resource.metadata, left), without(options.metadataOf(file.path), left)];
  };
  const hasMetadata = (file: Expected, resource: Resource): boolean => {
    const [found, wanted] = metadataWords(file, resource);
    return found === wanted;
  };
  /** The resource of each file, as far as there is one, and what is left. */
  const pair = (): {
    readonly taken: ReadonlyMap<Expected, Resource | undefined>;
    readonly extra: readonly Resource[];
  } => {
    const folders = options.hiddenFolders().map((folder) => `${folder}/`);
    const isSeen = ({ place }: { readonly place: string }): boolean =>
      !folders.some((folder) => place.startsWith(folder));
    const left = Map.groupBy(
      ours().filter((each) => isSeen({ place: placeOf(each) })),
      placeOf,
    );
    const fits = (file: Expected, each: Resource): boolean =>
      each.title === file.title && bodyOf(each, service) === file.body;
    // There may be several. What is reported, or what the daemon asked to delete, is another file's, if any is.
    const oddness = (file: Expected, each: Resource): number =>
      (fits(file, each) ? 0 : 8) +
      (denied.has(each.id) || reported.has(each.id) || leftAlone.has(each.id) ? 4 : 0) +
      (chunkSizeOf(each) === options.chunkSize() ? 0 : 2) +
      (hasMetadata(file, each) ? 0 : 1);
    const taken = new Map(
      expectations
        .all()
        .filter(isSeen)
        .map((file) => {
          const here = left.get(file.place) ?? [];
          const mayBeKept = ({ id }: Resource): boolean => file.body !== undefined || !denied.has(id);
          const [only] = here.filter(mayBeKept).toSorted((a, b) => oddness(file, a) - oddness(file, b));
          left.set(
            file.place,
            here.filter((each) => each !== only),
          );
          return [file, only] as const;
        }),
    );
    return { taken, extra: [...left.values()].flat() };
  };
  /** Whether files and resources fit is asked each second, and seldom has anything changed since. */
  const version = (): string =>
    `${service.version()} ${expectations.version()} ${options.chunkSize()} ${reported.size} ${denied.size} ${leftAlone.size}`;
  const paired = recalled(version, pair);
  /** How many files keep whatever resource they had, under whatever name, and show none of their own name. */
  const keepers = (): number =>
    [...paired().taken].filter(([{ body }, only]) => body === undefined && only === undefined).length;
  /** Whether nothing shows with which chunk size a resource was made. */
  const isSizeForgotten = (id: string): boolean =>
    !options.showsSettings && forgotten !== undefined && service.madeMs(id) < forgotten.atMs;
  const wordsOf = ({ path, ownerId, title, body }: Expected, only: Resource | undefined): string[] => {
    if (body === undefined) return [];
    if (only === undefined) return [`${path} has no resource`];
    const { id, description, sent } = only;
    const chunkSize = chunkSizeOf(only);
    return [
      ...(bodyOf(only, service) === body ? [] : [`${path} has another text at the service: ${id}`]),
      ...(only.title === title ? [] : [`${path} is called ${only.title} there, not ${title}: ${id}`]),
      ...(only.ownerId === ownerId ? [] : [`${path} has the owner ${only.ownerId}: ${id}`]),
      // A person may write another one where the service keeps none as it is sent.
      ...(description === service.describe(sent) || !options.showsMarkers
        ? []
        : [`${path} is described as ${description}: ${id}`]),
      ...(chunkSize === options.chunkSize() || isSizeForgotten(id)
        ? []
        : [`${path} has chunks of ${chunkSize}: ${id}`]),
    ];
  };

  const metadataWordsOf = (file: Expected, only: Resource | undefined): string[] => {
    if (file.body === undefined || only === undefined || !service.takesMetadata()) return [];
    const [found, wanted] = metadataWords(file, only);
    return found === wanted ? [] : [`${file.path} has the metadata ${found}, not ${wanted}: ${only.id}`];
  };
  /** The times of a file that was written in a whole second, as at the beginning, seem coarse. */
  const isOfWholeSecond = ({ body }: SentRequest): boolean =>
    expectations.all().some((file) => file.changedMs % 1000 === 0 && body.includes(basename(file.path)));
  /** The files that differ, with their resources and what differs. */
  const differing = recalled(version, () =>
    [...paired().taken].flatMap(([file, only]) => {
      const words = wordsOf(file, only);
      return words.length === 0 ? [] : [{ file, only, words }];
    }),
  );

  const changed = (): void => {
    refusals = new Set();
    excused = new Set();
    changedMs = clock.nowMs();
    minute = openMinute(clock.nowMs(), true);
    // One that is there again is a file like any other.
    if (held.size > 0) {
      held = new Set([...held].filter((place) => expectations.at(place) === undefined));
    }
  };

  return {
    failure: () => failure,
    fail,
    leaves: (request) => {
      const { operation, begunMs, docId } = request;
      const nowMs = clock.nowMs();
      requests += 1;
      if (operation === "create") making.add(madeBy(request));
      if (operation === "update" && docId !== undefined) updating.add(docId);
      const key = request.headers["idempotency-key"];
      if (operation === "update" && key !== undefined && !firstUnderKey.has(key))
        firstUnderKey.set(key, wordOf(request));
      if (operation === "upload") countUpload(request);
      if (CHANGES.has(operation) && !isQuestion(request)) changes += 1;
      // Two sources of one owner send the same of equal files, and what was read within a step of coarse times, however long
      // before it was refused, is read again. An upload names no owner.
      const { owners } = options;
      const isShared =
        owners.second === owners.first || (operation === "upload" && owners.second !== undefined);
      const isAlike = isShared || options.hasCoarseTimes || isOfWholeSecond(request);
      const mayRepeat = isAlike && !excused.has(wordOf(request));
      if (refusals.has(wordOf(request)) && mayRepeat) {
        excused.add(wordOf(request));
        // What the service works on is asked for by the same request, until it is refused once more.
        refusals.delete(wordOf(request));
      } else if (refusals.has(wordOf(request))) {
        fail("refused-again", `${operation} is sent again as it was refused, and nothing has changed since`);
      }
      const isProbe =
        operation === "create" || operation === "upload"
          ? probesAnswered < PROBES_MAX
          : request.docId !== undefined && probes.has(request.docId);
      if (CHANGES.has(operation) && !isProbe && !isQuestion(request) && isStrange(request))
        fail("unasked", `${operation} leaves, and the ledger does not know whose the resources are`);
      if (pausedSinceMs !== undefined && CHANGES.has(operation) && begunMs > pausedSinceMs) {
        fail("paused", `${operation} leaves while the daemon is paused`);
      }
      if (nowMs - second.sinceMs > 1000) second = { sinceMs: nowMs, count: 0 };
      second.count += 1;
      if (second.count > SECOND_REQUESTS_MAX * (options.owners.second === undefined ? 1 : 2)) {
        fail("tight-loop", `${second.count} requests within a second`);
      }
      const wish = quiet.get(request.process);
      if (wish !== undefined && begunMs > wish.sinceMs && begunMs < wish.untilMs - 2) {
        const restMs = Math.round(wish.untilMs - begunMs);
        fail("not-quiet", `${operation} leaves ${restMs} ms before the Retry-After is over`);
      }
      countDown(nowMs);
      if (request.body.includes('"metadata":') && !service.takesMetadata())
        fail("unasked", `${operation} sends metadata to a service that does not take it`);
      if (request.body.includes(SECRET) && request.process !== unruledPass && !isUnruled(nowMs))
        fail("leak", `${operation} sends the text of an excluded file`);
      countGrowth(request);
    },
    isMaking: (...facts) => making.has(JSON.stringify(facts)),
    startsPass: (process) => {
      passes.add(process);
      if (isUnruled(clock.nowMs())) unruledPass = process;
    },
    delivered: (request, { status, headers, text }) => {
      const { process, operation, docId } = request;
      // A single pass cannot ask a minute later whether a 404 was true, and some services delete nothing.
      const isDenied = !options.deletes || (status === 404 && passes.has(process));
      if (operation === "delete" && isDenied && docId !== undefined) denied.add(docId);
      // It changed nothing, and is tried again every hour.
      if (operation === "delete" && status === 403) changes -= 1;
      if (operation === "update" && docId !== undefined) updating.delete(docId);
      if (operation === "update" && status === 404) uncountGrowth(request);
      if (request.operation === "create" && (status === 201 || status === 202)) {
        making.delete(madeBy(request));
        // 202 acknowledges nothing.
        if (status === 201 && isStrange(request)) probesAnswered += 1;
        if (text.endsWith("}") && !options.knowsCollection()) learnedMs.set(process, clock.nowMs());
      }
      // A proxy's words say nothing of the collection.
      if (request.operation === "list" && text.includes('"success":true')) denials.delete(process);
      if (request.operation === "list" && status === 404 && text.includes('"success":false'))
        denials.set(process, 1 + (denials.get(process) ?? 0));
      if (operation === "collections") {
        const more = status < 300 || status === 401 || status === 403 ? 1 : 0;
        if (text.includes('"collections":')) nameless.delete(process);
        else nameless.set(process, more + (nameless.get(process) ?? 0));
      }
      // What was read before the last change says nothing of what is there now.
      const isNews =
        request.begunMs - changedMs > READ_AFTER_MS + (options.hasCoarseTimes ? COARSE_STEP_MS : 0);
      const isAboutThis = KEPT_WHEN_REFUSED.has(operation) && !isQuestion(request) && !hasEarlierKey(request);
      if (status === 400 && isNews && isAboutThis) refusals.add(wordOf(request));
      const before = quiet.get(process);
      const wish = headers["retry-after"];
      if (wish === undefined || (status !== 429 && status !== 503)) return;
      const seconds = /^\d+$/.test(wish)
        ? Number(wish)
        : (Date.parse(wish) - Date.parse(headers["date"] ?? "")) / 1000;
      const untilMs = clock.nowMs() + Math.min(3600, seconds) * 1000;
      if (untilMs > (before?.untilMs ?? 0)) {
        quiet.set(process, { sinceMs: clock.nowMs(), untilMs });
      }
    },
    diskCall: (call, first) => {
      // What is done with an open file belongs to its opening.
      if (typeof first !== "string") return;
      const nowMs = clock.nowMs();
      if (nowMs - minute.sinceMs > MINUTE_MS) minute = openMinute(nowMs, false);
      const { reads, uploads } = minute;
      if (call === "openSync") reads.set(first, 1 + (reads.get(first) ?? 0));
      minute.diskCalls += call === "openSync" ? -DISK_CALLS_PER_READ : 1;
      if (minute.first) return;
      const readTimes = (reads.get(first) ?? 0) - (uploads.get(basename(first)) ?? 0);
      if (readTimes > READS_MAX)
        fail("busy", `${first} is read ${readTimes} times within a minute, and the disk rests`);
      if (minute.diskCalls > DISK_CALLS_MAX)
        fail("busy", `${minute.diskCalls} calls into a disk that rests, within a minute`);
    },
    changed: (path) => {
      if (path === GROWING) noteGrowth();
      changed();
    },
    // How a file grew is remembered for some minutes of the day: to be found out once more costs two versions of it.
    clockSet: () => {
      growth = { sinceMs: 0, texts: new Set() };
    },
    retried: () => quiet.clear(),
    rulesLost: () => {
      areRulesLost = true;
    },
    rulesHidden: (untilMs) => {
      hidden = { sinceMs: clock.nowMs(), untilMs };
    },
    started: () => {
      isBlank = false;
      updating.clear();
      growth = { sinceMs: 0, texts: new Set() };
      // It knows nothing of how often others have asked.
      downMinute = { sinceMs: -1, count: 0, first: true };
      changed();
    },
    massRemoved: (removed, before) => {
      // One that has no resource yet is no file of the folder to the daemon, and a single file is no folder.
      const places = before === 0 ? removed.filter((place) => options.ownedBy(place).length > 0) : removed;
      if (places.length < 2) return;
      // Where files go one after the other, those that have one may all be gone while the folder is not empty.
      if (before === 0 && places.length * 2 < removed.length) return;
      // The first of them may be found before the others, and be none too many by themselves.
      freeDeletes = before === 0 ? 0 : options.freeDeletes(before);
      held = new Set([...held, ...places]);
    },
    reset: (gone, before) => {
      for (const { id } of gone) lostIds.add(id).add(service.originOf(id));
      if (ours().length === 0) estranged = new Set();
      // Nobody can miss what no ledger knows. One that was lost may still know nothing when the process after it has ended.
      if (isBlank || (forgotten !== undefined && !options.isLedgerOpen())) return;
      // What the service was still working on was never acknowledged, and is on its way.
      // One whose file is gone, too, is not missed: its delete is held.
      const isThere = (each: Resource): boolean => expectations.at(placeOf(each))?.body !== undefined;
      const acknowledgedMs = (each: Resource): number => acknowledged.get(placeOf(each)) ?? -Infinity;
      const isKnown = (each: Resource): boolean =>
        options.isLedgerOpen() ? options.isOwned(each.id) : acknowledgedMs(each) >= service.madeMs(each.id);
      const known = gone.filter((each) => each.queued.length === 0 && isKnown(each));
      const missed = known.filter(isThere);
      // Each source judges its own loss.
      if (options.owners.second !== undefined) return;
      // Of fewer so many may have been made again before it is noticed that the rest is no loss any more.
      const min = LOSS_MIN + REMADE_MAX + options.concurrency;
      const served = before - (known.length - missed.length);
      if (missed.length >= min && 2 * missed.length > served) {
        lost = new Map(missed.map((each) => [placeOf(each), each]));
        lostMs = clock.nowMs();
        loss = { missed: missed.length, before: served };
      }
    },
    agreed: (deletes) => {
      estranged = new Set();
      const isDamaged = ({ description, sent }: Resource): boolean =>
        description.includes("[kb:") && description !== service.describe(sent);
      if (holdsNow.includes("identity")) for (const { id } of ours().filter(isDamaged)) leftAlone.add(id);
      if (deletes > 0) agreedMs = clock.nowMs();
      held = new Set();
      heldGone = 0;
      lost = new Map();
      remade = 0;
    },
    ledgerLost: (isOld) => {
      // The file's that it is of when the service has done its work.
      const had = Map.groupBy(ours(), (each) => placeOf(Object.assign({}, each, ...each.queued)));
      forgotten = {
        atMs: clock.nowMs(),
        had,
        acknowledged: isOld ? new Map(acknowledged) : undefined,
        updating: new Set(updating),
        isAstray: options.hasOtherRoot() && had.has(OTHER_FILE),
      };
      isBlank = true;
      // No marker says whose these are.
      if (!isOld && !options.showsMarkers && options.mayHold.identity) estrange();
      // Nobody remembers what was held.
      held = new Set();
      lost = new Map();
      pausedSinceMs = undefined;
    },
    powerLost: () => {
      isBlank = true;
      lost = new Map();
    },
    pauses: () => {
      const word = {};
      lastWord = word;
      return () => {
        if (lastWord === word) pausedSinceMs = clock.nowMs();
      };
    },
    resumes: () => {
      lastWord = {};
      pausedSinceMs = undefined;
    },
    differences: (but) => {
      const words = ours()
        .filter(({ queued }) => queued.length > 0)
        .map((each) => `${each.id} of ${placeOf(each)} is not taken in yet`);
      const { taken, extra } = paired();
      for (const [file, only] of taken) {
        if ((options.losesWrites || !options.isListWhole) && reported.has(file.place)) continue;
        words.push(...wordsOf(file, only));
        // No marker shows that a change of metadata alone was lost.
        if (but !== "metadata" && !options.losesWrites) words.push(...metadataWordsOf(file, only));
      }
      // What lists omit of files that are gone, and what a source left that is no longer configured, only a ledger knows.
      const isUnknown = (each: Resource): boolean =>
        options.isListWhole
          ? forgotten !== undefined &&
            service.madeMs(each.id) < forgotten.atMs &&
            placeOf(each).startsWith(SECOND_PLACE) &&
            !options.hasInner()
          : expectations.at(placeOf(each)) === undefined && !options.isOwned(each.id);
      const isReported = ({ id, isOwnWords }: Resource): boolean =>
        (options.losesWrites || isOwnWords === true) && reported.has(id);
      const isExcused = (each: Resource): boolean =>
        denied.has(each.id) || leftAlone.has(each.id) || isReported(each) || isUnknown(each);
      const strays = options.showsMarkers && hasList() ? extra.filter((each) => !isExcused(each)) : [];
      if (strays.length > keepers())
        words.push(...strays.map((stray) => `${stray.id} of ${placeOf(stray)} is too many`));
      return words;
    },
    acknowledged: (source, path) => {
      acknowledged.set(placeIn(source, path), clock.nowMs());
    },
    reported: (source, path, docId) => {
      reported.add(placeIn(source, path));
      if (docId !== null) reported.add(docId);
    },
    movedOn: () => {
      if (options.isListTrue) estrange();
    },
    holds: (kinds) => {
      for (const kind of kinds) if (!holdsNow.includes(kind)) heldCounts[kind] += 1;
      holdsNow = kinds;
      for (const kind of kinds) if (!options.mayHold[kind]) fail("held", UNFOUNDED[kind]);
    },
    doubled: () => {
      const isTwin = (one: Resource, other: Resource): boolean =>
        one.id !== other.id &&
        placeOf(one) === placeOf(other) &&
        isSameSort(one, other) &&
        !wereMadeAtOnce(one, other);
      const places = paired()
        .extra.filter((each) => ours().some((other) => isTwin(each, other)))
        .map(placeOf)
        .filter((place) => expectations.at(place) !== undefined);
      return places.length > keepers() ? places : [];
    },
    exchanged: () => {
      if (forgotten === undefined || !options.isListTrue || options.losesWrites || !hasList()) return [];
      if (!options.showsTimes) return [];
      const { atMs, had, acknowledged: knew, updating: moved } = forgotten;
      // Where each update makes another resource, a file's resource is known by the one that it began as.
      const isSame = (a: Resource, b: Resource): boolean => service.originOf(a.id) === service.originOf(b.id);
      // A person who agreed to deletes may have agreed to those of files that came back at that moment.
      if (agreedMs > atMs) return [];
      const renamed = options.keepsRenamed ? [...paired().taken].filter(([file]) => file.sinceMs > atMs) : [];
      const lostIn = ([file, only]: readonly [Expected, Resource | undefined]): string[] => {
        const was = [...had.values()]
          .flat()
          .find((each) => !lostIds.has(service.originOf(each.id)) && bodyOf(each, service) === file.body);
        return was === undefined || (only !== undefined && isSame(was, only))
          ? []
          : [`${file.path} was renamed and is not ${was.id}`];
      };
      if (renamed.length > 0) return renamed.flatMap(lostIn);
      return [...paired().taken].flatMap(([file, only]) => {
        const before = (had.get(file.place) ?? []).filter(
          ({ id }) => !lostIds.has(service.originOf(id)) && !leftAlone.has(id),
        );
        // Another kind, or other chunks, make another resource: back again is yet another one.
        const isOther = (id: string): boolean =>
          service.versionsOf(id).some((each) => before.some((one) => !isSameSort(each, one)));
        // What it was renamed to before without a daemon that noticed, an old ledger tells by its inode number.
        const knownMs = knew === undefined ? atMs : Math.min(atMs, knew.get(file.place) ?? -Infinity);
        const isOld = file.body !== undefined && file.sinceMs <= knownMs && before.length > 0;
        if (!isOld || only === undefined || moved.has(only.id)) return [];
        if (before.some((each) => isSame(each, only))) return [];
        const made = service.resources().filter((each) => placeOf(each) === file.place);
        if (made.some(({ id }) => service.madeMs(id) > atMs && isOther(id))) return [];
        return [
          `${file.path} has ${only.id} since the ledger was lost, not ${before.map(({ id }) => id).join(", ")}`,
        ];
      });
    },
    wrong: (isCounted) => differing().flatMap(({ file, words }) => (isCounted(file) ? words : [])),
    behind: () =>
      differing()
        .filter(({ only }) => options.showsWork || only === undefined || only.queued.length === 0)
        .filter(() => !options.losesWrites)
        .map(({ file, only, words }) => ({
          file,
          words: words.join(", "),
          writtenMs: only && service.writtenMs(only.id),
        })),
    requests: () => requests,
    changes: () => changes,
    heldCounts: () => heldCounts,
  };
}

/** Why a hold is wrong where nothing of the history leads to it. */
const UNFOUNDED: Readonly<Record<HoldKind, string>> = {
  lost: "the source is held for what the service lost, and it lost nothing",
  unclear: "the source is held for its lists, and nothing was wrong with them",
  identity: "a person is asked whose the resources are, and nobody else ever wrote to them",
};

/** The place of a file by its source's folder and its path in it. */
function placeIn(source: string, path: string): string {
  return source === SOURCE_ROOT ? path : SECOND_PLACE + path;
}

function openMinute(sinceMs: number, first: boolean): Minute {
  return { sinceMs, first, diskCalls: 0, reads: new Map(), uploads: new Map() };
}

/** Metadata as text, in one order of names, without some of them. */
function without(metadata: Readonly<Record<string, unknown>>, names: readonly string[]): string {
  const kept = Object.entries(metadata).filter(([name]) => !names.includes(name));
  return JSON.stringify(Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** Makes a value again only when the version of what it is made of is another one. */
function recalled<T>(version: () => string | number, make: () => T): () => T {
  let last: { readonly version: string | number; readonly value: T } | undefined;
  return () => {
    const now = version();
    if (last?.version !== now) last = { version: now, value: make() };
    return last.value;
  };
}

function contentOf(body: Buffer): string | undefined {
  return (JSON.parse(body.toString("utf8")) as { content?: string }).content;
}

function chunkSizeOf({ settings }: Resource): number {
  return (settings as { chunkSize: number }).chunkSize;
}

/** A resource is asked after by sending it the title that it has: that sends nothing of a file. */
function isQuestion({ operation, body }: SentRequest): boolean {
  return operation === "update" && /^{"title":"(?:[^"\\]|\\.)*"}$/.test(body.toString());
}

/** The owner that a create names. */
function ownerIn(body: Buffer): string | undefined {
  const { ownerId } = JSON.parse(body.toString()) as { readonly ownerId?: string };
  return ownerId;
}

/** Title, description and text of a create. */
function madeBy({ body }: SentRequest): string {
  const { title, description, content } = JSON.parse(body.toString()) as Record<string, unknown>;
  return JSON.stringify([title, description, content]);
}
