import { z } from "zod";
import { KbsyncError } from "../../lib/failure.ts";

/**
 * What goes over the control socket: one line of JSON a message. The daemon says hello, the client asks one thing, the
 * daemon answers with any number of events and then one result or error, and closes. A client that goes away before
 * has changed its mind.
 */

/** Raised when an older client or daemon would misunderstand the other. */
export const PROTOCOL = 1;

/** Longest request: a path of 4,096 bytes, each escaped to six characters, and room. */
export const REQUEST_BYTES_MAX = 64 * 1024;
/** Longest line of an answer: status of many sources, or some ten thousand activities. */
export const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Activities that may be asked for at once: as many as the ledger keeps. */
export const LOG_LINES_MAX = 10_000;
/** Longest wait that may be asked for: a day. */
export const WAIT_SECONDS_MAX = 86_400;

/** Absolute, so that nothing depends on the daemon's own working folder; no path of a disk holds a NUL. */
const Path = z.string().regex(/^\/[^\0]*$/);
const Folder = Path.optional();

/** What may be asked. Paths are absolute. */
export const Request = z.discriminatedUnion("command", [
  z.strictObject({ command: z.literal("status") }),
  z.strictObject({ command: z.literal("pause"), folder: Folder }),
  z.strictObject({ command: z.literal("resume"), folder: Folder }),
  z.strictObject({ command: z.literal("rescan"), folder: Folder }),
  z.strictObject({ command: z.literal("approve"), folder: Folder, token: z.string().max(100) }),
  z.strictObject({ command: z.literal("retry"), path: Folder }),
  z.strictObject({
    command: z.literal("log"),
    limit: z.int().min(0).max(LOG_LINES_MAX),
    path: Folder,
    follow: z.boolean(),
  }),
  z.strictObject({ command: z.literal("verify"), folder: Folder, repair: z.boolean() }),
  z.strictObject({ command: z.literal("about"), path: Path }),
  z.strictObject({
    command: z.literal("wait"),
    path: Folder,
    timeoutSeconds: z.number().positive().max(WAIT_SECONDS_MAX).optional(),
  }),
]);
export type Request = z.infer<typeof Request>;
export type CommandName = Request["command"];

const PaceState = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("open") }),
  z.object({
    kind: z.literal("waiting"),
    untilMs: z.number(),
    reason: z.string(),
    hint: z.string().optional(),
  }),
  z.object({ kind: z.literal("key_refused"), untilMs: z.number(), reason: z.string() }),
]);

const SourceStatus = z.object({
  path: z.string(),
  ownerId: z.string(),
  collectionId: z.string().nullable(),
  files: z.number(),
  compared: z.boolean().default(true),
  inAgreement: z.number(),
  waiting: z.number(),
  failed: z.number(),
  skipped: z.number(),
  readInPart: z.number().default(0),
  held: z.number(),
  holdReason: z.string().nullable(),
  halted: z.boolean(),
  remedy: z.string().nullable().default(null),
  approvalToken: z.string().nullable().default(null),
  unreadable: z.number(),
  unreadablePaths: z.array(z.string()).readonly().default([]),
  mounts: z
    .array(z.object({ path: z.string(), reason: z.string(), remedy: z.string() }))
    .readonly()
    .default([]),
  degraded: z.string().nullable(),
  paused: z.boolean(),
});

const Activity = z.object({
  atMs: z.number(),
  source: z.string(),
  path: z.string(),
  from: z.string().optional(),
  docId: z.string().optional(),
  action: z.string(),
  outcome: z.string(),
  durationMs: z.number(),
  message: z.string().optional(),
});
/** An activity as it goes over the wire. */
export type WireActivity = z.infer<typeof Activity>;

const Folders = z.object({ sources: z.array(z.string()) });
const Nothing = z.object({});

