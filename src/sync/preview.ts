import { join } from "node:path";
import type { SyncConfig } from "../config/schema.ts";
import { observe } from "./actions/observe.ts";
import { readDocument } from "./document/read.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { SourceRow } from "./ledger/sources.ts";
import { rootReason } from "./pass/pass.ts";
import { brake, type BrakeFacts } from "./plan/brakes.ts";
import { decide } from "./plan/decide.ts";
import { type ActionKind, EMPTY_FILE, type RelativePath } from "./plan/model.ts";
import { moveSuspects, pairByHash } from "./plan/moves.ts";
import { isBlank } from "./plan/reconcile.ts";
import type { SourceSync } from "./source.ts";

/** What a pass would do, or why it would not. */
export interface PlannedAction {
  readonly source: string;
  /** Empty for the source as a whole. */
  readonly path: RelativePath;
  readonly from?: RelativePath;
  readonly docId?: string;
  readonly action: Exclude<ActionKind, "touch"> | "refuse" | "skip" | "hold" | "halt";
  readonly reason?: string;
}

/**
 * Plans a source as a pass would, reading files but sending and writing nothing. In no order. `row` is the source's as
 * it would be after a pass. When the signal aborts, the source is stopped and the signal's reason thrown.
 */
export async function previewOf(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  sync: SyncConfig,
  signal?: AbortSignal,
): Promise<PlannedAction[]> {
  signal?.throwIfAborted();
  const stop = (): void => source.stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await plan(ledger, row, source, sync, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

async function plan(
  ledger: Ledger,
  row: SourceRow,
  source: SourceSync,
  sync: SyncConfig,
  signal: AbortSignal | undefined,
): Promise<PlannedAction[]> {
  const { scan, difference } = await source.preview();
  const facts: BrakeFacts = {
    rootBefore: row.root,
    filesBefore: row.agreed + row.unsure + row.held,
    deletedLately: 0,
    holdDeletesOver: sync.holdDeletesOver,
    holdDeletesPercent: sync.holdDeletesPercent,
    holdReason: row.holdReason ?? undefined,
    approved: row.approved,
  };
  const judged = brake(scan, difference.gone, facts);
  if (judged.halted) {
    const reason = scan.root === undefined ? rootReason(scan) : judged.reason;
    return [{ source: row.path, path: "", action: "halt", ...(reason !== undefined && { reason }) }];
  }
  const planned: PlannedAction[] = [];
  const add = (
    action: PlannedAction["action"],
    path: RelativePath,
    more: Partial<PlannedAction> = {},
  ): void => {
    planned.push({ source: row.path, path, action, ...more });
  };
  for (const { path, reason } of difference.refused) add("refuse", path, { reason });
  for (const { entry, reason } of difference.skipped) add("skip", entry.path, { reason });

  const suspects = new Set(moveSuspects(difference.looks, difference.gone));
  const fresh: { entry: (typeof difference.looks)[number]["entry"]; hash: string }[] = [];
  for (const look of difference.looks) {
    signal?.throwIfAborted();
    const { entry, known, from } = look;
    const read = await readDocument(join(row.path, entry.path), entry, source.rules);
    if (read.kind === "skipped") {
      add(known !== undefined && known.docId !== null ? "refuse" : "skip", entry.path, {
        reason: read.reason,
      });
    }
    if (read.kind === "refused") add("refuse", entry.path, { reason: read.reason });
    if (read.kind === "unreadable") add("refuse", entry.path, { reason: `cannot be read: ${read.code}` });
    if (read.kind !== "document") continue;
    const file = known === undefined ? undefined : ledger.files.get(known.id);
    if (isBlank(read.document.entry, file)) {
      add("skip", entry.path, { reason: EMPTY_FILE });
      continue;
    }
    if (suspects.has(look)) fresh.push({ entry, hash: read.document.hash });
    const action = decide(observe(read.document, 0), file, from !== undefined);
    if (action === "touch") continue;
    add(action, entry.path, {
      ...(from !== undefined && { from }),
      ...(typeof file?.docId === "string" && { docId: file.docId }),
    });
  }

  const rows = difference.gone.map((known) => ({ known, hash: ledger.files.get(known.id)?.hash ?? "" }));
  const moves = new Map(pairByHash(rows, fresh).map((move) => [move.known.id, move]));
  for (const { known, entry } of moves.values()) {
    const index = planned.findIndex(({ path, action }) => path === entry.path && action === "create");
    planned.splice(index, 1);
    add("move", entry.path, { from: known.path, ...(known.docId !== null && { docId: known.docId }) });
  }
  const braked = brake(
    scan,
    difference.gone.filter(({ id }) => !moves.has(id)),
    facts,
  );
  for (const { path, docId } of braked.deletes) add("delete", path, { ...(docId !== null && { docId }) });
  for (const { path, docId } of braked.held) {
    add("hold", path, {
      ...(docId !== null && { docId }),
      ...(braked.reason !== undefined && { reason: braked.reason }),
    });
  }
  return planned;
}
