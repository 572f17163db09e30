import { sendDelete } from "../../send/delete.ts";
import type { ActionContext, ActionSource } from "../../send/context.ts";
import type { Deletion } from "../../ledger/intents/deletes.ts";
import type { RelativePath } from "../../plan/model.ts";
import { parkMs } from "../../plan/retry.ts";
import { isBelow } from "../../scan/disk/source-path.ts";

/** The deletes of one source whose intents are in the ledger. Each is sent until it is done. */
export type SourceDeletes = ReturnType<typeof openSourceDeletes>;

interface SourceDeletesOptions {
  readonly row: { readonly id: number };
  readonly context: ActionContext;
  readonly source: Pick<ActionSource, "id" | "root">;
  /** One pass: leaves what the service refuses to the next. */
  readonly once: boolean;
  /** Reports whether nothing may be sent. */
  readonly isHeld: () => boolean;
  /** Reports whether the file at a path has yet to be read or sent, and so may get a resource. */
  readonly isAwaited: (path: RelativePath) => boolean;
  /** Puts deletes into the queue, after everything else. */
  readonly push: (deletions: readonly Deletion[]) => void;
  /** Schedules a call of `beginDue`. */
  readonly wakeAt: (atMs: number) => void;
  /** Called when the job of one has ended. */
  readonly onEnd: () => void;
}

/** A delete that has a job or waits for one. */
interface OpenDelete {
  readonly deletion: Deletion;
  /** `file`: the file is back, and the delete follows the create of its own resource. `retry`: the service refused it. */
  readonly state: "job" | "file" | "retry";
  /** Since when it has a job, or when it gets the next one. */
  atMs: number;
  /** Number of refusals. */
  readonly tries: number;
}

/** Opens the deletes of a source; none is in flight. */
export function openSourceDeletes(options: SourceDeletesOptions) {
  const { row, context, source, once, wakeAt } = options;
  const { ledger, now } = context;
  /** By path: two held rows of one path may be deleted together. */
  const open = new Map<RelativePath, readonly OpenDelete[]>();
  let jobs = 0;
  const at = (path: RelativePath): readonly OpenDelete[] => open.get(path) ?? [];
  const all = (): readonly OpenDelete[] => [...open.values()].flat();
  const find = ({ id, path }: Deletion): OpenDelete | undefined =>
    at(path).find(({ deletion }) => deletion.id === id);

  const set = (deletion: Deletion, next: Omit<OpenDelete, "deletion"> | undefined): void => {
    const others = at(deletion.path).filter((each) => each.deletion.id !== deletion.id);
    const left = next === undefined ? others : [...others, { deletion, ...next }];
    if (left.length > 0) open.set(deletion.path, left);
    else open.delete(deletion.path);
  };
  const begin = (deletions: readonly Deletion[]): void => {
    for (const deletion of deletions) {
      set(deletion, { state: "job", atMs: now(), tries: find(deletion)?.tries ?? 0 });
      jobs += 1;
    }
    options.push(deletions);
  };
  /**
   * Called when the job of a path's file has ended, or, without a path, a pass. Begins with those whose file is no longer
   * awaited.
   */
  const beginPutOff = (path?: RelativePath): void => {
    for (const each of path === undefined ? [...open.keys()] : [path]) {
      const waiting = at(each).flatMap(({ state, deletion }) => (state === "file" ? deletion : []));
      if (waiting.length > 0 && !waiting.some((deletion) => isFileBack(options, deletion))) begin(waiting);
    }
  };
  const refuse = (deletion: Deletion): void => {
    const tries = 1 + (find(deletion)?.tries ?? 0);
    const atMs = now() + parkMs(tries);
    set(deletion, { state: "retry", atMs, tries });
    wakeAt(atMs);
  };
  const checkLater = openDeleteCheck(options, refuse);

  return {
    /** The source's number in the ledger. */
    source: row.id,
    begin,
    beginPutOff,
    /** Begins with those that a process, or a pause, left undone. */
    beginLeft: (): void => {
      // A delete that was just done is not left over, nor is the intent that has its id by then.
      ledger.flush();
      begin(ledger.intents.deletes(row.id).filter((each) => find(each) === undefined));
    },
    /** Begins with refused ones that are due, and schedules the others. */
    beginDue: (): void => {
      // The pass that ends the hold begins with them.
      if (options.isHeld()) return;
      const waiting = all().filter(({ state }) => state === "retry");
      begin(waiting.filter(({ atMs }) => atMs <= now()).map(({ deletion }) => deletion));
      for (const { atMs } of waiting) if (atMs > now()) wakeAt(atMs);
    },
    /** Sends one, as its job does. */
    send: async (deletion: Deletion): Promise<void> => {
      const end = options.isHeld()
        ? "left"
        : await sendDelete(context, source, deletion, () => isFileBack(options, deletion));
      jobs -= 1;
      if (end === "refused" && !once) refuse(deletion);
      else if (end === "left" && !options.isHeld()) set(deletion, { state: "file", atMs: now(), tries: 0 });
      // While it is held, its intent is in the ledger, and the check at the resume sends it.
      else set(deletion, undefined);
      if (end === "done" && !once) checkLater(deletion);
      // The file may have received its own resource meanwhile.
      beginPutOff(deletion.path);
      options.onEnd();
    },
    hasJobs: (): boolean => jobs > 0,
    /** Reports whether a delete of this path has a job. */
    hasJob: (path: RelativePath): boolean => at(path).some(({ state }) => state === "job"),
    /** Returns the paths of those that have jobs. */
    jobPaths: (): readonly RelativePath[] =>
      all().flatMap(({ state, deletion }) => (state === "job" ? deletion.path : [])),
    /** Since when the oldest job waits. */
    oldestMs: (): number | undefined =>
      all().reduce<number | undefined>(
        (oldest, { state, atMs }) => (state === "job" ? Math.min(oldest ?? atMs, atMs) : oldest),
        undefined,
      ),
    /** Sends refused ones at or below a path now. */
    retry: (below: RelativePath | undefined): void => {
      for (const entry of all())
        if (entry.state === "retry" && isBelow(entry.deletion.path, below)) entry.atMs = now();
      wakeAt(now());
    },
  };
}