/** What a command's result looks like, and each of the events before it. */
export const ANSWERS = {
  status: {
    event: Nothing,
    result: z.object({
      pid: z.int(),
      version: z.string(),
      startedMs: z.number(),
      service: PaceState,
      sources: z.array(SourceStatus),
      progress: z.object({
        done: z.number(),
        total: z.number(),
        sent: z.number(),
        failed: z.number().default(0),
        bytes: z.number(),
      }),
      /** Files a second lately; null while there is nothing to do. */
      filesPerSecond: z.number().nullable(),
      secondsLeft: z.number().nullable(),
      idle: z.boolean(),
    }),
  },
  pause: { event: Nothing, result: Folders },
  resume: { event: Nothing, result: Folders },
  rescan: { event: Nothing, result: Folders },
  approve: {
    event: Nothing,
    result: z.object({
      approved: z.array(
        z.object({ source: z.string(), held: z.number(), reason: z.string(), token: z.string() }),
      ),
    }),
  },
  retry: {
    event: Nothing,
    result: z.object({
      sources: z.array(
        z.object({
          source: z.string(),
          failed: z.number(),
          parked: z.number(),
          skipped: z.number(),
          deletes: z.number(),
        }),
      ),
    }),
  },
  log: { event: Activity, result: Nothing },
  verify: {
    event: Nothing,
    result: z.object({
      sources: z.array(
        z.object({
          path: z.string(),
          resources: z.number(),
          missing: z.number(),
          altered: z.number(),
          unjudged: z.number().default(0),
          lost: z.string().nullable(),
          listed: z.boolean(),
        }),
      ),
      findings: z.array(
        z.object({
          source: z.string(),
          path: z.string(),
          docId: z.string(),
          title: z.string(),
          kind: z.enum(["missing", "altered", "twice", "same", "returned", "foreign"]),
          what: z.string(),
          repaired: z.boolean(),
        }),
      ),
      unnamed: z.number(),
      foreign: z.number(),
      agrees: z.boolean(),
      left: z.number(),
    }),
  },
  about: {
    event: Nothing,
    result: z.object({ pending: z.boolean(), underWay: z.boolean(), service: PaceState }),
  },
  wait: {
    /** With `service`: nothing has become fewer for some time, and so the service is. */
    event: z.object({ waiting: z.number(), service: PaceState.optional() }),
    result: z.object({
      /** `timeout`: it was not over in time. */
      end: z.enum(["agreed", "troubled", "timeout"]),
      troubled: z.number(),
      /** The path is not there, and nothing of it is known. */
      unknown: z.literal(true).optional(),
      reasons: z.array(
        z.object({ source: z.string(), path: z.string(), code: z.string(), message: z.string() }),
      ),
      /** The service as it was then, to say why a wait took too long. */
      service: PaceState,
    }),
  },
} as const satisfies Record<CommandName, { event: z.ZodType; result: z.ZodType }>;

/** Result of a command. */
export type ResultOf<C extends CommandName> = z.infer<(typeof ANSWERS)[C]["result"]>;
/** An event of a command. */
export type EventOf<C extends CommandName> = z.infer<(typeof ANSWERS)[C]["event"]>;

/** The daemon's first line. */
export const Hello = z.object({
  hello: z.object({ protocol: z.int(), version: z.string(), pid: z.int() }),
});
export type Hello = z.infer<typeof Hello>;

/** A failure as it goes over the wire. */
export const Failure = z.object({
  code: z.string(),
  message: z.string(),
  subject: z.string().optional(),
  hint: z.string().optional(),
  retryable: z.boolean(),
});

/** Every later line. */
export const Answer = z.union([
  z.object({ event: z.unknown() }),
  z.object({ result: z.unknown() }),
  z.object({ error: Failure }),
]);

/** Puts a failure on the wire; one that nobody expected is told by its message alone. */
export function failureOf(error: unknown): z.infer<typeof Failure> {
  if (!(error instanceof KbsyncError)) {
    const message = error instanceof Error ? error.message : String(error);
    return { code: "control_failed", message, retryable: false };
  }
  return {
    code: error.code,
    message: error.message,
    ...(error.subject !== undefined && { subject: error.subject }),
    ...(error.hint !== undefined && { hint: error.hint }),
    retryable: error.retryable,
  };
}

/** Takes it off again. */
export function errorOf({ code, message, subject, hint, retryable }: z.infer<typeof Failure>): KbsyncError {
  return new KbsyncError(message, {
    code,
    retryable,
    ...(subject !== undefined && { subject }),
    ...(hint !== undefined && { hint }),
  });
}
