import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";
import type { LedgerReceipt, LedgerReceiptRequest } from "../../wire/receipt.ts";
import {
  changedSince,
  coveredBy,
  fileCounts,
  folderReceipt,
  sourceCounts,
  type CoveredSource,
  type CoveredState,
} from "../operator/receipt.ts";
import { statusOf } from "../operator/status.ts";
import type { RelativePath } from "../plan/model.ts";
import type { SourceSync } from "../source/source.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";
import { waitFor } from "./wait.ts";

/** The receipt where the ledger is closed or unreadable. */
const NOTHING: LedgerReceipt = { folders: [], changed: [] };

/**
 * Returns how fresh answers about folders are. With `waitSeconds`, first waits for each of them as `waitFor` does; what ends in
 * agreement is current as of the call. Claims nothing that the ledger, the path states and the watch do not show. Throws the
 * signal's reason.
 */
export async function daemonReceipt(
  parts: Parts,
  sources: DaemonSources,
  { scopes, cited, waitSeconds }: LedgerReceiptRequest,
  signal?: AbortSignal,
): Promise<LedgerReceipt> {
  const { ledger } = parts;
  const calledMs = Date.now();
  const read = <T>(run: () => T, otherwise: T): T =>
    parts.read(() => {
      ledger.flush();
      return run();
    }, otherwise);
  const covered = read(() => coveredBy(ledger, scopes), []);
  const ends = await Promise.all(
    covered.map(async (each) =>
      waitSeconds === undefined ? undefined : waitBriefly(parts, sources, each, waitSeconds, signal),
    ),
  );
  signal?.throwIfAborted();
  const isPending = (id: number, path: RelativePath): boolean =>
    sourceOf(sources, id)?.isPending(path) === true;
  return read(
    () => ({
      folders: covered.flatMap((each, at) => {
        const state = stateOf(parts, sources, each);
        const end = ends[at];
        return folderReceipt(ledger, each, end === undefined ? state : afterWait(state, end, calledMs)) ?? [];
      }),
      changed: changedSince(ledger, cited, isPending),
    }),
    NOTHING,
  );
}

/** How a wait ended: `late` is its time, or the end of the daemon. */
type WaitedEnd = "agreed" | "troubled" | "late";

async function waitBriefly(
  parts: Parts,
  sources: DaemonSources,
  { row, file }: CoveredSource,
  seconds: number,
  signal: AbortSignal | undefined,
): Promise<WaitedEnd> {
  if (sourceOf(sources, row.id) === undefined) return "late";
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), seconds * 1000);
  try {
    const path = file === undefined ? row.path : join(row.path, file.path);
    const signals = signal === undefined ? [late.signal] : [late.signal, signal];
    const { agreed } = await waitFor(parts, sources, { path, signal: AbortSignal.any(signals) });
    return agreed ? "agreed" : "troubled";
  } catch (error) {
    if (late.signal.aborted || signal?.aborted === true || codeOf(error) === "daemon_stopping") return "late";
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Everything saved before the call was checked, and is acknowledged or among the counts. */
function afterWait(state: CoveredState, end: WaitedEnd, calledMs: number): CoveredState {
  const { asOfMs = 0, noticing } = state;
  const isSent = noticing === "watched" || noticing === "scanned";
  const isComplete = end !== "late" && isSent;
  return {
    ...state,
    current: end === "agreed" && isSent,
    ...(isComplete && { asOfMs: Math.max(asOfMs, calledMs) }),
  };
}

function stateOf({ ledger }: Parts, sources: DaemonSources, { row, file }: CoveredSource): CoveredState {
  const source = sourceOf(sources, row.id);
  const [status] =
    source === undefined ? [] : statusOf(ledger, [source], (id) => sources.watches.get(id)?.degraded());
  if (source === undefined || status === undefined) {
    const counts = { pending: 0, failed: 0, held: 0, unreadable: 0 };
    return { counts, asOfMs: undefined, current: false, noticing: "stopped" };
  }
  const counts =
    file === undefined ? sourceCounts(status) : countsOfFile(ledger, source, file.docId, file.path);
  // A change is noticed before it is counted.
  const pending = file !== undefined || counts.pending > 0 ? counts.pending : noticed(source);
  const noticing = noticingOf(status, sources.isWatched(row.id));
  const isDone = file === undefined ? source.isIdle() : source.isPlanned();
  const isClear = pending + counts.failed + counts.held + counts.unreadable === 0;
  return {
    counts: { ...counts, pending },
    // Another folder may be at its path, and nothing was ever compared with that.
    asOfMs: noticing === "halted" ? undefined : source.asOfMs(),
    current: isDone && isClear && noticing === "watched",
    noticing,
  };
}

function countsOfFile(
  { files }: Parts["ledger"],
  source: SourceSync,
  docId: string | null,
  path: RelativePath,
): CoveredState["counts"] {
  const row = docId === null ? undefined : files.byDoc(docId);
  // Without a row its document is deleted, or about to be.
  const state = row?.state ?? "agreed";
  return fileCounts({ state }, source.isPending(row?.path ?? path), source.unreadable(path).length);
}

/** Number of paths at which something happened that is not done. */
function noticed(source: SourceSync): number {
  return source.isIdle() ? 0 : source.pending(undefined).length;
}

function noticingOf(
  { paused, halted }: { readonly paused: boolean; readonly halted: boolean },
  isWatched: boolean,
): CoveredState["noticing"] {
  if (paused) return "paused";
  if (halted) return "halted";
  return isWatched ? "watched" : "scanned";
}

function sourceOf(sources: DaemonSources, id: number): SourceSync | undefined {
  return sources.all().find((each) => each.id === id);
}
