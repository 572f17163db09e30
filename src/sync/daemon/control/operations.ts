import { once } from "node:events";
import { KbsyncError } from "../../../lib/failure.ts";
import type { DaemonActivity } from "../../../wire/daemon-files.ts";
import type {
  AddFolder,
  FolderAdded,
  FolderPreview,
  FolderRemoved,
  RemoveFolder,
} from "../../../wire/daemon-folders.ts";
import {
  type AnswerOf,
  type DaemonOperation,
  type LineOf,
  LOG_LINES_MAX,
  type Reloaded,
  type RequestOf,
  WAIT_REASONS_MAX,
} from "../../../wire/daemon.ts";
import type { Daemon } from "../../daemon.ts";
import { ledgerOperations } from "../../operate/commands.ts";

/** The context of a request to an operation. */
export interface OperationContext<Line> {
  /** Aborts when the client disconnects and when the daemon stops. */
  readonly signal: AbortSignal;
  /** Sends the head of an answer in lines. */
  readonly begin: () => void;
  /** Sends a line. A client that does not read is disconnected. */
  readonly emit: (line: Line) => void;
  /** Resolves when there is room for more lines, for operations that send many. */
  readonly drained: () => Promise<void>;
}

/** The operations of a daemon. They throw the errors that clients get. */
export type DaemonOperations = {
  readonly [N in DaemonOperation]: (
    request: RequestOf<N>,
    context: OperationContext<LineOf<N>>,
  ) => Promise<AnswerOf<N>>;
};

/** Facts that the daemon does not know itself. */
interface DaemonFacts {
  readonly version: string;
  readonly startedMs: number;
}

/** The program's services for the daemon. */
export interface DaemonProgram extends FolderChanges {
  /** Reads the configuration again. Throws the KbsyncError of one that is refused. */
  reload(): Promise<Reloaded>;
  /** The changes of the configuration that are not in force, each with the reason. */
  notApplied(): readonly string[];
}

/** Changes which folders the daemon syncs. Throws what `add` and `remove` answer with. */
export interface FolderChanges {
  add(
    request: AddFolder,
    signal: AbortSignal,
  ): Promise<Omit<FolderAdded, "preview"> & { readonly preview: Omit<FolderPreview, "documents"> | null }>;
  remove(request: RemoveFolder): Promise<Omit<FolderRemoved, "documents">>;
}

/** Opens the operations of a daemon. */
export function operationsOf(daemon: Daemon, facts: DaemonFacts, program: DaemonProgram): DaemonOperations {
  const shared = ledgerOperations(daemon);
  return {
    status: async (_request, { signal }) => ({
      pid: process.pid,
      ...facts,
      notApplied: program.notApplied(),
      ...daemon.status(),
      pending: (await daemon.pending(signal)) ?? null,
    }),
    ...shared,
    why: async (request, context) => {
      const found = await shared.why(request, context);
      return { ...found, daemon: { service: daemon.status().service } };
    },
    log: async (query, context) =>
      query.follow === "true" ? follow(daemon, query, context) : shared.log(query, context),
    wait: async (request, operation) => wait(daemon, request, operation),
    erase: async (request, { signal }) => daemon.erase(request, signal),
    reload: async () => program.reload(),
    add: async (request, { signal }) => {
      const { preview, ...added } = await program.add(request, signal);
      return { ...added, preview: preview && { ...preview, documents: daemon.documents(added.path) } };
    },
    remove: async (request) => {
      const documents = daemon.documents(request.folder);
      return { ...(await program.remove(request)), documents };
    },
    verify: async ({ folder, repair }, { signal }) => daemon.audit({ folder, repair, signal }),
  };
}

/** Activities that are buffered for a client that has not read the earlier ones yet. */
const BUFFERED_MAX = 2 * LOG_LINES_MAX;

/** Sends the latest activities, then every new one until the client disconnects. Throws `control_slow`. */
async function follow(
  daemon: Daemon,
  { limit, path }: RequestOf<"log">,
  { signal, begin, emit, drained }: OperationContext<DaemonActivity>,
): Promise<never> {
  const isWanted = ({ source, ...activity }: DaemonActivity): boolean =>
    path === undefined ||
    path === source ||
    [activity.path, activity.from]
      .filter((each) => each !== undefined)
      .map((each) => `${source}/${each}`)
      .some((each) => each === path || each.startsWith(`${path}/`));
  // Reads and subscribes in one turn of the event loop, so that no activity is lost or repeated.
  const left = [...daemon.recent({ limit, path })];
  let isCaughtUp = false;
  const stop = daemon.follow((activity) => {
    if (!isWanted(activity)) return;
    if (isCaughtUp) emit(activity);
    else if (left.length <= BUFFERED_MAX) left.push(activity);
  });
  try {
    begin();
    for (const activity of left) {
      emit(activity);
      await drained();
      signal.throwIfAborted();
    }
    if (left.length > BUFFERED_MAX) {
      throw new KbsyncError("the reader of the log is slower than the daemon's activities", {
        code: "control_slow",
        retryable: true,
      });
    }
    isCaughtUp = true;
    if (!signal.aborted) await once(signal, "abort");
    throw signal.reason as Error; // these signals abort with an Error
  } finally {
    stop();
  }
}

/** Interval at which a waiting client gets a line while the wait continues. */
const HEARTBEAT_MS = 5000;

async function wait(
  daemon: Daemon,
  { path, timeoutSeconds, embedded }: RequestOf<"wait">,
  { signal, emit }: OperationContext<LineOf<"wait">>,
): Promise<AnswerOf<"wait">> {
  const timeout = new AbortController();
  const timer =
    timeoutSeconds === undefined ? undefined : setTimeout(() => timeout.abort(), timeoutSeconds * 1000);
  let progress: { waiting: number; embedding?: number } = { waiting: 0 };
  const heartbeat = setInterval(() => emit({ ...progress, service: daemon.status().service }), HEARTBEAT_MS);
  try {
    const { agreed, ...end } = await daemon.wait({
      path,
      embedded: embedded === "true",
      signal: AbortSignal.any([signal, timeout.signal]),
      onWaiting: (waiting) => emit((progress = { waiting })),
      onEmbedding: (embedding) => (progress = { waiting: 0, embedding }),
    });
    const { service } = daemon.status();
    return { end: agreed ? "searchable" : "troubled", ...end, embedding: 0, service };
  } catch (error) {
    if (!timeout.signal.aborted || signal.aborted) throw error;
    const { waiting, embedding = 0 } = progress;
    const { service } = daemon.status();
    // What a wait without a path leaves out is among those that wait.
    const left = path === undefined ? [] : daemon.files({ path, limit: WAIT_REASONS_MAX });
    const reasons = left
      .filter(({ state }) => state === "waiting" || state === "reading")
      .map(({ source, path: at, code, message }) => ({ source, path: at, code, message }));
    return { end: "timeout", troubled: waiting, reasons, reading: 0, readingPaths: [], embedding, service };
  } finally {
    clearTimeout(timer);
    clearInterval(heartbeat);
  }
}
