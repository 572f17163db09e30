import { realpath, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { FolderContents } from "../../wire/daemon-folders.ts";
import { codeOf, isAbsence, KbsyncError } from "../../lib/failure.ts";
import { inSlices, stepsWhile } from "../../lib/steps.ts";
import { kindOfName } from "../../formats/kinds.ts";
import { EMPTY_FILE, type RelativePath } from "../plan/model.ts";
import type { Rules } from "./rules/rules.ts";
import { openReasons } from "./left-out.ts";
import { nothingFound, walk } from "./walk.ts";

/** Bounds of a count. */
export interface CountBounds {
  readonly forMs: number;
  /** Files that would be taken. A count holds all of them in memory. */
  readonly files: number;
}

/** A count of a quarter of a million files takes a second on a warm disk, and 100 MB. */
const BOUNDS: CountBounds = { forMs: 4000, files: 250_000 };
/** A file system that does not answer for this long is away. */
const SILENT_MS = 8000;
/** Paths that are resolved at a time. One whose file system is away occupies a thread of Node's until that answers. */
const RESOLVED_MAX = 2;

let resolving = 0;

/**
 * Returns the path of an existing folder without symbolic links. Throws `probe_busy`, `source_unusable`, also for a file system
 * that does not answer, and the signal's reason.
 */
export async function realFolder(path: string, signal: AbortSignal, silentMs = SILENT_MS): Promise<string> {
  signal.throwIfAborted();
  if (resolving >= RESOLVED_MAX) {
    throw new KbsyncError("other folders are being examined", { code: "probe_busy", retryable: true });
  }
  resolving += 1;
  const found = resolveFolder(path).finally(() => (resolving -= 1));
  const answered = new AbortController();
  const silence = sleep(silentMs, undefined, { signal: AbortSignal.any([signal, answered.signal]) });
  try {
    const first = await Promise.race([found, silence]);
    if (first !== undefined) return first;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    answered.abort();
    // Whichever of the two comes later is of no interest.
    void Promise.allSettled([found, silence]);
  }
  throw new KbsyncError(`the file system of ${path} does not answer`, {
    code: "source_unusable",
    subject: path,
    hint: "A network file system whose server is away does this.",
  });
}

async function resolveFolder(path: string): Promise<string> {
  const unusable = (words: string): KbsyncError =>
    new KbsyncError(`${path} ${words}`, { code: "source_unusable", subject: path });
  try {
    const real = await realpath(path);
    if ((await stat(real)).isDirectory()) return real;
  } catch (error) {
    const code = codeOf(error) ?? "UNKNOWN";
    throw unusable(isAbsence(error) ? "does not exist" : `cannot be read: ${code}`);
  }
  throw unusable("is no folder");
}

/** Files named in the result. More would be no overview. */
const FIRST_MAX = 20;
const UNREADABLE_MAX = 20;

/**
 * Counts what a source would take, by names and sizes, and what each rule leaves out. Throws `source_unusable` for a folder
 * that cannot be listed, and the signal's reason.
 */
export async function countFolder(
  root: string,
  rules: Rules,
  signal: AbortSignal,
  bounds = BOUNDS,
): Promise<FolderContents> {
  const reasons = openReasons();
  const found = nothingFound();
  const endMs = performance.now() + bounds.forMs;
  const steps = walk(root, rules, [""], found, reasons.add);
  const goesOn = (): boolean => performance.now() < endMs && found.entries.length < bounds.files;
  const complete = await inSlices(stepsWhile(steps, goesOn), signal);
  if (found.rootFailure !== undefined) {
    throw new KbsyncError(`${root} cannot be read: ${found.rootFailure}`, {
      code: "source_unusable",
      subject: root,
      hint: "The user that runs the daemon needs the right to read and enter the folder.",
    });
  }
  const { entries, skipped, refused, unreadable } = found;
  for (const { entry, reason } of skipped) reasons.add(entry.path, reason, "file");
  for (const { path, reason } of refused) reasons.add(path, withoutSize(reason), "file");
  for (const { path } of entries.filter(({ sizeBytes }) => sizeBytes === 0))
    reasons.add(path, EMPTY_FILE, "file");
  const taken = entries.filter(({ sizeBytes }) => sizeBytes > 0);
  return {
    files: taken.length,
    bytes: taken.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    kinds: kindsOf(taken),
    first: taken
      .map(({ path }) => path)
      .toSorted()
      .slice(0, FIRST_MAX),
    leftOut: reasons.list(),
    unreadable: unreadable.length,
    unreadablePaths: unreadable.slice(0, UNREADABLE_MAX).map(({ path }) => path),
    complete,
  };
}

/** `larger than maxFileBytes (32000000)` of `41943040 bytes, larger than maxFileBytes (32000000)`. */
function withoutSize(reason: string): string {
  return reason.replace(/^\d+ bytes, /, "");
}

function kindsOf(
  entries: readonly { readonly path: RelativePath; readonly sizeBytes: number }[],
): FolderContents["kinds"] {
  const byKind = new Map<string, { kind: string; files: number; bytes: number }>();
  for (const { path, sizeBytes } of entries) {
    const kind = kindOf(path);
    const sum = byKind.get(kind) ?? { kind, files: 0, bytes: 0 };
    sum.files += 1;
    sum.bytes += sizeBytes;
    byKind.set(kind, sum);
  }
  return [...byKind.values()].toSorted((a, b) => b.files - a.files || a.kind.localeCompare(b.kind));
}

function kindOf(path: RelativePath): string {
  const named = kindOfName(path.slice(path.lastIndexOf("/") + 1));
  if (named.kind === "file") return /\.pdf$/i.test(path) ? "pdf" : "image";
  return named.kind === "content" ? named.format : named.kind;
}
