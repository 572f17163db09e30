import { join } from "node:path";
import type { DaemonActivity } from "../../wire/daemon-files.ts";
import { WAIT_REASONS_MAX, type WaitAnswer, type WaitReason } from "../../wire/daemon.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import { isBelow, targetIn } from "../scan/disk/source-path.ts";
import type { SourceSync } from "./source/source.ts";
import { senderBlocker } from "../ledger/blockers.ts";
import { listFiles } from "../operate/listed-files.ts";
import { type FileWork, versionOf } from "../plan/version.ts";
import { inspectPath } from "../scan/disk/inspect-path.ts";
import { waitForMeaning } from "./meaning.ts";
import { rootOf, type SourceTarget } from "./operations.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** The result of a wait. */
export interface WaitEnd extends Omit<WaitAnswer, "end" | "service" | "embedding"> {
  /** Whether the service has acknowledged everything that was waited for. */
  readonly agreed: boolean;
}

export interface WaitOptions {
  readonly signal: AbortSignal;
  /** Absolute path of a file or folder. Default: all sources, without files of which only pictures remain to be read. */
  readonly path?: string | undefined;
  /** Waits until everything is found by meaning too. Default: by its words. */
  readonly embedded?: boolean | undefined;
  /** Called with the number of files still waited for, once it is known and whenever it decreases. */
  readonly onWaiting?: (files: number) => void;
  /** Called with the number of documents that are not found by meaning yet, once their words are. */
  readonly onEmbedding?: (documents: number) => void;
}

/** Code of a file that was parked because the service did not answer for it. Waiting resolves it. */
const NO_ANSWER = "no_answer";

/**
 * Resolves when searches find the files by their words as they are on disk now, or in a later version, or when something
 * prevents it that waiting does not resolve. For a whole source, files of which only pictures remain to be read are listed and
 * not waited for: recognising their text may take hours. No event needs to have arrived, because the disk is checked first.
 * Throws `outside_sources`, `daemon_stopping`, and the signal's reason.
 */
export async function waitFor(
  parts: Parts,
  sources: DaemonSources,
  { signal, path, embedded = false, onWaiting, onEmbedding = () => undefined }: WaitOptions,
): Promise<WaitEnd> {
  const targets =
    path === undefined
      ? sources.all().map((source) => ({ source, below: undefined }))
      : [targetIn(sources.all(), rootOf, path)];
  const since = performance.now();
  const [only] = targets;
  const isKnown = only?.below === undefined || wasKnown(parts, only.source, only.below);
  /** Files of which a version read since then was acknowledged, even if they have changed again. */
  const acknowledged = new Set<string>();
  const stopListening = listen(parts, (source, file, startedMs) => {
    if (startedMs >= since) acknowledged.add(`${source}\n${file}`);
  });
  try {
    const until = async (condition: () => boolean): Promise<void> => {
      await parts.lifecycle.until(() => parts.lifecycle.isEnding() || condition(), signal);
      if (parts.lifecycle.isEnding())
        throw new KbsyncError("the daemon is stopping", { code: "daemon_stopping", retryable: true });
    };
    const open: Waiting[] = targets.map(({ source, below }) => ({
      source,
      below,
      ask: source.agenda.ask(below),
    }));
    let reported = Infinity;
    await until(() => {
      for (const each of open) settle(parts, each, acknowledged);
      if (!open.every(({ left }) => left !== undefined)) return false;
      const files = open.reduce((sum, { left }) => sum + (left?.size ?? 0), 0);
      if (files < reported && files > 0) onWaiting?.((reported = files));
      return files === 0;
    });
    parts.ledger.flush();
    const reasons = open.flatMap((each) => each.halt ?? reasonsAt(parts, each, acknowledged));
    // Of a file with a reason, no other's vectors need be awaited.
    if (embedded && (path === undefined || reasons.length === 0)) {
      const documents = open.map(({ source, below }) => {
        const row = below === undefined ? undefined : parts.ledger.files.living(source.id, below);
        return { source, docId: row?.docId ?? undefined };
      });
      const missing = await waitForMeaning(parts, documents, signal, onEmbedding);
      if (missing !== undefined) reasons.push({ source: "", path: "", code: "no_meaning", message: missing });
    }
    const agreed = reasons.length === 0;
    const reading = open.flatMap(onlyPictures);
    const unknown = agreed && !isKnown && path !== undefined && inspectPath(path).kind === "absent";
    return {
      agreed,
      reasons: reasons.slice(0, WAIT_REASONS_MAX),
      troubled: reasons.length,
      reading: reading.length,
      readingPaths: reading.slice(0, WAIT_REASONS_MAX),
      ...(unknown && { unknown }),
    };
  } finally {
    stopListening();
  }
}

