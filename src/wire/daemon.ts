import { z } from "zod";
import { Failure } from "./failure.ts";

/**
 * The API of a running daemon: HTTP over the Unix socket in its state folder. A GET takes its request from the query, a
 * POST from a JSON body.
 */

/** Activities that may be asked for at once: as many as the ledger keeps. */
export const LOG_LINES_MAX = 10_000;
/** Activities that are returned unless another number is asked for. */
export const LOG_LINES_DEFAULT = 50;
/** Longest wait that may be asked for: a day. */
export const WAIT_SECONDS_MAX = 86_400;

const record = <S extends z.ZodRawShape>(shape: S) => z.object(shape).readonly();
const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();

/** Absolute, so that nothing depends on the daemon's own working folder; no path of a disk holds a NUL. */
const Path = z.string().regex(/^\/[^\0]*$/, "an absolute path");

/** How sending to the service goes. */
export const PaceState = z.discriminatedUnion("kind", [
  record({ kind: z.literal("open") }),
  /** The service does not answer, or not as it should. */
  record({
    kind: z.literal("waiting"),
    /** The time of day of the next try. */
    untilMs: z.number(),
    reason: z.string(),
    /** What a person can do, where waiting alone does not end it. */
    hint: z.string().optional(),
    /** The time of day at which it is given up; undefined: never. */
    givesUpMs: z.number().optional(),
  }),
  record({ kind: z.literal("key_refused"), untilMs: z.number(), reason: z.string() }),
]);
export type PaceState = z.infer<typeof PaceState>;

/** Of the work found since the daemon started. */
const Progress = record({
  done: z.number(),
  total: z.number(),
  /** Of those done, the ones for which something was sent; a file that was only touched is compared, no more. */
  sent: z.number(),
  /** Of those done, the ones that the service refused, or that could not be read: they are no changes. */
  failed: z.number(),
  /** Bytes of the files done. */
  bytes: z.number(),
});
export type Progress = z.infer<typeof Progress>;

/** A mount below a source that is not as it was: nothing below it is sent or deleted. */
const MountTrouble = record({
  path: z.string(),
  reason: z.string(),
  /** What a person can do, in a sentence. */
  remedy: z.string(),
});
export type MountTrouble = z.infer<typeof MountTrouble>;

/** How far one source is in agreement. Counts are of files. */
const SourceStatus = record({
  path: z.string(),
  ownerId: z.string(),
  /** Null until the service told it. */
  collectionId: z.string().nullable(),
  /** Files that are wanted and there: in agreement, waiting or failed. */
  files: z.number(),
  /**
   * Whether the whole folder was compared with what is known of it since the daemon started, or before it ended. False:
   * more may wait than these counts say.
   */
  compared: z.boolean(),
  inAgreement: z.number(),
  waiting: z.number(),
  /** Files that the service will not take, and deletes that it will not do; these are not among `files`. */
  failed: z.number(),
  /** Files that are left out, empty or of no kind that is taken; not among `files`. */
  skipped: z.number(),
  /** Files in agreement of which the service read a part alone; `kbsync why FILE` tells which. */
  readInPart: z.number(),
  /** Deletes that wait for a person. */
  held: z.number(),
  /** Why deletes are held, or why the whole source is halted; null when neither. */
  holdReason: z.string().nullable(),
  /** The folder is missing or another one: nothing is sent for it. */
  halted: z.boolean(),
  /** What a person can do about the hold reason, in a sentence; null where there is none. */
  remedy: z.string().nullable(),
  /** Names exactly what an approval would cover now; null where there is nothing to approve. */
  approvalToken: z.string().nullable(),
  /** Folders and files that could not be read. */
  unreadable: z.number(),
  /** The first of them, "" for the source's own folder; empty where only their number is known, from the ledger alone. */
  unreadablePaths: list(z.string()),
  /** Mounts below the folder that are not as they were; empty where no daemon runs. They are among what is unreadable. */
  mounts: list(MountTrouble),
  /** Why some changes are found late; null while all are seen. */
  degraded: z.string().nullable(),
  /** A person said that nothing is to be sent for it. */
  paused: z.boolean(),
});
export type SourceStatus = z.infer<typeof SourceStatus>;

