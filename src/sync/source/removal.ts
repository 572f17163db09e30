import { sendDelete } from "../actions/delete.ts";
import type { ActionContext } from "../actions/context.ts";
import type { SourceRow } from "../ledger/sources.ts";
import type { Deletion } from "../ledger/intents.ts";
import { parkMs } from "../plan/retry.ts";
import type { WorkQueue } from "../queue/queue.ts";
import { openSettler } from "../adopt/recover.ts";
import type { Job } from "./source.ts";

/** Sources that left the configuration and whose resources a person agreed to delete. */
export interface Removals {
  /** Begins with those that are agreed to and not under way. Their folders need not exist. */
  begin(): void;
  /** Whether nothing is being removed; deletes that the service would not do wait for later. */
  isIdle(): boolean;
  stop(): void;
}

export interface RemovalsOptions {
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push">;
  /** One pass: what the service refuses is left to the next. */
  readonly once: boolean;
  /** Told the row of each source that begins to be removed. */
  readonly onBegin: (row: SourceRow) => void;
  readonly onWarning: (error: Error) => void;
  /** Something that nobody foresaw. */
  readonly onError: (error: unknown) => void;
  /** Something that `isIdle` tells has changed. */
  readonly onChange: () => void;
}

/** Rows that become intents in one transaction. */
const BATCH_ROWS = 1000;

/** Opens the removals. Nothing is read before `begin`. */
export function openRemovals(options: RemovalsOptions): Removals {
  const { context, queue, once } = options;
  const { ledger } = context;
  const stopping = new AbortController();
  const timers = new Set<NodeJS.Timeout>();
  const busy = new Set<number>();

  /** The rows of a source become delete intents, some at a time: a crash in between leaves rows that the next start takes. */
  const begin = async (source: number): Promise<void> => {
    for (;;) {
      stopping.signal.throwIfAborted();
      ledger.flush();
      const rows = ledger.files.some(source, BATCH_ROWS);
      if (rows.length === 0) return;
      await ledger.write(() => {
        for (const { id, docId } of rows) {
          if (docId !== null) ledger.intents.deleteFile(id, context.trash?.tries ?? 0);
          ledger.files.remove(id);
        }
      });
    }
  };

  const remove = async (row: SourceRow): Promise<void> => {
    // A create that was cut off may have made a resource that no row owns yet; the list tells.
    const settler = openSettler({
      context,
      source: { id: row.id, lookAgain: () => undefined, deleteLater: () => undefined },
      stopped: stopping.signal,
      once,
      isRemoval: true,
      onWarning: options.onWarning,
    });
    await settler.recover();
    settler.stop();
    await begin(row.id);
    const open = ledger.intents.deletes(row.id);
    if (open.length === 0) finish(row.id);
    else send(row, open);
  };

  const send = (row: SourceRow, deletions: readonly Deletion[]): void => {
    const source = { id: row.id, root: row.path };
    let left = deletions.length;
    const refused: Deletion[] = [];
    const taker: Extract<Job, { kind: "delete" }>["source"] = {
      delete: async (deletion) => {
        if ((await sendDelete(context, source, deletion)) === "refused") refused.push(deletion);
      },
      done: () => {
        left -= 1;
        if (left > 0) return;
        if (refused.length > 0) again(row, refused);
        else finish(row.id);
      },
    };
    queue.push(
      deletions.map((deletion) => ({ kind: "delete", source: taker, deletion })),
      { last: true },
    );
  };
  /** How often the deletes of a source were refused, in this run. */
  const rounds = new Map<number, number>();
  const again = (row: SourceRow, refused: readonly Deletion[]): void => {
    const source = row.id;
    busy.delete(source);
    const round = (rounds.get(source) ?? 0) + 1;
    rounds.set(source, round);
    if (!once && !stopping.signal.aborted) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        busy.add(source);
        send(row, refused);
      }, parkMs(round));
      timer.unref();
      timers.add(timer);
    }
    options.onChange();
  };
  const finish = (source: number): void => {
    ledger.note(() => ledger.sources.approvalUsed(source));
    busy.delete(source);
    rounds.delete(source);
    options.onChange();
  };

  return {
    begin: () => {
      ledger.flush();
      for (const row of ledger.sources.removed()) {
        if (!row.approved || busy.has(row.id) || rounds.has(row.id)) continue;
        busy.add(row.id);
        options.onBegin(row);
        remove(row).catch((error: unknown) => {
          if (!stopping.signal.aborted) options.onError(error);
        });
      }
    },
    isIdle: () => busy.size === 0,
    stop: () => {
      stopping.abort(new Error("the daemon is stopping"));
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
