import { z } from "zod";
import { DaemonActivity, Explanation, ListedFile, PutBack, TrashedText } from "./daemon-files.ts";
import { AddFolder, FolderAdded, FolderRemoved, RemoveFolder } from "./daemon-folders.ts";
import { Failure } from "./failure.ts";
import { LISTED_STATES } from "./file-state.ts";
import { record, list } from "./records.ts";
import { Approvals, PaceState, LiveStatus } from "./daemon-status.ts";
import { AuditReport } from "./daemon-audit.ts";

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
/** Largest number of reasons in the answer of a wait. */
export const WAIT_REASONS_MAX = 100;
/** Largest number of files in one list. */
export const FILES_MAX = 10_000;
/** Number of files listed by default. */
const FILES_DEFAULT = 1000;

/** Absolute, so that it does not depend on the daemon's working folder. File systems allow no NUL. */
const Path = z.string().regex(/^\/[^\0]*$/, "an absolute path");

/** Unix time that a Date can represent (ECMA-262, 21.4.1.1). */
const TimeMs = z.number().min(-8.64e15).max(8.64e15);

/** The part of a source that a retry covers. */
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

/** Why a file, or all of a source (empty path), is not searchable as it is on disk. */
const WaitReason = record({ source: z.string(), path: z.string(), code: z.string(), message: z.string() });
export type WaitReason = z.infer<typeof WaitReason>;

const WaitAnswer = record({
  end: z.enum(["searchable", "troubled", "timeout"]),
  /** Number of files that are not searchable as they are on disk. */
  troubled: z.number(),
  /** The first of them. */
  reasons: list(WaitReason),
  /**
   * Files of which only pictures remain to be read, and which were not waited for; 0 if a file, or a folder in a source, was
   * named.
   */
  reading: z.number(),
  /** Absolute paths of the first of them. */
  readingPaths: list(z.string()),
  /** Documents that are not found by meaning yet, where that was waited for. */
  embedding: z.number(),
  /** The path does not exist, and the ledger does not know it. */
  unknown: z.literal(true).optional(),
  /** State of the service at the end, to explain a timeout. */
  service: PaceState,
});
/** Result of a wait. */
export type WaitAnswer = z.infer<typeof WaitAnswer>;

const Waiting = record({
  waiting: z.number(),
  /** Documents that are not found by meaning yet; then no file waits. */
  embedding: z.number().optional(),
  /** Present if `waiting` has not decreased for some time. */
  service: PaceState.optional(),
});
/** Progress of a wait. */
export type Waiting = z.infer<typeof Waiting>;

const OfFolder = z.strictObject({ folder: Path.optional() });
const OfPath = z.strictObject({ path: Path.optional() });
const OfLog = OfPath.extend({
  follow: z.enum(["true", "false"]).optional(),
  limit: z.coerce.number().int().min(0).max(LOG_LINES_MAX).default(LOG_LINES_DEFAULT),
});
const OfFiles = OfPath.extend({
  /** Default: `held`, `failed` and `waiting`. */
  state: z.enum([...LISTED_STATES, "deleted"]).optional(),
  limit: z.coerce.number().int().min(0).max(FILES_MAX).default(FILES_DEFAULT),
});
const Folders = record({ sources: list(z.string()) });

/** The changes of a reload, each key named as in the file. */
const Reloaded = record({
  applied: list(z.string()),
  /** Takes effect at the next start. */
  pending: list(z.string()),
});
export type Reloaded = z.infer<typeof Reloaded>;

/** Prefix of the path of every operation. */
export const DAEMON_PREFIX = "/v1/daemon";

/**
 * The operations, by the last part of their path. An operation with a `line` may respond in lines of JSON: some of these,
 * then its answer or the failure that ended it.
 */
export const DAEMON_API = {
  status: { method: "GET", request: z.strictObject({}), answer: LiveStatus },
  /** Every decision about a file, and the state of its newest version. `daemon` is null if no daemon runs. */
  why: {
    method: "GET",
    request: z.strictObject({ path: Path }),
    answer: Explanation.unwrap().extend({
      daemon: record({ service: PaceState }).nullable(),
    }),
  },
  /** Files that are not searchable as they are on disk; for the state `deleted` the saved texts of files, newest first. */
  files: {
    method: "GET",
    request: OfFiles,
    answer: record({ files: list(ListedFile), deleted: list(TrashedText) }),
  },
  /** With `follow`, lines: the same activities, then every new one until the client disconnects. */
  log: {
    method: "GET",
    request: OfLog,
    line: DaemonActivity,
    answer: record({ activities: list(DaemonActivity) }),
  },
  wait: {
    method: "GET",
    request: OfPath.extend({
      timeoutSeconds: z.coerce.number().positive().max(WAIT_SECONDS_MAX).optional(),
      /** Waits until everything is found by meaning too. */
      embedded: z.enum(["true", "false"]).optional(),
    }),
    line: Waiting,
    answer: WaitAnswer,
  },
  /** Stops sending, or resumes it. */
  pause: {
    method: "POST",
    request: OfFolder.extend({ paused: z.boolean().default(true) }),
    answer: Folders,
  },
  /** Reads the configuration again. What applied takes effect with a new daemon, which answers the next requests. */
  reload: { method: "POST", request: z.strictObject({}), answer: Reloaded, restarts: true },
  /** Adds a folder to the configuration and reads that again. */
  add: { method: "POST", request: AddFolder, answer: FolderAdded, restarts: true },
  /** Removes a folder from the configuration and reads that again. */
  remove: { method: "POST", request: RemoveFolder, answer: FolderRemoved, restarts: true },
  /** Tries failed and waiting files again, and compares the rest with the disk. */
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
  /**
   * Erases the documents of a deleted or excluded file or folder; returns their number. `purged`: the service has removed their
   * texts. Otherwise it has deleted the documents, and does not declare more.
   */
  erase: {
    method: "POST",
    request: z.strictObject({ path: Path }),
    answer: record({ documents: z.number(), purged: z.boolean() }),
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
