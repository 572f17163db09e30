import { z } from "zod";
import {
  DaemonActivity,
  Explanation,
  PutBack,
  SkippedFile,
  TrashedText,
  TroubledFile,
  TroubledState,
} from "./daemon-files.ts";
import { FolderAdded, FolderPreview, FolderRemoved, NewFolder, RemoveFolder } from "./daemon-folders.ts";
import { OWNER_CHARS_MAX } from "./constants.ts";
import { ErasureReport } from "./erasure.ts";
import { Failure } from "./failure.ts";
import { LedgerReceipt, LedgerReceiptRequest } from "./receipt.ts";

/**
 * The API of a running daemon: HTTP over the Unix socket in its state folder. A GET takes its request from the query, a
 * POST from a JSON body.
 */

/** Largest number of activities per request, which is as many as the ledger keeps. */
export const LOG_LINES_MAX = 10_000;
/** Number of activities returned by default. */
export const LOG_LINES_DEFAULT = 50;
/** Longest wait of a request: a day. */
export const WAIT_SECONDS_MAX = 86_400;
/** Largest number of files in one list. */
export const FILES_MAX = 10_000;
/** Number of files listed by default. */
const FILES_DEFAULT = 1000;

const record = <S extends z.ZodRawShape>(shape: S) => z.object(shape).readonly();
const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();

/** Absolute, so that it does not depend on the daemon's working folder. File systems allow no NUL. */
const Path = z.string().regex(/^\/[^\0]*$/, "an absolute path");

/** Unix time that a Date can represent (ECMA-262, 21.4.1.1). */
const TimeMs = z.number().min(-8.64e15).max(8.64e15);

/** Limits of the configuration on what is sent. */
const LimitState = record({
  kind: z.literal("limited"),
  /** Bytes of documents per second; 0: none are sent. Undefined: no limit. */
  uploadRate: z.number().optional(),
  requestsPerMinute: z.number().optional(),
  /** Unix time from which other limits hold; undefined: never. */
  untilMs: z.number().optional(),
});
export type LimitState = z.infer<typeof LimitState>;

/** State of sending to the service. */
export const PaceState = z.discriminatedUnion("kind", [
  record({ kind: z.literal("open") }),
  /** The service does not answer, or answers wrongly. */
  record({
    kind: z.literal("waiting"),
    /** Unix time of the next try. */
    untilMs: z.number(),
    reason: z.string(),
    /** What a person can do, if waiting does not help. */
    hint: z.string().optional(),
    /** Unix time at which the daemon gives up; undefined: never. */
    givesUpMs: z.number().optional(),
  }),
  record({ kind: z.literal("key_refused"), untilMs: z.number(), reason: z.string() }),
  /** The service answers, and limits of the configuration hold. */
  LimitState,
]);
export type PaceState = z.infer<typeof PaceState>;
/** State of the service as its answers show it. */
export type GateState = Exclude<PaceState, LimitState>;

/** Progress of the work found since the daemon started. */
const Progress = record({
  done: z.number(),
  total: z.number(),
  /** Done files that caused a request. A file that was only touched causes none. */
  sent: z.number(),
  /** Done files that the service refused or that could not be read. */
  failed: z.number(),
  /** Bytes of the done files. */
  bytes: z.number(),
  /** Files that are being sent, and deletes. */
  inFlight: z.number(),
  /** Those of the files that are sent as they are, PDFs and images. They take far longer than a text. */
  documents: record({ done: z.number(), total: z.number() }),
});
export type Progress = z.infer<typeof Progress>;

/** A mount below a source that changed. Nothing below it is sent or deleted. */
const MountTrouble = record({
  path: z.string(),
  reason: z.string(),
  /** What a person can do, in a sentence. */
  remedy: z.string(),
});
export type MountTrouble = z.infer<typeof MountTrouble>;

