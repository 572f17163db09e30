import { type ActionContext, reportCompared } from "../actions/context.ts";
import type { RelativePath } from "../plan/model.ts";
import type { SourceSync } from "../source/source.ts";
import { driftWords } from "../reconcile-service/loss.ts";
import type { Drifted } from "../reconcile-service/sweep.ts";

/** Sends files of one source again. */
export interface Resending {
  add(drifted: Drifted): Promise<void>;
  /** Writes pending rows and has the files checked. */
  finish(): Promise<void>;
}

/** More files than this are covered by one check of the whole source. */
const HINTS_MAX = 1000;
/** Rows written in one transaction. */
const WRITE_ROWS = 500;

/**
 * Starts to send files again. Each row becomes unsure, so that the next check sends the file whole to its resource.
 * Only if the service then answers that there is none is a new one created: a stale list costs an update that changes
 * nothing, never a second resource.
 */
export function openResending(context: ActionContext, source: SourceSync): Resending {
  const { ledger } = context;
  let waiting: Drifted[] = [];
  const paths: RelativePath[] = [];

  const write = async (): Promise<void> => {
    const group = waiting;
    waiting = [];
    const marked: Drifted[] = [];
    await ledger.write(() => {
      for (const drifted of group) {
        const { row, found } = drifted;
        // It may have been sent since, or be in flight.
        const now = ledger.drift.byDoc(row.docId);
        if (now?.id !== row.id || now.state !== "agreed" || source.isBusy(now.path)) continue;
        ledger.files.setState(row.id, "unsure");
        if (found !== undefined) ledger.drift.setStored(row.id, found);
        marked.push(drifted);
      }
    });
    for (const drifted of marked) {
      if (paths.length <= HINTS_MAX) paths.push(drifted.row.path);
      reportCompared(
        context,
        source,
        drifted.row.path,
        drifted.row.docId,
        `${driftWords(drifted)}; it is sent again`,
      );
    }
  };
  return {
    add: async (drifted) => {
      waiting.push(drifted);
      if (waiting.length >= WRITE_ROWS) await write();
    },
    finish: async () => {
      await write();
      if (paths.length > HINTS_MAX) source.hint(undefined);
      else for (const path of paths) source.hint(path);
    },
  };
}

/** Deletes a resource that no row owns. Returns false if a row owns it by now, or its delete is in flight. */
export async function deleteExtra(
  context: ActionContext,
  source: SourceSync,
  { path, docId, words }: { readonly path: RelativePath; readonly docId: string; readonly words: string },
): Promise<boolean> {
  const { ledger } = context;
  let id: number | undefined;
  await ledger.write(() => {
    if (!ledger.files.ownsDoc(docId)) id = ledger.intents.delete(source.id, path, docId);
  });
  if (id === undefined) return false;
  reportCompared(context, source, path, docId, `${words}; it is deleted`);
  source.deleteLater({ id, path, docId });
  return true;
}
