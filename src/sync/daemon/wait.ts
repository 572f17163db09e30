import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { WaitAnswer, WaitReason } from "../../wire/daemon.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";
import { isBelow } from "../disk/source-path.ts";
import type { SourceSync } from "../source/source.ts";
import { standstillsOf } from "../ledger/standstill.ts";
import { placeOf, rootOf, type SourcePlace } from "./operations.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** What a wait ended with. */
export interface WaitEnd extends Omit<WaitAnswer, "end" | "service"> {
  /** Whether everything that was waited for is acknowledged by the service. */
  readonly agreed: boolean;
}

export interface WaitOptions {
  readonly signal: AbortSignal;
  /** Absolute path of a file or folder; default everything. */
  readonly path?: string | undefined;
  /** Told how many files are waited for when that is known, and when it has become fewer. */
  readonly onWaiting?: (files: number) => void;
}

/** The code of a file that was put aside because the service did not answer for it: that ends by itself. */
const NO_ANSWER = "no_answer";

/** Reasons that are told one by one. */
const REASONS_MAX = 100;

/**
 * Resolves when the service has acknowledged the files as they are on disk now, or as they have become since, or when
 * something stands in the way that waiting does not remove. No event needs to have arrived: the disk is looked at
 * first. Throws `outside_sources`, `daemon_stopping`, and the signal's reason.
 */
export async function waitFor(
  parts: Parts,
  sources: DaemonSources,
  { signal, path, onWaiting }: WaitOptions,
): Promise<WaitEnd> {
  const places =
    path === undefined
      ? sources.all().map((source) => ({ source, below: undefined }))
      : [placeOf(sources.all(), path)];
  const since = performance.now();
  const [asked] = places;
  const isKnown = asked?.below === undefined || wasKnown(parts, asked.source, asked.below);
  /** Files for which something read since then was acknowledged, also if they have changed again. */
  const acknowledged = new Set<string>();
  const stopListening = listen(parts, (source, file, startedMs) => {
    if (startedMs >= since) acknowledged.add(`${source}\n${file}`);
  });
  try {
    const until = async (condition: () => boolean): Promise<void> => {
      await parts.life.until(() => parts.life.isEnding() || condition(), signal);
      if (parts.life.isEnding()) throw stopping();
    };
    const asks = places.map(({ source, below }) => ({ source, ask: source.ask(below) }));
    await until(() => asks.every(({ source, ask }) => source.answered() >= ask));

    const open = places.map(({ source, below }) => ({ source, left: new Set(source.pending(below)) }));
    let told = Infinity;
    await until(() => {
      for (const { source, left } of open) {
        for (const file of left) {
          const isDone =
            !source.isPending(file) ||
            acknowledged.has(`${rootOf(source)}\n${file}`) ||
            source.isPaused() ||
            isUnreadable(parts, source, file);
          // The others need no look before this one is done.
          if (!isDone) break;
          left.delete(file);
        }
      }
      const files = open.reduce((sum, { left }) => sum + left.size, 0);
      if (files < told && files > 0) onWaiting?.((told = files));
      return files === 0;
    });
    parts.ledger.flush();
    const reasons = places.flatMap((place) => reasonsAt(parts, place, acknowledged));
    const agreed = reasons.length === 0;
    const unknown = agreed && !isKnown && path !== undefined && kindOnDisk(path) === undefined;
    return {
      agreed,
      reasons: reasons.slice(0, REASONS_MAX),
      troubled: reasons.length,
      ...(unknown && { unknown }),
    };
  } finally {
    stopListening();
  }
}

/**
 * Notified of each file that was done, with the time its work began by the timers' clock. Not of deletes: what is deleted may
 * be an older resource of a path that has a file again.
 */
function listen(parts: Parts, onDone: (source: string, path: string, startedMs: number) => void): () => void {
  const listener: Parameters<typeof parts.listeners.add>[0] = (activity) => {
    const { source, path, action, outcome, durationMs } = activity;
    if (outcome === "done" && action !== "delete") onDone(source, path, performance.now() - durationMs);
  };
  parts.listeners.add(listener);
  return () => parts.listeners.delete(listener);
}