/** The part of a source that is waited for. */
interface Waiting extends SourceTarget {
  /** The answer of a check that began after the call. */
  ask: number;
  /** Files that are not done; undefined: no such check has ended. */
  left?: Set<RelativePath> | undefined;
  /** The source was halted, so that nobody knows which files are not done. */
  halt?: WaitReason | undefined;
}

/** Removes what is done from the files that are waited for. */
function settle(parts: Parts, waiting: Waiting, acknowledged: ReadonlySet<string>): void {
  const { source, below } = waiting;
  if (waiting.halt !== undefined || source.agenda.answered() < waiting.ask) return;
  if (source.state.isHalted) {
    parts.ledger.flush();
    waiting.halt = haltOf(parts, source);
    waiting.left = waiting.halt && new Set();
    // The halt has just ended, and its files are found by a check that has yet to end.
    if (waiting.halt === undefined) waiting.ask = source.agenda.ask(below);
    return;
  }
  const left = (waiting.left ??= new Set(source.pending(below)));
  for (const file of left) {
    const isDone =
      !source.isPending(file) ||
      acknowledged.has(`${rootOf(source)}\n${file}`) ||
      (source.isPaused() && source.workAt(file).work !== "reading") ||
      (below === undefined && source.hasOnlyPictures(file)) ||
      isUnreadable(parts, source, file);
    // The other files need no check before this one is done.
    if (!isDone) break;
    left.delete(file);
  }
}

/** Absolute paths of the files of a whole source that are not waited for. */
function onlyPictures({ source, below, halt }: Waiting): readonly string[] {
  if (below !== undefined || halt !== undefined) return [];
  const files = [...source.unsent(below)].filter((file) => source.hasOnlyPictures(file));
  return files.map((file) => join(rootOf(source), file));
}

/**
 * Actions that show which version of a file the service has. A deleted or discarded resource may be an older one of the
 * path, and what a list shows may be an older version.
 */
const ACKNOWLEDGING: ReadonlySet<DaemonActivity["action"]> = new Set([
  "create",
  "update",
  "retitle",
  "move",
  "replace",
]);

/** Calls the listener for each file that was acknowledged, with the start time of its work by the timers' clock. */
function listen(parts: Parts, onDone: (source: string, path: string, startedMs: number) => void): () => void {
  const listener: Parameters<typeof parts.listeners.add>[0] = (activity) => {
    const { source, path, action, outcome, durationMs } = activity;
    if (outcome === "done" && ACKNOWLEDGING.has(action)) onDone(source, path, performance.now() - durationMs);
  };
  parts.listeners.add(listener);
  return () => parts.listeners.delete(listener);
}

/** Whether anything ever existed at or below a path, as far as the ledger shows. */
function wasKnown({ ledger }: Parts, source: SourceSync, below: RelativePath): boolean {
  ledger.flush();
  for (const { path } of ledger.files.below(source.id, [below])) if (isBelow(path, below)) return true;
  return source.isPending(below) || ledger.activity.recent(1, { source: source.id, below }).length > 0;
}

/**
 * Whether a file waits for another try because it cannot be read, which only a person can change. The check that began after the
 * call found it unchanged.
 */
