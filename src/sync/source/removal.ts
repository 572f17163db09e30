import { sendDelete } from "../actions/delete.ts";
import type { ActionContext } from "../actions/context.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import { parkMs } from "../plan/retry.ts";
import type { WorkQueue } from "../queue/queue.ts";
import { ownResources } from "../identity/own-resources.ts";
import type { Job } from "./source.ts";

/** Deletes the resources of sources that left the configuration, after a person agreed. */
export interface Removals {
  /** Begins with those that are agreed to and not in flight. Their folders need not exist. */
  begin(): void;
  /** Reports whether nothing is being removed. Deletes that the service refused wait for later. */
  isIdle(): boolean;
  stop(): void;
}

export interface RemovalsOptions {
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push">;
  /** One pass: leaves what the service refuses to the next. */
  readonly once: boolean;
  /** Notified of each source whose removal begins. */
  readonly onBegin: (row: SourceRow) => void;
  readonly onWarning: (error: Error) => void;
  /** Called for an unforeseen error. */
  readonly onError: (error: unknown) => void;
  /** Notified when the result of `isIdle` may have changed. */
  readonly onChange: () => void;
}

/** Rows that become intents in one transaction. */
const BATCH_ROWS = 1000;

/** Opens the removals. Reads nothing before `begin`. */
export function openRemovals(options: RemovalsOptions): Removals {
  const { context, queue, once } = options;
  const { ledger } = context;
  const stopping = new AbortController();
  const timers = new Set<NodeJS.Timeout>();
  const busy = new Set<number>();

  const remove = async (row: SourceRow): Promise<void> => {
    await takeUnowned(context, row, stopping.signal);
    await beginDeletes(context, row.id, stopping.signal);
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
      { recent: true },
    );
  };
  /** How often the deletes of a source were refused in this run. */
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

/** Records the deletes of resources that have the source's markers and no row, such as those of interrupted creates. */
async function takeUnowned(context: ActionContext, row: SourceRow, signal: AbortSignal): Promise<void> {
  const { ledger } = context;
  const found = await ownResources(context, row.id, signal);
  await ledger.write(() => {
    for (const { id } of ledger.intents.creates(row.id)) ledger.intents.remove(id);
    for (const { docId, title } of found) ledger.intents.delete(row.id, title, docId);
  });
}

/**
 * Turns the rows of a source into delete intents, a batch at a time. A crash in between leaves rows that the next start
 * takes.
 */
async function beginDeletes(
  { ledger, trash }: ActionContext,
  source: number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    ledger.flush();
    const rows = ledger.files.some(source, BATCH_ROWS);
    if (rows.length === 0) return;
    await ledger.write(() => {
      for (const { id, docId } of rows) {
        if (docId !== null) ledger.intents.deleteFile(id, trash?.tries ?? 0);
        ledger.files.remove(id);
      }
    });
  }
}
