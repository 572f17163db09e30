import { z } from "zod";
import { LeftOut } from "./daemon-folders.ts";
import { Tier } from "./primitives.ts";
import { record, list } from "./records.ts";

/** The limit of the configuration on what is sent. */
const LimitState = record({ kind: z.literal("limited"), requestsPerMinute: z.number() });
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
    /** Advice for a person, if waiting does not help. */
    hint: z.string().optional(),
    /** The service asked for a wait of a minute or more; `retry` ends it. */
    isAsked: z.literal(true).optional(),
    /** Unix time at which the daemon gives up; undefined: never. */
    givesUpMs: z.number().optional(),
  }),
  record({ kind: z.literal("key_refused"), untilMs: z.number(), reason: z.string() }),
  /** The service answers, and the limit of the configuration holds. */
  LimitState,
]);
export type PaceState = z.infer<typeof PaceState>;
/** State of the service as its answers show it. */
export type GateState = Exclude<PaceState, LimitState>;

/** Progress of the work found since the daemon started. */
const Progress = record({
  done: z.number(),
  total: z.number(),
  /** Changes that the service has acknowledged. A file that was only touched causes none. */
  sent: z.number(),
  /** Changes that the service refused or did not answer, and files that could not be read. */
  failed: z.number(),
  /** Files that are being sent, and deletes. */
  inFlight: z.number(),
  /** Files that are sent unchanged, PDFs and images. They take far longer than a text. */
  documents: record({ done: z.number(), total: z.number() }),
});
export type Progress = z.infer<typeof Progress>;

/**
 * What a person should know about a folder or file of a source: a mount that changed, an ignore file that cannot be read, or
 * a pattern that may not mean what its writer expects. Nothing is sent or deleted below the first two.
 */
const FolderWarning = record({
  path: z.string(),
  reason: z.string(),
  /** Advice for a person, in a sentence. */
  remedy: z.string(),
});
export type FolderWarning = z.infer<typeof FolderWarning>;

/** What a person may approve. */
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
export const Approvals = list(Approval);

/** Status of one source. Counts are of files. */
const SourceStatus = record({
  path: z.string(),
  tier: Tier,
  ownerId: z.string(),
  /** Null until the service has reported it. */
  collectionId: z.string().nullable(),
  /** Existing wanted files: searchable, being read, waiting or failed, by their newest version. */
  files: z.number(),
  /**
   * Whether the whole folder has been compared with the ledger since the daemon started, or was before it ended. False:
   * more files may wait than these counts include.
   */
  compared: z.boolean(),
  searchable: z.number(),
  /** Files that the service has and reads. */
  reading: z.number(),
  /** Files that are not at the service yet; of a halted source all of them. */
  waiting: z.number(),
  failed: z.number(),
  /** Deletes that the service refuses. */
  deletesRefused: z.number(),
  /** Skipped files, empty or of an unsupported kind; not among `files`. */
  skipped: z.number(),
  /** Searchable files that the service read only in part; `kbsync why FILE` lists which parts. */
  readInPart: z.number(),
  /** Deletes that wait for approval. */
  held: z.number(),
  /** Files that are gone and whose documents stay, as `deletes` of the source says; not among `files`. */
  kept: z.number(),
  /** Why deletes are held or the whole source is halted; null if neither. */
  holdReason: z.string().nullable(),
  /** Nothing is sent, because the folder is missing or another one. */
  halted: z.boolean(),
  /** Advice about the hold reason, in one sentence; null without one. */
  remedy: z.string().nullable(),
  /** What an approval would cover now; null if there is nothing to approve. */
  approval: Approval.nullable(),
  /** Folders and files that could not be read. */
  unreadable: z.number(),
  /** The first of them, "" for the source's folder; empty if the ledger alone is the source, which has only the count. */
  unreadablePaths: list(z.string()),
  /** Changed mounts and problems of ignore files; empty without a running daemon. */
  warnings: list(FolderWarning),
  /** What the rules leave out, most first; empty without a running daemon. */
  leftOut: list(LeftOut),
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
  /** What an approval would cover now. */
  approval: Approval,
});
export type RemovedStatus = z.infer<typeof RemovedStatus>;

export const LiveStatus = record({
  pid: z.int(),
  version: z.string(),
  startedMs: z.number(),
  /** Changes of the configuration and of key files that are not in force, each with the reason. */
  notApplied: list(z.string()),
  service: PaceState,
  sources: list(SourceStatus),
  removed: list(RemovedStatus),
  /** What waits at the service in the ranges that are searched by meaning; null: it does not say, or not within a second. */
  pending: record({
    read: z.number(),
    embed: z.number(),
    /** `embed` is a lower bound. */
    more: z.literal(true).optional(),
    /** Searches use words alone now: the embedding model is missing or does not answer. */
    isOff: z.boolean(),
  }).nullable(),
  progress: Progress,
  /** Recent files per second; null while there is nothing to do. */
  filesPerSecond: z.number().nullable(),
  secondsLeft: z.number().nullable(),
  /** Whether all known work is done. */
  idle: z.boolean(),
});
/** Current status of a running daemon. */
export type LiveStatus = z.infer<typeof LiveStatus>;