/** Status of one source. Counts are of files. */
const SourceStatus = record({
  path: z.string(),
  ownerId: z.string(),
  /** Null until the service has reported it. */
  collectionId: z.string().nullable(),
  /** Existing wanted files: in agreement, waiting or failed. */
  files: z.number(),
  /**
   * Whether the whole folder has been compared with the ledger since the daemon started, or was before it ended. False:
   * more files may wait than these counts include.
   */
  compared: z.boolean(),
  inAgreement: z.number(),
  waiting: z.number(),
  /** Files that the service refuses, and deletes that it refuses; the latter are not among `files`. */
  failed: z.number(),
  /** Skipped files, empty or of an unsupported kind; not among `files`. */
  skipped: z.number(),
  /** Files in agreement that the service read only in part; `kbsync why FILE` lists which parts. */
  readInPart: z.number(),
  /** Deletes that wait for approval. */
  held: z.number(),
  /** Why deletes are held or the whole source is halted; null if neither. */
  holdReason: z.string().nullable(),
  /** Nothing is sent, because the folder is missing or another one. */
  halted: z.boolean(),
  /** What a person can do about the hold reason, in one sentence; null without one. */
  remedy: z.string().nullable(),
  /** Identifies exactly what an approval would cover now; null if there is nothing to approve. */
  approvalToken: z.string().nullable(),
  /** Folders and files that could not be read. */
  unreadable: z.number(),
  /** The first of them, "" for the source's folder; empty if the ledger alone is the source, which has only the count. */
  unreadablePaths: list(z.string()),
  /** Changed mounts below the folder, which also count as unreadable; empty without a running daemon. */
  mounts: list(MountTrouble),
  /** Why some changes are found late; null while events report all. */
  degraded: z.string().nullable(),
  /** A person paused the source. */
  paused: z.boolean(),
});
export type SourceStatus = z.infer<typeof SourceStatus>;

/** A source that left the configuration. Its resources stay until a person approves their deletion. */
const RemovedStatus = record({
  path: z.string(),
  ownerId: z.string(),
  collectionId: z.string().nullable(),
  /** Resources that it still has at the service. */
  resources: z.number(),
  /** A person has approved their deletion. */
  approved: z.boolean(),
  /** Identifies exactly what an approval would cover now. */
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
  /** Recent files per second; null while there is nothing to do. */
  filesPerSecond: z.number().nullable(),
  secondsLeft: z.number().nullable(),
  /** Whether all known work is done. */
  idle: z.boolean(),
});
/** Current status of a running daemon. */
export type LiveStatus = z.infer<typeof LiveStatus>;

const FileActivity = record({
  /** Work is left: the file is in flight, or will be compared again. */
  pending: z.boolean(),
  /** The file is queued, or being read, sent or deleted. */
  underWay: z.boolean(),
});
/** Current work on a file, which the ledger does not record. */
export type FileActivity = z.infer<typeof FileActivity>;

/** What a person approves. */
const Approval = record({
  source: z.string(),
  /**
   * Held deletes, or missing files of a halted source; 0 for resources that the service lost, which are sent again.
   */
  held: z.number(),
  reason: z.string(),
  /** Identifies exactly this; changes as soon as the set of held items changes. */
  token: z.string(),
});
export type Approval = z.infer<typeof Approval>;

/** What a person's retry covers in a source. */
const Retried = record({
  source: z.string(),
  /** Files that the service refused or that could not become a resource. */
  failed: z.number(),
  /** Parked files. */
  parked: z.number(),
  /** Skipped files; counted only if a path was named. */
  skipped: z.number(),
  /** Deletes that the service refused. */
  deletes: z.number(),
});
export type Retried = z.infer<typeof Retried>;

/** Result of an audit for one source. */
const AuditedSource = record({
  path: z.string(),
  /** Compared resources; excludes those sent very recently. */
  resources: z.number(),
  missing: z.number(),
  altered: z.number(),
  /** Resources too new to be judged by a list that may be stale. */
  unjudged: z.number(),
  /** Why nothing is sent again although much is missing or altered; null if repairs proceed. */
  lost: z.string().nullable(),
  /** False: not listed, because the service has not reported the collection's id yet. */
  listed: z.boolean(),
});
export type AuditedSource = z.infer<typeof AuditedSource>;

