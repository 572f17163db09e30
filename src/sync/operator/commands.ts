import { pathBelow } from "../../lib/path-below.ts";
import type { AnswerOf, Approval, DaemonActivity, RequestOf, Retried } from "../../wire/daemon.ts";
import { outsideSources, unknownSource } from "../disk/source-path.ts";
import type { SourceRow } from "../ledger/sources.ts";
import type { RelativePath } from "../plan/model.ts";
import { agreeable, approvalsOf } from "./approve.ts";
import type { OperatorLedger } from "./offline.ts";

/** What a running daemon does at once after a person changed its ledger. Sources have their numbers in the ledger. */
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

/**
 * A person's commands on a ledger. `folder` is a source's, default all of them; an unknown one throws `source_unknown`.
 * `path` is the absolute path of a file or folder in a source, default everything; one outside throws
 * `outside_sources`. Each command resolves when its change is on disk. Without a daemon, the next start acts on it.
 */
export interface Commands {
  /** Stops sending for the sources, across restarts; requests in flight end. Returns their folders. */
  pause(folder?: string): Promise<readonly string[]>;
  /** Resumes the sources, including changes made meanwhile. */
  resume(folder?: string): Promise<readonly string[]>;
  /** Tries failed and parked files again. */
  retry(path?: string): Promise<readonly Retried[]>;
  /**
   * Approves the held deletes, and a replaced root. `token` identifies what the person saw; without it, everything that
   * is held now is approved. Returns what was approved. Throws as `agreeable` does.
   */
  approve(folder?: string, token?: string): Promise<readonly Approval[]>;
  /** Returns what `approve` would approve. */
  held(folder?: string): readonly Approval[];
  /** The newest activities, oldest first. */
  recent(query: RequestOf<"log">): readonly DaemonActivity[];
}

/** A target in a source: its root, or a path below it. */
interface Target {
  readonly row: SourceRow;
  /** Undefined: the source as a whole. */
  readonly below: RelativePath | undefined;
}

/** Opens the commands on a ledger. Without `wakeUps`, no daemon uses it. */
export function openCommands(ledger: OperatorLedger, wakeUps?: WakeUps): Commands {
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
  const agreeableRows = (folder: string | undefined, token?: string): ReturnType<typeof agreeable> => {
    ledger.flush();
    return agreeable(sources, folder, () => chosenRows(ledger, folder), token);
  };

  return {
    pause: (folder) => setPaused(folder, true),
    resume: (folder) => setPaused(folder, false),
    retry: async (path) => {
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
    approve: async (folder, token) => {
      const rows = agreeableRows(folder, token);
      const approvals = approvalsOf(sources, rows);
      const written = ledger.write(() => {
        for (const { id } of rows) sources.approve(id);
      });
      for (const { id } of rows) wakeUps?.check(id);
      wakeUps?.removeSources();
      await written;
      return approvals;
    },
    held: (folder) => approvalsOf(sources, agreeableRows(folder)),
    recent: ({ limit, path }) => {
      ledger.flush();
      const [target] = path === undefined ? [] : targetsOf(ledger, path);
      const found =
        target === undefined
          ? ledger.activity.recent(limit)
          : ledger.activity.recentAt(target.row.id, target.below, limit);
      const folders = sources.folders();
      return found
        .toReversed()
        .map((activity) => Object.assign(activity, { source: folders.get(activity.source) ?? "" }));
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
  for (const row of all) {
    const below = pathBelow(row.path, path);
    if (below !== undefined) return [{ row, below: below === "" ? undefined : below }];
  }
  throw outsideSources(
    path,
    all.map((row) => row.path),
  );
}

export type LedgerOperations = {
  readonly [N in "pause" | "resume" | "retry" | "approve"]: (
    commands: Commands,
    request: RequestOf<N>,
  ) => Promise<AnswerOf<N>>;
};

/** The operations of a daemon that only change its ledger. Without a daemon, they run on the ledger directly. */
export const LEDGER_OPERATIONS: LedgerOperations = {
  pause: async (commands, { folder }) => ({ sources: await commands.pause(folder) }),
  resume: async (commands, { folder }) => ({ sources: await commands.resume(folder) }),
  retry: async (commands, { path }) => ({ sources: await commands.retry(path) }),
  approve: async (commands, { folder, token }) => ({ approved: await commands.approve(folder, token) }),
};