/**
 * Reports whether the file of a delete is back. A file that is rewritten while its delete waits gets its own resource
 * first, so that it is never without one. So does a file that took the name of the deleted one, if the service may not have
 * what its row says.
 */
function isFileBack(
  { row, context: { ledger }, isAwaited }: SourceDeletesOptions,
  { path, isSpare }: Deletion,
): boolean {
  if (isSpare === true || !isAwaited(path)) return false;
  ledger.flush();
  const living = ledger.files.living(row.id, path);
  return typeof living?.docId !== "string" || living.state === "unsure";
}

const IGNORED = "the service answered that it deleted the document, and still shows it";
/** How soon after a delete the service is asked for what it deleted. */
const CHECK_MS = 30_000;

/**
 * Opens the check of deletes that were done: a service may answer that it deleted a resource, and keep it. The latest delete is
 * checked for all of them. `refuse` sends one again later.
 */
function openDeleteCheck(
  { row, context }: SourceDeletesOptions,
  refuse: (deletion: Deletion) => void,
): (deletion: Deletion) => void {
  const { ledger, now } = context;
  let latest: Deletion | undefined;
  const check = async (): Promise<void> => {
    const checked = latest;
    latest = undefined;
    const shown = checked && (await context.remote.read(checked.docId, context.signal));
    if (checked === undefined || shown?.kind !== "done" || shown.value.isDeleted !== false) return;
    const { path, docId } = checked;
    let id = 0;
    await ledger.write(() => {
      id = ledger.intents.delete(row.id, path, docId);
      ledger.intents.refuse(id, IGNORED);
    });
    const facts = { source: row.id, path, from: undefined, docId, action: "delete" as const };
    context.report({ ...facts, atMs: now(), outcome: "refused", durationMs: 0, message: IGNORED });
    refuse({ id, path, docId });
  };
  return (deletion) => {
    if (latest === undefined) {
      const timer = setTimeout(() => {
        // A failure shows in the deletes themselves.
        void check().catch(() => undefined);
      }, CHECK_MS);
      timer.unref();
    }
    latest = deletion;
  };
}
