import { pathBelow } from "../../lib/path-below.ts";
import type {
  DaemonActivity,
  Explanation,
  ListedFile,
  PutBack,
  TrashedText,
} from "../../wire/daemon-files.ts";
import type { Approval } from "../../wire/daemon-status.ts";
import type { AnswerOf, RequestOf, Retried } from "../../wire/daemon.ts";
import { targetIn, unknownSource } from "../scan/disk/source-path.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { RelativePath } from "../plan/model.ts";
import type { LiveWork } from "../plan/version.ts";
import { openRules, type WatchedSource } from "../scan/rules/rules.ts";
import { listLeftOut } from "../scan/left-out.ts";
import { explain } from "./why/explain.ts";
import { approvable, approvalsOf } from "./approve.ts";
import { type FilesQuery as TargetQuery, listFiles } from "./listed-files.ts";
import type { OperatorLedger } from "./offline.ts";
import { listTrashed, undelete } from "./undelete.ts";

/** The immediate actions of a running daemon after a person changed its ledger. Sources have their numbers in the ledger. */
export interface WakeUps {
  /** Stops sending for a source. */
  pause(source: number): void;
  resume(source: number): void;
  /** Compares a source, or what is at or below a path in it, with the disk. */
  check(source: number, below?: RelativePath): void;
  /** Sends again deletes that the service refused. */
  retryDeletes(source: number, below: RelativePath | undefined): void;
  /** Deletes the resources of removed sources, as approved. */
  removeSources(): void;
}

/** Which files to list; `path` as in other commands. */
export type FilesQuery = Pick<TargetQuery, "limit" | "state"> & { readonly path?: string | undefined };

/** A target in a source: its root, or a path below it. */
interface Target {
  readonly row: SourceRow;
  /** Undefined: the source as a whole. */
  readonly below: RelativePath | undefined;
}

export interface CommandOptions {
  readonly stateDir: string;
  /** The sources that `why` explains. */
  readonly sources: () => readonly WatchedSource[];
  /** Default: no daemon uses the ledger. */
  readonly wakeUps?: WakeUps;
  readonly live?: () => LiveWork;
}

/**
 * A person's commands on a ledger. `folder` is a source's, default all of them; an unknown one throws `source_unknown`.
 * `path` is the absolute path of a file or folder in a source, default everything; one outside throws
 * `outside_sources`. Each command resolves when its change is on disk. Without a daemon, the next start acts on it.
 */
export type Commands = ReturnType<typeof openCommands>;

/** Opens the commands on a ledger. */
export function openCommands(ledger: OperatorLedger, options: CommandOptions) {
  return { ...openChanges(ledger, options), ...openQueries(ledger, options) };
}

/** Opens the commands that change something. */
function openChanges(ledger: OperatorLedger, { stateDir, wakeUps }: CommandOptions) {
  const { sources } = ledger;
  const setPaused = async (folder: string | undefined, paused: boolean): Promise<readonly string[]> => {
    const rows = chosenRows(ledger, folder);
    const wakeUp = (): void => {
      for (const { id } of rows) wakeUps?.[paused ? "pause" : "resume"](id);
    };
    if (paused) wakeUp();
    await ledger.write(() => {
      for (const { id } of rows) ledger.operator.setPaused(id, paused);
    });
    // A resume that was written before this pause may have taken effect in between.
    wakeUp();
    return rows.map(({ path }) => path);
  };
  return {
    /** Stops sending for the sources, across restarts; requests in flight end. Returns their folders. */
    pause: async (folder?: string) => setPaused(folder, true),
    /** Resumes the sources, including changes made meanwhile. */
    resume: async (folder?: string) => setPaused(folder, false),
    /** Tries failed and parked files again, and compares the rest with the disk. */
    retry: async (path?: string): Promise<readonly Retried[]> => {
      const targets = targetsOf(ledger, path);
      const retried: Retried[] = [];
      await ledger.write(() => {
        for (const { row, below } of targets)
          retried.push({ source: row.path, ...ledger.operator.again(row.id, below) });
      });
      for (const { row, below } of targets) {
        wakeUps?.retryDeletes(row.id, below);
        wakeUps?.check(row.id, below);
      }
      return retried;
    },
    /**
     * Approves the held deletes, and a replaced root. `token` identifies what the person saw; without it, everything that
     * is held now is approved. Returns what was approved. Throws as `approvable` does.
     */
    approve: async (folder?: string, token?: string): Promise<readonly Approval[]> => {
      ledger.flush();
      const rows = approvable(sources, folder, () => chosenRows(ledger, folder), token);
      const approvals = approvalsOf(sources, rows);
      const written = ledger.write(() => {
        for (const { id } of rows) sources.approve(id);
      });
      for (const { id } of rows) wakeUps?.check(id);
      wakeUps?.removeSources();
      await written;
      return approvals;
    },
    /** Restores saved texts as files, as `undelete` does. */
    undelete: async (path: string, atMs?: number): Promise<readonly PutBack[]> => {
      ledger.flush();
      const results = await undelete(ledger, stateDir, path, atMs);
      const restored = results.filter(({ outcome }) => outcome === "restored");
      for (const source of sources.active())
        for (const each of restored) {
          const below = pathBelow(source.path, each.path);
          if (below !== undefined) wakeUps?.check(source.id, below === "" ? undefined : below);
        }
      return results;
    },
  };
}

