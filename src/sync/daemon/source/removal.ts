import { againAfter } from "../../identity/contact.ts";
import type { ActionContext } from "../../send/context.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import type { WorkQueue } from "../../send/queue/queue.ts";
import { ownResources } from "../../identity/own-resources.ts";
import { openSourceDeletes, type SourceDeletes } from "./source-deletes.ts";
import type { Job } from "./parts.ts";

/** Deletes the resources of sources that left the configuration, after a person agreed. */
export type Removals = ReturnType<typeof openRemovals>;

interface RemovalsOptions {
  readonly context: ActionContext;
  readonly queue: Pick<WorkQueue<Job>, "push">;
  /** How far the list may lag behind the service's answers; 0: not at all. */
  readonly lagMs: number;
  /** One pass: leaves what the service refuses to the next. */
  readonly once: boolean;
  /** Notified of each source whose removal begins. */
  readonly onBegin: (row: SourceRow) => void;
  /** Called for an unforeseen error. */
  readonly onError: (error: unknown) => void;
  /** Notified when the result of `isIdle` may have changed. */
  readonly onChange: () => void;
}

/** Rows that become intents in one transaction. */
const BATCH_ROWS = 1000;

/** Opens the removals. Reads nothing before `begin`. */
export function openRemovals(options: RemovalsOptions) {
  const { context, queue, once, lagMs } = options;
  const { ledger } = context;
  const stopping = new AbortController();
  const { signal } = stopping;
  /** The removals of this run, by source; undefined until their deletes have begun. */
  const running = new Map<number, SourceDeletes | undefined>();

  const remove = async (row: SourceRow): Promise<void> => {
    await takeUnowned(context, row.id, lagMs, signal);
    await beginDeletes(context, row.id, signal);
    const deletes: SourceDeletes = openSourceDeletes({
      row,
      context,
      source: { id: row.id, root: row.path },
      once,
      isHeld: () => signal.aborted,
      isAwaited: () => false,
      push: (deletions) =>
        queue.push(
          deletions.map((deletion) => ({ kind: "delete", deletes, deletion })),
          { recent: true },
        ),
      // `again` looks for what is due.
      wakeAt: () => undefined,
      onEnd: () => endIfDone(row.id, deletes),
    });
    running.set(row.id, deletes);
    deletes.beginLeft();
    endIfDone(row.id, deletes);
  };
  const endIfDone = (source: number, deletes: SourceDeletes): void => {
    if (deletes.hasJobs()) return;
    ledger.flush();
    const isLeft = ledger.intents.deletes(source).length + ledger.intents.doubts(source).length > 0;
    if (!isLeft) ledger.note(() => ledger.sources.approvalUsed(source));
    options.onChange();
  };
  /** A list may not show yet what creates in doubt have made. */
  const settleDoubts = async (source: number, deletes: SourceDeletes): Promise<void> => {
    ledger.flush();
    const { atMs = 0, round = 0 } = ledger.contacts.again(source) ?? {};
    if (ledger.intents.doubts(source).length === 0 || atMs > Date.now()) return;
    await takeUnowned(context, source, lagMs, signal);
    const next = againAfter(round + 1, lagMs);
    await ledger.write(() => {
      ledger.contacts.setAgain(source, next);
      if (next === undefined) ledger.intents.forgetDoubts(source);
    });
    deletes.beginLeft();
    endIfDone(source, deletes);
  };

  return {
    /** Begins with those that are agreed to and not in flight. Their folders need not exist. */
    begin: (): void => {
      ledger.flush();
      for (const row of ledger.sources.withFiles()) {
        if (row.active || !row.approved || running.has(row.id)) continue;
        running.set(row.id, undefined);
        options.onBegin(row);
        remove(row).catch((error: unknown) => {
          if (!signal.aborted) options.onError(error);
        });
      }
    },
    /** Sends refused deletes that are due, and looks once more for what creates in doubt have made. */
    again: async (): Promise<void> => {
      for (const [source, deletes] of running) {
        deletes?.beginDue();
        if (deletes !== undefined) await settleDoubts(source, deletes);
      }
    },
    /** Reports whether nothing is being removed. Deletes that the service refused wait for later. */
    isIdle: (): boolean => [...running.values()].every((deletes) => deletes?.hasJobs() === false),
    stop: (): void => stopping.abort(new Error("the daemon is stopping")),
  };
}

/** Records the deletes of resources that have the source's markers and no row, such as those of interrupted creates. */
async function takeUnowned(
  context: ActionContext,
  source: number,
  lagMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { ledger } = context;
  const found = await ownResources(context, source, signal);
  await ledger.write(() => {
    const creates = ledger.intents.creates(source);
    for (const { id } of creates) ledger.intents.doubt(id, null);
    if (creates.length > 0) ledger.contacts.setAgain(source, againAfter(0, lagMs));
    for (const { docId, title } of found) ledger.intents.delete(source, title, docId);
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