/** A source that left the configuration: nothing is done for it, and its resources stay until a person approves. */
const RemovedStatus = record({
  path: z.string(),
  ownerId: z.string(),
  collectionId: z.string().nullable(),
  /** Resources that it still has at the service. */
  resources: z.number(),
  /** A person approved their deletion. */
  approved: z.boolean(),
  /** Names exactly what an approval of their deletion would cover now. */
  approvalToken: z.string(),
});
export type RemovedStatus = z.infer<typeof RemovedStatus>;

const LiveStatus = record({
  pid: z.int(),
  version: z.string(),
  startedMs: z.number(),
  service: PaceState,
  sources: list(SourceStatus),
  removed: list(RemovedStatus),
  progress: Progress,
  /** Files a second lately; null while there is nothing to do. */
  filesPerSecond: z.number().nullable(),
  secondsLeft: z.number().nullable(),
  /** Whether everything that was noticed is done. */
  idle: z.boolean(),
});
/** A running daemon, as of now. */
export type LiveStatus = z.infer<typeof LiveStatus>;

const FileActivity = record({
  /** Something is left to do with it: it is in flight, or compared again later. */
  pending: z.boolean(),
  /** It is read, sent or deleted right now, or as soon as its turn comes. */
  underWay: z.boolean(),
});
/** What goes on with a file, beyond what the ledger says of it. */
export type FileActivity = z.infer<typeof FileActivity>;

const ACTIONS = ["create", "update", "retitle", "move", "replace", "delete", "touch"] as const;
const Activity = record({
  atMs: z.number(),
  /** The source's folder. */
  source: z.string(),
  path: z.string(),
  /** Where the file was before, of a move. */
  from: z.string().optional(),
  docId: z.string().optional(),
  /**
   * `audit`: the service's list showed another state than the ledger, and what was done about it. `discard`: a resource
   * was deleted that is not the file's own, or not any more; the file is still there.
   */
  action: z.enum([...ACTIONS, "read", "adopt", "audit", "discard"]),
  /** What came of it. `skipped`: the file is left out, which is no failure. */
  outcome: z.enum(["done", "refused", "skipped", "parked"]),
  durationMs: z.number(),
  message: z.string().optional(),
});
/** One thing the daemon did, or could not do. */
export type DaemonActivity = z.infer<typeof Activity>;

/** What a person approves. */
const Approval = record({
  source: z.string(),
  /**
   * Deletes that were held, or files missing from the folder before which the source is halted; 0 for what the service
   * has lost, which is sent again.
   */
  held: z.number(),
  reason: z.string(),
  /** Names exactly this: another one as soon as anything joins what is held, or leaves it. */
  token: z.string(),
});
export type Approval = z.infer<typeof Approval>;

/** What is tried again of a source because a person asked for it. */
const Retried = record({
  source: z.string(),
  /** Files that the service would not take, or that could not become a resource. */
  failed: z.number(),
  /** Files that were put aside for some time. */
  parked: z.number(),
  /** Files that are left out; counted only where a path was named. */
  skipped: z.number(),
  /** Deletes that the service would not do. */
  deletes: z.number(),
});
export type Retried = z.infer<typeof Retried>;

/** How a source's resources were found. */
const AuditedSource = record({
  path: z.string(),
  /** Resources that were compared; those sent a short while ago are not. */
  resources: z.number(),
  missing: z.number(),
  altered: z.number(),
  /** Resources that are too new to be judged by a list that may be stale. */
  unjudged: z.number(),
  /** Why nothing is sent again although much is missing or altered; null where nothing stands against it. */
  lost: z.string().nullable(),
  /** False: there is no list yet, for the service has not told the collection's id. */
  listed: z.boolean(),
});
export type AuditedSource = z.infer<typeof AuditedSource>;

