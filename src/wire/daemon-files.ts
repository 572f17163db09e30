import { z } from "zod";
import { ResourceSettings } from "./answers.ts";
import { Tier } from "./primitives.ts";
import { list, record } from "./records.ts";
import { LISTED_STATES } from "./file-state.ts";

/** Files in the answers of a running daemon. */

/**
 * State of a file. `agreed`: the service acknowledged what the ledger says. `unsure`: an update was sent and no answer
 * came, so the file is checked and sent again. `failed`: refused; the reason remains until the file or its rules
 * change. `skipped`: empty or of no supported kind, and without a resource. `parked`: failed for now, tried again
 * later. `held`: the file is gone and its delete waits for a person. `doomed`: a person agreed to that delete.
 */
export const FileState = z.enum(["agreed", "unsure", "failed", "skipped", "parked", "held", "doomed"]);
export type FileState = z.infer<typeof FileState>;

/** How a file becomes a resource: its text as content, its bytes uploaded, or the address it holds. */
export const DocumentKind = z.enum(["content", "file", "link"]);
export type DocumentKind = z.infer<typeof DocumentKind>;

/** A file that is not searchable as it is on disk, or a delete that waits or that the service refuses, with the reason. */
export const ListedFile = record({
  /** The source's folder. */
  source: z.string(),
  /** Empty for a whole source of which nothing is sent. */
  path: z.string(),
  state: z.enum(LISTED_STATES),
  /** Its document; null: it has none, or only one of which searches find no version. */
  docId: z.string().nullable(),
  code: z.string(),
  /** The reason; for a skipped file the rule. */
  message: z.string(),
  /** Since when it waits; null: unknown, or it does not. */
  sinceMs: z.number().nullable(),
  /** An older version is searchable meanwhile. */
  hasOlder: z.boolean(),
});
export type ListedFile = z.infer<typeof ListedFile>;

const trashedText = {
  /** Absolute path of the deleted file. */
  path: z.string(),
  /** When the text was saved, right before its resource was deleted: ISO 8601 UTC. */
  deletedAt: z.string(),
  /** When it expires at the latest: ISO 8601 UTC. */
  until: z.string(),
  title: z.string(),
  kind: DocumentKind,
  sizeBytes: z.number(),
  /** Whether these are the deleted file's bytes. Otherwise its text as UTF-8, or a new shortcut to its address. */
  isExact: z.boolean(),
};

/** The saved text of a deleted file. */
export const TrashedText = record(trashedText);
export type TrashedText = z.infer<typeof TrashedText>;

/** The result of restoring one text. */
export const PutBack = z.discriminatedUnion("outcome", [
  record({ ...trashedText, outcome: z.literal("restored") }),
  /** A file of that name exists and is left unchanged. */
  record({ ...trashedText, outcome: z.literal("exists") }),
  record({ ...trashedText, outcome: z.literal("failed"), reason: z.string() }),
]);
export type PutBack = z.infer<typeof PutBack>;

const OnDisk = record({
  kind: z.enum(["file", "folder", "link", "other", "absent", "unreadable"]),
  sizeBytes: z.number().optional(),
  mtimeMs: z.number().optional(),
  ctimeMs: z.number().optional(),
  ino: z.number().optional(),
  /** Target of a link. */
  target: z.string().optional(),
  /** Description of a file that is none of the other kinds. */
  what: z.string().optional(),
  /** Why it is inaccessible: the system's error code. */
  error: z.string().optional(),
});
/** The entry at a path. */
export type OnDisk = z.infer<typeof OnDisk>;