/** Whether there ever was something at or below a path, as far as the ledger remembers. */
function wasKnown({ ledger }: Parts, source: SourceSync, below: RelativePath): boolean {
  ledger.flush();
  for (const { path } of ledger.files.below(source.id, [below])) if (isBelow(path, below)) return true;
  return source.isPending(below) || ledger.activity.recentAt(source.id, below, 1).length > 0;
}

/**
 * Whether a file was set aside, as it is now, because it cannot be read: it is looked at again later, but only a person
 * changes that. One that has changed since is judged anew.
 */
function isUnreadable({ ledger }: Parts, source: SourceSync, path: RelativePath): boolean {
  if (source.isInFlight(path)) return false;
  ledger.flush();
  const row = ledger.files.living(source.id, path);
  if (row?.state !== "parked") return false;
  const trouble = ledger.files.troubledAt(source.id, path).find((each) => each.path === path);
  if (trouble === undefined || trouble.code === NO_ANSWER) return false;
  try {
    const onDisk = lstatSync(join(rootOf(source), path), { throwIfNoEntry: false });
    return onDisk !== undefined && onDisk.ctimeMs === row.ctimeMs && onDisk.size === row.sizeBytes;
  } catch {
    return true; // Nor can it be looked at.
  }
}

/** What is not in agreement at a place, as the ledger and the disk have it. */
function reasonsAt(
  { ledger }: Parts,
  { source, below }: SourcePlace<SourceSync>,
  acknowledged: ReadonlySet<string>,
): WaitReason[] {
  const root = rootOf(source);
  const row = ledger.sources.get(source.id);
  const reason = (path: RelativePath, code: string, message: string): WaitReason => ({
    source: root,
    path,
    code,
    message,
  });
  const halt = standstillsOf(row).find(({ kind }) => kind !== "held");
  if (halt !== undefined)
    return [reason("", "halted", `halted, nothing is sent: ${halt.reason} (${halt.remedy})`)];
  const reasons: WaitReason[] = [];
  for (const { path, code, message } of ledger.files.troubledAt(source.id, below))
    reasons.push(reason(path, code, withRemedy(code, message)));
  if (source.isPaused()) {
    for (const path of source.pending(below))
      reasons.push(reason(path, "paused", "the source is paused: `kbsync resume` goes on"));
  }
  for (const path of source.unreadable(below))
    reasons.push(reason(path, "unreadable", "it cannot be looked at, so nothing is known of what is in it"));
  if (below !== undefined && reasons.length === 0 && !acknowledged.has(`${root}\n${below}`))
    reasons.push(...fileReasons(ledger, source, below, reason));
  return reasons;
}

function withRemedy(code: string, message: string): string {
  if (NO_LEAVE.has(code)) return `${message}, check its mode`;
  return code === "held" ? `its delete is held: ${message} (\`kbsync approve\` agrees to it)` : message;
}

const NO_LEAVE: ReadonlySet<string> = new Set(["EACCES", "EPERM"]);

/** A file that no trouble was noted of may be left out, or not looked at. */
function fileReasons(
  ledger: Parts["ledger"],
  source: SourceSync,
  path: RelativePath,
  reason: (path: RelativePath, code: string, message: string) => WaitReason,
): WaitReason[] {
  const known = ledger.files.living(source.id, path);
  if (known?.state === "agreed") return [];
  const onDisk = kindOnDisk(join(rootOf(source), path));
  if (onDisk === undefined) return [];
  if (onDisk === "folder") {
    const verdict = source.rules.entersFolder(path);
    return verdict.wanted ? [] : [reason(path, "left_out", verdict.reason)];
  }
  if (known?.state === "skipped") return [reason(path, "left_out", "left out: see `kbsync why`")];
  const verdict = source.rules.wants(path);
  if (!verdict.wanted) return [reason(path, "left_out", verdict.reason)];
  return [reason(path, "not_synced", "it is not synced: see `kbsync why`")];
}

function kindOnDisk(path: string): "file" | "folder" | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    return stats.isDirectory() ? "folder" : "file";
  } catch {
    return "file"; // What cannot be looked at is there, or may be: it is no agreement.
  }
}

function stopping(): KbsyncError {
  return new KbsyncError("the daemon is stopping", { code: "daemon_stopping", retryable: true });
}