function isUnreadable({ ledger }: Parts, source: SourceSync, path: RelativePath): boolean {
  if (source.workAt(path).work !== "retry") return false;
  ledger.flush();
  const row = ledger.files.living(source.id, path);
  return row?.state === "parked" && ledger.files.get(row.id)?.error?.code !== NO_ANSWER;
}

/** The reasons why files at a target are not searchable as they are on disk. */
function reasonsAt(
  parts: Parts,
  { source, below }: SourceTarget,
  acknowledged: ReadonlySet<string>,
): WaitReason[] {
  const { ledger } = parts;
  const root = rootOf(source);
  const halt = haltOf(parts, source);
  if (halt !== undefined) return [halt];
  const reason = (path: RelativePath, code: string, message: string): WaitReason => ({
    source: root,
    path,
    code,
    message,
  });
  const target = { row: ledger.sources.get(source.id), below };
  const blocker = senderBlocker({ ...target.row, paused: source.isPaused() });
  const isBlocked = (path: RelativePath): boolean => !UNBLOCKED.has(source.workAt(path).work);
  const blocked = new Set(blocker === undefined ? [] : source.pending(below).filter(isBlocked));
  // By the ledger alone: later versions of what was waited for do not count, nor does what was not waited for.
  const isLater = ({ path, code }: { readonly path: RelativePath; readonly code: string }): boolean =>
    code === "unsure" &&
    (acknowledged.has(`${root}\n${path}`) || (below === undefined && source.hasOnlyPictures(path)));
  const reasons = listFiles(ledger, { target, limit: Number.MAX_SAFE_INTEGER })
    .filter((file) => !blocked.has(file.path) && !isLater(file))
    .map(({ path, code, message }) => reason(path, code, withRemedy(code, message)));
  if (blocker !== undefined) {
    for (const path of blocked) reasons.push(reason(path, blocker.code, blocker.reason));
    // A check during a pause finds nothing to send there, and halts nothing.
    if (inspectPath(root).kind !== "folder")
      reasons.push(reason("", "missing", "the folder is missing, so nothing is known of its files"));
  }
  for (const { path, reason: why } of source.unreadable(below)) reasons.push(reason(path, "unreadable", why));
  if (below !== undefined && reasons.length === 0 && !acknowledged.has(`${root}\n${below}`)) {
    const left = leftOutReason(ledger, source, below);
    if (left !== undefined) reasons.push(reason(below, left.code, left.message));
  }
  return reasons;
}

/** Work that a pause does not change: what the service reads, and files with a reason of their own. */
const UNBLOCKED: ReadonlySet<FileWork> = new Set<FileWork>(["reading", "retry"]);

/** Why nothing of a source is sent; undefined: it is not halted. */
function haltOf({ ledger }: Parts, source: SourceSync): WaitReason | undefined {
  const halt = senderBlocker({ ...ledger.sources.get(source.id), paused: false });
  return halt && { source: rootOf(source), path: "", code: halt.code, message: halt.reason };
}

function withRemedy(code: string, message: string): string {
  if (NO_LEAVE.has(code)) return `${message}, check its mode`;
  return code === "held" ? `its delete is held: ${message} (\`kbsync approve\` lists it)` : message;
}

const NO_LEAVE: ReadonlySet<string> = new Set(["EACCES", "EPERM"]);

/** Why a file or folder without trouble is not searchable: a rule may leave it out. */
function leftOutReason(
  ledger: Parts["ledger"],
  source: SourceSync,
  path: RelativePath,
): { readonly code: string; readonly message: string } | undefined {
  const { kind } = inspectPath(join(rootOf(source), path));
  const [known] = ledger.files.at(source.id, path);
  const verdict = source.rules.takes(path, kind);
  if (kind === "absent" || (kind === "folder" && known === undefined && verdict.wanted)) return undefined;
  const version = versionOf({
    row: known?.state,
    trouble: known?.error ?? undefined,
    work: "none",
    leftOutBy: verdict.wanted ? undefined : verdict.reason,
  });
  return version.state === "searchable" ? undefined : { code: version.code, message: version.reason };
}