const FileFacts = record({
  id: z.number(),
  docId: z.string().nullable(),
  state: FileState,
  sizeBytes: z.number(),
  mtimeMs: z.number(),
  ctimeMs: z.number(),
  /** SHA-256 of the bytes that the service acknowledged, hex; empty when unknown. */
  hash: z.string(),
  title: z.string(),
  fileUrl: z.string().nullable(),
  error: record({ code: z.string(), message: z.string() }).nullable(),
  tries: z.number(),
  /** The service keeps the text in a form of its own. */
  isOwnForm: z.boolean(),
  /** The part of the document that the service could not read; null if it read all of it. */
  warning: z.string().nullable(),
  /** When a parked file is tried again. */
  retryAtMs: z.number().nullable(),
});
/** The ledger's facts about a path, for a person. */
export type FileFacts = z.infer<typeof FileFacts>;

const OpenIntent = record({
  kind: z.enum(["create", "doubt", "delete"]),
  docId: z.string().nullable(),
  /** Null for a delete, which has no time. */
  atMs: z.number().nullable(),
  attempts: z.number(),
  /** Why the service refused it. */
  message: z.string().nullable(),
});
/** A request that was sent, or is about to be, and is not acknowledged. */
export type OpenIntent = z.infer<typeof OpenIntent>;

const ACTIONS = ["create", "update", "retitle", "move", "replace", "delete", "touch"] as const;

const NextStep = record({
  action: z.enum(["nothing", ...ACTIONS, "skip", "refuse", "wait", "hold"]),
  /** For a person. */
  why: z.string(),
});
/** The next step for a file. */
export type NextStep = z.infer<typeof NextStep>;

const activity = {
  atMs: z.number(),
  path: z.string(),
  /** Previous path, for a move. */
  from: z.string().optional(),
  docId: z.string().optional(),
  /**
   * `audit`: a repair of a difference between the service's list and the ledger. `discard`: the deletion of a resource that
   * does not, or no longer, belong to the file; the file still exists.
   */
  action: z.enum([...ACTIONS, "read", "adopt", "audit", "discard"]),
  /** `skipped`: the file is left out, which is not a failure. */
  outcome: z.enum(["done", "refused", "skipped", "parked"]),
  durationMs: z.number(),
  message: z.string().optional(),
};

/** One completed or failed action of the daemon. */
export const DaemonActivity = record({
  ...activity,
  /** The source's folder. */
  source: z.string(),
});
export type DaemonActivity = z.infer<typeof DaemonActivity>;

/** State of a file's newest version, and why. */
export const Version = record({
  state: z.enum([...LISTED_STATES, "searchable"]),
  /** What is the matter; for a searchable file `by_words` or `by_meaning`, which includes words. */
  code: z.string(),
  /** For a person. */
  reason: z.string(),
  /** Since when it waits; null: unknown, or it does not. */
  sinceMs: z.number().nullable(),
  /** An older version is searchable meanwhile. */
  hasOlder: z.boolean(),
});
export type Version = z.infer<typeof Version>;

/** Every decision about one file. */
export const Explanation = record({
  source: z.string(),
  path: z.string(),
  wanted: z.boolean(),
  /** The rule that excludes it. */
  leftOutBy: z.string().nullable(),
  disk: OnDisk,
  /** The result of reading it now; null if there is nothing to read. */
  content: record({
    outcome: z.enum(["document", "skipped", "refused", "unreadable", "torn", "gone"]),
    hash: z.string().nullable(),
    /** Why it does not become a resource. */
    reason: z.string().nullable(),
  }).nullable(),
  recipe: record({
    title: z.string(),
    description: z.string(),
    settings: ResourceSettings,
    tier: Tier,
    ownerId: z.string(),
    kind: DocumentKind,
  }).nullable(),
  /** Null: it is not in the ledger. */
  ledger: FileFacts.nullable(),
  /** Rows of earlier files at this path, whose deletes are held. */
  held: list(FileFacts),
  intents: list(OpenIntent),
  state: record({
    paused: z.boolean(),
    halted: z.string().nullable(),
    holdReason: z.string().nullable(),
  }),
  activity: list(record(activity)),
  /** Null for what is no file. */
  version: Version.nullable(),
  next: NextStep,
});
export type Explanation = z.infer<typeof Explanation>;
