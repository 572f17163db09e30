import type { FolderContents } from "../../wire/daemon-folders.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { kindOfName } from "../../formats/kinds.ts";
import { EMPTY_FILE, type RelativePath } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { countingRules, openReasons } from "./left-out.ts";
import { openWalk } from "./walk.ts";

/** Bounds of a count. */
export interface CountBounds {
  readonly forMs: number;
  /** Files that would be taken. A count holds all of them in memory. */
  readonly files: number;
}

/** Files named in the result. More would be no overview. */
const FIRST_MAX = 20;
const UNREADABLE_MAX = 20;
const SLICE_MS = 50;

/**
 * Counts what a source would take, by names and sizes, and what each rule leaves out. Blocks its thread, at most for about the
 * time of its bounds. Throws `source_unusable` for a folder that cannot be listed.
 */
export function countFolder(root: string, rules: Rules, bounds: CountBounds): FolderContents {
  const reasons = openReasons();
  const walk = openWalk(root, countingRules(rules, reasons.add));
  const endMs = performance.now() + bounds.forMs;
  walk.begin("");
  let complete = false;
  while (!complete && performance.now() < endMs && walk.found.entries.length < bounds.files)
    complete = !walk.advance(SLICE_MS);
  const failure = walk.rootFailure();
  if (failure !== undefined) {
    throw new KbsyncError(`${root} cannot be read: ${failure}`, {
      code: "source_unusable",
      subject: root,
      hint: "The user that runs the daemon needs the right to read and enter the folder.",
    });
  }
  const { entries, skipped, refused, unreadable } = walk.found;
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
