import { sendDelete } from "../actions/delete.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import type { Deletion } from "../ledger/intents.ts";
import type { RelativePath } from "../plan/model.ts";
import { openRefusedDeletes } from "./refused-deletes.ts";
import type { UnderWay } from "../agenda/under-way.ts";

/** The deletes of one source whose intents are in the ledger: each sent until it is done. */
export interface SourceDeletes {
  begin(deletions: readonly Deletion[]): void;
  /** Begins with those that a process, or a pause, left undone. */
  beginLeft(): void;
  /** Begins with those that the service would not do, or denied, and whose time has come; the others' time is set. */
  beginDue(): void;
  /**
   * A job of the path has ended, its file's or a delete's, or a pass when no path is given: begins with those whose file is
   * not awaited any more.
   */
  beginPutOff(path?: RelativePath): void;
  /** Sends one, as its job does. */
  send(deletion: Deletion): Promise<void>;
  /** Has those sent now that the service would not do, at or below a path. */
  retry(below: RelativePath | undefined): void;
}

export interface SourceDeletesOptions {
  readonly row: { readonly id: number };
  readonly context: ActionContext;
  readonly source: ActionSource;
  readonly underWay: Pick<UnderWay, "beginDeletes" | "isDeleting">;
  /** One pass: what the service refuses is left to the next. */
  readonly once: boolean;
  /** Whether nothing may be sent. */
  readonly isHeld: () => boolean;
  /** Whether the file at a path is still to be read or sent, and so may get a resource. */
  readonly isAwaited: (path: RelativePath) => boolean;
  /** Puts them into the queue, after everything else. */
  readonly push: (deletions: readonly Deletion[]) => void;
  /** `beginDue` is to be called at this time. */
  readonly wakeAt: (atMs: number) => void;
}

/** Opens the deletes of a source; none is under way. */
export function openSourceDeletes(options: SourceDeletesOptions): SourceDeletes {
  const { row, context, source, underWay, once, wakeAt } = options;
  const { ledger, now } = context;
  const { deletedAgainMs } = context.timing;
  const refused = openRefusedDeletes(deletedAgainMs);
  /** Those whose file is back: they follow the create of its own resource. */
  const putOff = new Map<RelativePath, Deletion[]>();

  /**
   * A file that is written anew while its delete waits gets its own resource first, so that there is no time without one; so
   * does one that took the name of the deleted file, where the service may not have what its row says.
   */
  const isBack = ({ path, isSpare }: Deletion): boolean => {
    if (isSpare === true || !options.isAwaited(path)) return false;
    ledger.flush();
    const living = ledger.files.living(row.id, path);
    return typeof living?.docId !== "string" || living.state === "unsure";
  };
  const isPutOff = ({ id, path }: Pick<Deletion, "id" | "path">): boolean =>
    putOff.get(path)?.some((each) => each.id === id) === true;

  const begin = (deletions: readonly Deletion[]): void => {
    underWay.beginDeletes(deletions);
    options.push(deletions);
  };

  return {
    begin,
    beginLeft: () => {
      // One that was done a moment ago is not left, nor is what has its number by then.
      ledger.flush();
      const open = ledger.intents.deletes(row.id);
      begin(open.filter((each) => !underWay.isDeleting(each.id) && !refused.has(each.id) && !isPutOff(each)));
    },
    beginDue: () => {
      begin(refused.due(now()).filter(({ id }) => !underWay.isDeleting(id)));
      for (const { id, atMs } of refused.times()) if (!underWay.isDeleting(id)) wakeAt(atMs);
    },
    send: async (deletion) => {
      // Its intent is in the ledger: the look that going on begins with sends it.
      if (options.isHeld()) return;
      const denials = refused.denials(deletion.id);
      const end = await sendDelete(context, source, deletion, {
        isBack: () => isBack(deletion),
        believes: once || denials >= deletedAgainMs.length,
        wasDenied: denials > 0,
      });
      if (end === "refused") {
        if (!once) wakeAt(refused.add(deletion, now()));
        return;
      }
      if (end === "denied") {
        wakeAt(refused.addDenied(deletion, now()));
        return;
      }
      refused.remove(deletion.id);
      // After a pause, `beginLeft` starts what was left. Otherwise the file was back; if it has got its own resource in the
      // meantime, the delete starts again as soon as this job has ended.
      if (end === "left" && !options.isHeld())
        putOff.set(deletion.path, [...(putOff.get(deletion.path) ?? []), deletion]);
    },
    beginPutOff: (path) => {
      for (const at of path === undefined ? [...putOff.keys()] : [path]) {
        const waiting = putOff.get(at) ?? [];
        if (waiting.length === 0 || waiting.some(isBack)) continue;
        putOff.delete(at);
        begin(waiting);
      }
    },
    retry: (below) => {
      refused.hurry(below, now());
      wakeAt(now());
    },
  };
}