/** Something that the service's list shows and the ledger does not expect. */
const Finding = record({
  /** Folder of the source; of a collection and owner that several share, one of them. */
  source: z.string(),
  /** Empty for a resource that belongs to no file. */
  path: z.string(),
  docId: z.string(),
  title: z.string(),
  /**
   * `missing`, `altered`: a file's resource. `twice`: a second one of ours. `same`: equal to one of ours, perhaps
   * another's. `returned`: we deleted it, and it is there again. `foreign`: of nobody that is known here.
   */
  kind: z.enum(["missing", "altered", "twice", "same", "returned", "foreign"]),
  /** In words. */
  what: z.string(),
  /** Whether it is being put right; a foreign resource never is. */
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** What an audit found. */
const AuditReport = record({
  sources: list(AuditedSource),
  /** At most 10,000; foreign resources among them are only the first few. */
  findings: list(Finding),
  /** Findings that are not named; foreign ones are not among them. */
  unnamed: z.number(),
  /** Resources of nobody that is known here. They are never touched. */
  foreign: z.number(),
  /** Whether every file's resource is there as it was acknowledged, and nothing of ours twice. */
  agrees: z.boolean(),
  /** Findings that are not put right; foreign resources are none. */
  left: z.number(),
});
export type AuditReport = z.infer<typeof AuditReport>;

/** What keeps a file, or a source as a whole (its path is empty), from agreement. */
const WaitReason = record({ source: z.string(), path: z.string(), code: z.string(), message: z.string() });
export type WaitReason = z.infer<typeof WaitReason>;

const WaitAnswer = record({
  /** `timeout`: it was not over in time. */
  end: z.enum(["agreed", "troubled", "timeout"]),
  /** How many files keep it from agreement, or are still waited for. */
  troubled: z.number(),
  /** The first of them. */
  reasons: list(WaitReason),
  /** The path is not there, and nothing of it is known. */
  unknown: z.literal(true).optional(),
  /** The service as it was then, to say why a wait took too long. */
  service: PaceState,
});
/** How a wait ended. */
export type WaitAnswer = z.infer<typeof WaitAnswer>;

const Waiting = record({
  waiting: z.number(),
  /** Given when nothing has become fewer for some time. */
  service: PaceState.optional(),
});
/** A wait goes on. */
export type Waiting = z.infer<typeof Waiting>;

const OfFolder = z.strictObject({ folder: Path.optional() });
const OfPath = z.strictObject({ path: Path.optional() });
const OfLog = OfPath.extend({
  limit: z.coerce.number().int().min(0).max(LOG_LINES_MAX).default(LOG_LINES_DEFAULT),
});
const Folders = record({ sources: list(z.string()) });

/** Begins the path of every operation. */
export const DAEMON_PREFIX = "/v1/daemon";

/**
 * The operations, by the last part of their path. One with a `line` answers in lines of JSON: any number of these, then its
 * answer, or the failure that ended it.
 */
export const DAEMON_API = {
  status: { method: "GET", request: z.strictObject({}), answer: LiveStatus },
  file: {
    method: "GET",
    request: z.strictObject({ path: Path }),
    answer: FileActivity.unwrap().extend({ service: PaceState }),
  },
  log: { method: "GET", request: OfLog, answer: record({ activities: list(Activity) }) },
  /** As `log`, then every activity until the client goes. */
  follow: { method: "GET", request: OfLog, line: Activity, answer: z.never() },
  wait: {
    method: "GET",
    request: OfPath.extend({ timeoutSeconds: z.coerce.number().positive().max(WAIT_SECONDS_MAX).optional() }),
    line: Waiting,
    answer: WaitAnswer,
  },
  pause: { method: "POST", request: OfFolder, answer: Folders },
  resume: { method: "POST", request: OfFolder, answer: Folders },
  rescan: { method: "POST", request: OfFolder, answer: Folders },
  retry: { method: "POST", request: OfPath, answer: record({ sources: list(Retried) }) },
  approve: {
    method: "POST",
    request: OfFolder.extend({ token: z.string().max(100) }),
    answer: record({ approved: list(Approval) }),
  },
  verify: {
    method: "POST",
    request: OfFolder.extend({ repair: z.boolean().default(false) }),
    answer: AuditReport,
  },
} as const satisfies Record<string, Operation>;

interface Operation {
  readonly method: "GET" | "POST";
  readonly request: z.ZodType;
  readonly line?: z.ZodType;
  readonly answer: z.ZodType;
}

export type DaemonOperation = keyof typeof DAEMON_API;
export type RequestOf<N extends DaemonOperation> = z.infer<(typeof DAEMON_API)[N]["request"]>;
export type AnswerOf<N extends DaemonOperation> = z.infer<(typeof DAEMON_API)[N]["answer"]>;
export type LineOf<N extends DaemonOperation> = (typeof DAEMON_API)[N] extends {
  line: infer L extends z.ZodType;
}
  ? z.infer<L>
  : never;

/** A failure of the daemon names its subject too, a path or a token, and whether the same request may succeed later. */
export const DaemonFailure = Failure.extend({
  error: Failure.shape.error.extend({ subject: z.string().optional(), retryable: z.boolean() }),
});
export type DaemonFailure = z.infer<typeof DaemonFailure>;
