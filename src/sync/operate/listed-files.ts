import type { ListedFile } from "../../wire/daemon-files.ts";
import type { ListedState } from "../../wire/file-state.ts";
import { senderBlocker } from "../ledger/blockers.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import type { RelativePath } from "../plan/model.ts";
import {
  type LiveWork,
  ROW_STATES,
  type UnreadablePath,
  type VersionFacts,
  versionOf,
} from "../plan/version.ts";
import type { OperatorLedger } from "./offline.ts";

/** Which files to list. */
export interface FilesQuery {
  /** Largest number of files. */
  readonly limit: number;
  /** Default: all but skipped ones. With `waiting`, a halted source is listed as a whole, and so are files that a daemon left unsent. */
  readonly state?: ListedState | undefined;
  /** Default: those of every source. */
  readonly target?: { readonly row: SourceRow; readonly below: RelativePath | undefined } | undefined;
}

/**
 * Lists files that are not searchable as they are on disk, and deletes that wait or that the service refuses, by source and
 * path. Without a daemon, changes since it stopped are unknown.
 */
export function listFiles(
  ledger: Pick<OperatorLedger, "files" | "sources">,
  { limit, state, target }: FilesQuery,
  live?: LiveWork,
): ListedFile[] {
  const targets =
    target === undefined ? ledger.sources.active().map((row) => ({ row, below: undefined })) : [target];
  const found: ListedFile[] = [];
  for (const { row, below } of targets) {
    if (found.length >= limit) break;
    const source = live?.source(row.id);
    const blocker = senderBlocker(row);
    const facts = { blocker, outage: live?.outage };
    const add = (path: string, docId: string | null, own: Pick<VersionFacts, "row" | "trouble">): void => {
      const work = source?.workAt(path) ?? { work: "unknown", sinceMs: undefined };
      const version = versionOf({ ...facts, ...work, ...own, isFindable: docId !== null });
      if (version.state === "searchable" || version.state !== (state ?? version.state)) return;
      const { reason: message, ...rest } = version;
      found.push({ source: row.path, path, docId, ...rest, state: version.state, message });
    };
    if (blocker?.code === "halted" && state === "waiting")
      add("", null, { row: undefined, trouble: undefined });
    const none = { docId: null, sinceMs: null, hasOlder: false };
    if (blocker?.code !== "halted" && state === "waiting")
      for (const { path, reason: message } of source?.unreadable(below) ?? unreadableBefore(row))
        found.push({ source: row.path, path, state, code: "unreadable", message, ...none });
    // Their paths are known to the daemon alone.
    if (live === undefined && below === undefined && state === "waiting" && row.backlog > 0) {
      const message = `files not searchable yet when the daemon ended: ${row.backlog}`;
      const code = "not_synced";
      found.push({ source: row.path, path: "", state, code, message, ...none });
    }
    const listed = new Set<RelativePath>();
    const states = state === undefined ? undefined : ROW_STATES[state];
    for (const { path, docId, state: rowState, ...trouble } of ledger.files.troubled({
      source: row.id,
      below,
      states,
      limit,
    })) {
      if (rowState !== "held" && rowState !== "doomed") {
        if (blocker?.code === "halted") continue;
        listed.add(path);
      }
      add(path, docId, { row: rowState, trouble });
    }
    if (source === undefined || blocker?.code === "halted" || (state ?? "waiting") === "skipped") continue;
    for (const path of source.unsent(below)) {
      if (found.length >= limit) break;
      if (listed.has(path)) continue;
      const known = ledger.files
        .at(row.id, path)
        .find((each) => each.state !== "held" && each.state !== "doomed");
      add(path, known?.isFindable === true ? known.docId : null, { row: known?.state, trouble: undefined });
    }
  }
  return found.toSorted(bySourceAndPath).slice(0, limit);
}

/** What could not be read at the last pass, whose paths the ledger does not have. */
function unreadableBefore({ unreadable }: SourceRow): readonly UnreadablePath[] {
  if (unreadable === 0) return [];
  return [{ path: "", reason: `paths that could not be read at the last pass: ${unreadable}` }];
}

function bySourceAndPath(a: ListedFile, b: ListedFile): number {
  if (a.source !== b.source) return a.source < b.source ? -1 : 1;
  return a.path < b.path ? -1 : Number(a.path > b.path);
}