/** A difference between the service's list and the ledger. */
const Finding = record({
  /** Folder of the source; one of them if several share collection and owner. */
  source: z.string(),
  /** Empty for a resource that belongs to no file. */
  path: z.string(),
  docId: z.string(),
  title: z.string(),
  /**
   * `missing`, `altered`: a file's resource. `twice`: a duplicate of ours. `same`: equal to one of ours, but perhaps of
   * another origin. `returned`: a resource that we deleted exists again. `foreign`: of unknown origin.
   */
  kind: z.enum(["missing", "altered", "twice", "same", "returned", "foreign"]),
  /** Description for people. */
  what: z.string(),
  /** Whether it is being repaired; a foreign resource never is. */
  repaired: z.boolean(),
});
export type Finding = z.infer<typeof Finding>;

/** Result of an audit. */
const AuditReport = record({
  sources: list(AuditedSource),
  /** At most 10,000, with only the first few foreign resources. */
  findings: list(Finding),
  /** Findings beyond those listed, foreign resources excluded. */
  unnamed: z.number(),
  /** Resources of unknown origin. They are never touched. */
  foreign: z.number(),
  /** Whether every file's resource exists as acknowledged, without duplicates. */
  agrees: z.boolean(),
  /** Findings that are not repaired, foreign resources excluded. */
  left: z.number(),
});
export type AuditReport = z.infer<typeof AuditReport>;

/** Why a file, or a whole source (empty path), is not in agreement. */
const WaitReason = record({ source: z.string(), path: z.string(), code: z.string(), message: z.string() });
export type WaitReason = z.infer<typeof WaitReason>;

const WaitAnswer = record({
  end: z.enum(["agreed", "troubled", "timeout"]),
  /** Number of files that prevent agreement or are still pending. */
  troubled: z.number(),
  /** The first of them. */
  reasons: list(WaitReason),
  /** The path does not exist, and the ledger does not know it. */
  unknown: z.literal(true).optional(),
  /** State of the service at the end, to explain a timeout. */
  service: PaceState,
});
/** Result of a wait. */
export type WaitAnswer = z.infer<typeof WaitAnswer>;

const Waiting = record({
  waiting: z.number(),
  /** Present if `waiting` has not decreased for some time. */
  service: PaceState.optional(),
});
/** Progress of a wait. */
export type Waiting = z.infer<typeof Waiting>;

const OfFolder = z.strictObject({ folder: Path.optional() });
const OfPath = z.strictObject({ path: Path.optional() });
const OfLog = OfPath.extend({
  limit: z.coerce.number().int().min(0).max(LOG_LINES_MAX).default(LOG_LINES_DEFAULT),
});
const OfFiles = OfPath.extend({
  limit: z.coerce.number().int().min(0).max(FILES_MAX).default(FILES_DEFAULT),
});
const Folders = record({ sources: list(z.string()) });
const Approvals = list(Approval);

/** What reading the configuration again changed, each key named as in the file. */
const Reloaded = record({
  applied: list(z.string()),
  /** Takes effect at the next start. */
  pending: list(z.string()),
});
export type Reloaded = z.infer<typeof Reloaded>;

/** What an erasure removed. */
const Erased = record({
  /** Records of files in the ledger. */
  files: z.number(),
  /** Saved texts of deleted files. */
  texts: z.number(),
  /** Entries of the log of activities. */
  activities: z.number(),
  service: ErasureReport,
});
export type Erased = z.infer<typeof Erased>;

/** Prefix of the path of every operation. */
export const DAEMON_PREFIX = "/v1/daemon";

/**
 * The operations, by the last part of their path. An operation with a `line` responds in lines of JSON: any number of
 * these, then its answer or the failure that ended it.
 */