/** Counts the documents that a folder has at the service, whatever the state of its files. */
export function countDocuments({ sources }: Pick<OperatorLedger, "sources">, folder: string): number {
  const removed = sources.removed().find(({ path }) => path === folder);
  const active = sources.active().find(({ path }) => path === folder);
  return removed?.resources ?? (active === undefined ? 0 : sources.withResource(active.id));
}

/** Opens the commands that only read. */
function openQueries(ledger: OperatorLedger, { sources: watched, live }: CommandOptions) {
  const { sources } = ledger;
  return {
    /** Returns how many documents a folder has at the service, whether it is configured or was; 0 for any other. */
    documents: (folder: string): number => {
      ledger.flush();
      return countDocuments(ledger, folder);
    },
    /** Returns the newest activities, oldest first. */
    recent: ({ limit, path }: Pick<RequestOf<"log">, "limit" | "path">): readonly DaemonActivity[] => {
      ledger.flush();
      const [target] = path === undefined ? [] : targetsOf(ledger, path);
      const found =
        target === undefined
          ? ledger.activity.recent(limit)
          : ledger.activity.recent(limit, { source: target.row.id, below: target.below });
      const folders = sources.folders();
      return found
        .toReversed()
        .map((activity) => Object.assign(activity, { source: folders.get(activity.source) ?? "" }));
    },
    /** Returns files that are not searchable as they are on disk, and deletes that the service refuses, with the reason. */
    files: ({ path, ...query }: FilesQuery): readonly ListedFile[] => {
      ledger.flush();
      const [target] = path === undefined ? [] : targetsOf(ledger, path);
      return listFiles(ledger, { ...query, target }, live?.());
    },
    /** Returns files and folders that the rules leave out, with the rule. */
    leftOut: async ({ limit, path }: FilesQuery, signal: AbortSignal): Promise<readonly ListedFile[]> => {
      const found: ListedFile[] = [];
      for (const source of watched()) {
        const below = path === undefined ? "" : pathBelow(source.absolutePath, path);
        if (below === undefined || found.length >= limit) continue;
        found.push(...(await listLeftOut(openRules(source), below, limit - found.length, signal)));
      }
      return found;
    },
    /** Explains every decision about a file, which need not exist. */
    why: async (path: string, signal: AbortSignal): Promise<Explanation> => {
      ledger.flush();
      return explain(ledger, watched(), path, signal, live?.());
    },
    /** Returns the saved texts of deleted files, newest first. */
    trash: (path?: string): readonly TrashedText[] => {
      ledger.flush();
      return listTrashed(ledger, path);
    },
  };
}

/** The configured sources, or the one of that folder. Throws `source_unknown`. */
function chosenRows({ sources }: OperatorLedger, folder: string | undefined): readonly SourceRow[] {
  const all = sources.active();
  const found = all.filter(({ path }) => folder === undefined || path === folder);
  if (folder === undefined || found.length > 0) return found;
  throw unknownSource(
    folder,
    all.map(({ path }) => path),
  );
}

/** The targets of an absolute path; without one, every source. Throws `outside_sources`. */
function targetsOf({ sources }: OperatorLedger, path: string | undefined): readonly Target[] {
  const all = sources.active();
  if (path === undefined) return all.map((row) => ({ row, below: undefined }));
  const { source: row, below } = targetIn(all, (each) => each.path, path);
  return [{ row, below }];
}

/** Operations of a daemon that need only its ledger. Without a daemon, they run on the ledger directly. */
export type LedgerOperation = "pause" | "retry" | "approve" | "log" | "files" | "why" | "undelete";

/** The operations that change the ledger. The others only read it, which another process may do as well. */
export const CHANGES: ReadonlySet<LedgerOperation> = new Set(["pause", "retry", "approve"]);

/** Each operation with its request and its answer. */
export type LedgerOperations = {
  readonly [N in LedgerOperation]: (
    request: RequestOf<N>,
    context: { readonly signal: AbortSignal },
  ) => Promise<AnswerOf<N>>;
};

/** The operations by the commands on a ledger. */
export function ledgerOperations(commands: Commands): LedgerOperations {
  return {
    log: async (query) => ({ activities: commands.recent(query) }),
    files: async ({ state, path, limit }, { signal }) => {
      if (state === "deleted") return { files: [], deleted: commands.trash(path).slice(0, limit) };
      const files = commands.files({ state, path, limit });
      const leftOut = state === "skipped" ? await commands.leftOut({ path, limit }, signal) : [];
      return { files: [...files, ...leftOut].slice(0, limit), deleted: [] };
    },
    why: async ({ path }, { signal }) => ({ ...(await commands.why(path, signal)), daemon: null }),
    undelete: async ({ path, atMs }) => ({ files: await commands.undelete(path, atMs) }),
    pause: async ({ folder, paused }) => ({
      sources: await (paused ? commands.pause(folder) : commands.resume(folder)),
    }),
    retry: async ({ path }) => ({ sources: await commands.retry(path) }),
    approve: async ({ folder, token }) => ({ approved: await commands.approve(folder, token) }),
  };
}