export const DAEMON_API = {
  status: { method: "GET", request: z.strictObject({}), answer: LiveStatus },
  /** Every decision about a file. `daemon` is null if no daemon runs. */
  why: {
    method: "GET",
    request: z.strictObject({ path: Path }),
    answer: Explanation.unwrap().extend({
      daemon: FileActivity.unwrap().extend({ service: PaceState }).nullable(),
    }),
  },
  /** Files that are not in agreement, and deletes that the service refuses. */
  troubled: {
    method: "GET",
    request: OfFiles.extend({ state: TroubledState.optional() }),
    answer: record({ files: list(TroubledFile) }),
  },
  /** Files that are left out. */
  skipped: { method: "GET", request: OfFiles, answer: record({ files: list(SkippedFile) }) },
  /** What `approve` would approve. */
  held: { method: "GET", request: OfFolder, answer: record({ held: Approvals }) },
  /** How fresh answers about the folders are; may wait until everything saved before is acknowledged. */
  receipt: { method: "POST", request: LedgerReceiptRequest, answer: LedgerReceipt },
  /** Saved texts of deleted files, newest first. */
  trash: { method: "GET", request: OfPath, answer: record({ texts: list(TrashedText) }) },
  log: { method: "GET", request: OfLog, answer: record({ activities: list(DaemonActivity) }) },
  /** As `log`, then every new activity until the client disconnects. */
  follow: { method: "GET", request: OfLog, line: DaemonActivity, answer: z.never() },
  wait: {
    method: "GET",
    request: OfPath.extend({ timeoutSeconds: z.coerce.number().positive().max(WAIT_SECONDS_MAX).optional() }),
    line: Waiting,
    answer: WaitAnswer,
  },
  pause: { method: "POST", request: OfFolder, answer: Folders },
  resume: { method: "POST", request: OfFolder, answer: Folders },
  rescan: { method: "POST", request: OfFolder, answer: Folders },
  /** Reads the configuration again. What applied takes effect with a new daemon, which answers the next requests. */
  reload: { method: "POST", request: z.strictObject({}), answer: Reloaded, restarts: true },
  /** What would be taken of a folder that is not synced yet. */
  preview: { method: "POST", request: NewFolder, answer: FolderPreview },
  /** Adds a folder to the configuration and reads that again. */
  add: { method: "POST", request: NewFolder, answer: FolderAdded, restarts: true },
  /** Removes a folder from the configuration and reads that again. */
  remove: { method: "POST", request: RemoveFolder, answer: FolderRemoved, restarts: true },
  retry: { method: "POST", request: OfPath, answer: record({ sources: list(Retried) }) },
  approve: {
    method: "POST",
    request: OfFolder.extend({ token: z.string().max(100) }),
    answer: record({ approved: Approvals }),
  },
  /** Restores saved texts as files: the newest of each path, or the newest at `atMs`. */
  undelete: {
    method: "POST",
    request: z.strictObject({ path: Path, atMs: TimeMs.optional() }),
    answer: record({ files: list(PutBack) }),
  },
  /** Erases the documents of a deleted or excluded file or folder, one document, or all of an owner; exactly one of these. */
  erase: {
    method: "POST",
    request: z
      .strictObject({
        path: Path.optional(),
        document: z.string().min(1).max(100).optional(),
        owner: z.string().min(1).max(OWNER_CHARS_MAX).optional(),
      })
      .refine(
        (body) => Object.values(body).filter((value) => value !== undefined).length === 1,
        "expected one of path, document and owner",
      ),
    answer: Erased,
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
  /** The daemon ends with the operation, and another one takes its place, so that its end does not refuse the answer. */
  readonly restarts?: true;
}

export type DaemonOperation = keyof typeof DAEMON_API;
export type RequestOf<N extends DaemonOperation> = z.infer<(typeof DAEMON_API)[N]["request"]>;
export type AnswerOf<N extends DaemonOperation> = z.infer<(typeof DAEMON_API)[N]["answer"]>;
export type LineOf<N extends DaemonOperation> = (typeof DAEMON_API)[N] extends {
  line: infer L extends z.ZodType;
}
  ? z.infer<L>
  : never;

/** Whether the end of the daemon is part of an operation. */
export function restarts(name: DaemonOperation): boolean {
  return "restarts" in DAEMON_API[name];
}

/** A failure of the daemon, with its subject (a path or a token) and whether the same request may succeed later. */
export const DaemonFailure = Failure.extend({
  error: Failure.shape.error.extend({ subject: z.string().optional(), retryable: z.boolean() }),
});
export type DaemonFailure = z.infer<typeof DaemonFailure>;
