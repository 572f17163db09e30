import { lstatSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { integerColumn } from "../../../lib/integer-column.ts";
import { readDocument } from "../../scan/read/read.ts";
import type { KnownFile, Candidate, Move, RelativePath, Scan, ScanEntry } from "../../plan/model.ts";
import { type Followed, inodeSuspects, moveSuspects, pairByHash } from "../../plan/moves.ts";
import { scopeTest } from "../../plan/scope.ts";
import { hashesOf } from "../../plan/versions.ts";
import { scanPaths } from "../../scan/scan.ts";
import { reportsBirthTime } from "../../scan/disk/root-identity.ts";
import type { PassContext } from "./context.ts";

/** Rows that change their path in one transaction: some 40 ms. */
const MOVED_AT_ONCE = 1000;

/** Number of marked paths that are checked for a file that has just gone: some 20 ms. */
const MARKED_MAX = 5000;

/** Files read between two turns of the loop. */
const READ_AT_ONCE = 32;

/**
 * Widens a partial scan. A new file may be a known one under another name, whose old path must be checked in the same
 * pass. `missing` are paths that were found missing and whose delete still waits; `all` includes them in whatever is
 * new. So are paths that are due later: a copy is due before its original that was deleted right after.
 */
export async function widen(
  pass: PassContext,
  scan: Scan,
  missing: Iterable<RelativePath>,
  all: boolean,
): Promise<Scan> {
  const { id: source, root, rules } = pass.source;
  const { ledger } = pass.context;
  const scope = scan.scope ?? [];
  const inScope = scopeTest(scope);
  const others = new Set<RelativePath>();
  for (const entry of scan.entries) {
    for (const known of ledger.files.byInode(source, entry.ino)) {
      // Whatever its size and time: it may have been edited as well.
      if (!inScope(known.path)) others.add(known.path);
    }
  }
  const fresh = scan.entries.filter(({ path }) => ledger.files.living(source, path) === undefined);
  if (all || fresh.length > 0) for (const path of missing) if (!inScope(path)) others.add(path);
  if (fresh.length > 0)
    for (const path of goneLately(pass, new Set(fresh.map(({ sizeBytes }) => sizeBytes))))
      if (!inScope(path)) others.add(path);
  if (others.size === 0 || scan.root === undefined) return scan;
  const more = await scanPaths(root, rules, [...others], { signal: pass.signal });
  if (more.root === undefined) return more;
  return {
    root: scan.root,
    entries: [...scan.entries, ...more.entries],
    unreadable: [...scan.unreadable, ...more.unreadable],
    refused: [...scan.refused, ...more.refused],
    skipped: [...scan.skipped, ...more.skipped],
    scope: [...scope, ...(more.scope ?? [])],
  };
}

/** Returns paths of which a check is due and at which there is no file any more, where the ledger knows one of such a size. */
function* goneLately(
  { source: { id, root }, context: { ledger }, agenda }: PassContext,
  sizes: ReadonlySet<number>,
): Iterable<RelativePath> {
  let asked = 0;
  for (const path of agenda.due()) {
    if (++asked > MARKED_MAX) return;
    const known = ledger.files.living(id, path);
    if (known === undefined || known.docId === null || !sizes.has(known.sizeBytes)) continue;
    if (!isThere(join(root, path))) yield path;
  }
}

/** A path that cannot be read counts as existing. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/**
 * Finds files that moved and changed: those edited at the same time, recognised by inode and time of birth, and those
 * with another inode, recognised by their content, which must be read. The former are searched for among `mayBeEdited`.
 */
export async function findMoves(
  pass: PassContext,
  candidates: readonly Candidate[],
  gone: readonly KnownFile[],
  mayBeEdited: readonly Candidate[] = candidates,
): Promise<readonly Move[]> {
  const edited = inodeSuspects(mayBeEdited, gone).filter((move) => isSameFile(pass, move));
  const rows = new Set(edited.map(({ known }) => known.id));
  const paths = new Set(edited.map(({ entry }) => entry.path));
  const moved = await findMovesByHash(
    pass,
    candidates.filter(({ entry }) => !paths.has(entry.path)),
    gone.filter(({ id }) => !rows.has(id)),
  );
  return [...edited, ...moved];
}

/** Reports whether the file has had its inode since before the known change time, when that was the known file. */
export function isSameFile(
  { source: { root } }: PassContext,
  { known, entry }: { readonly known: Pick<ScanEntry, "ino" | "ctimeMs">; readonly entry: ScanEntry },
): boolean {
  try {
    const path = join(root, entry.path);
    const { ino, birthtimeMs } = lstatSync(path);
    // Coarse times would be equal for two files of one second.
    const isFine = reportsBirthTime() && birthtimeMs > 0 && birthtimeMs % 1000 !== 0;
    return isFine && integerColumn(ino) === known.ino && birthtimeMs <= known.ctimeMs;
  } catch {
    return false; // It is checked again for what happens to it now.
  }
}

/** Finds files that moved without keeping their inode. */
async function findMovesByHash(
  { source: { root, rules }, context: { ledger, moved }, signal }: PassContext,
  candidates: readonly Candidate[],
  gone: readonly KnownFile[],
): Promise<readonly Move[]> {
  const suspects = moveSuspects(candidates, gone);
  if (suspects.length === 0) return [];
  const sizes = new Set(suspects.map(({ entry }) => entry.sizeBytes));
  const read: { entry: ScanEntry; hash: string }[] = [];
  for (const [index, { entry }] of suspects.entries()) {
    const outcome = await readDocument(join(root, entry.path), entry, rules, { signal });
    moved();
    if (outcome.kind === "document") read.push({ entry, hash: outcome.document.hash });
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
  const readHashes = new Map(read.flatMap(({ hash }) => hashesOf(hash).map((each) => [each, hash] as const)));
  const rows = gone
    .filter(({ sizeBytes }) => sizes.has(sizeBytes))
    .map((known) => {
      const hash = ledger.files.get(known.id)?.hash ?? "";
      return { known, hash: readHashes.get(hash) ?? hash };
    });
  return pairByHash(rows, read);
}

/**
 * Gives moved rows their new paths in the ledger. It moves all at once if one takes the path of another, so that none
 * displaces the other; otherwise a batch at a time, because a transaction of a million rows blocks the loop for
 * seconds.
 */
export async function applyMoves(
  { context: { ledger } }: PassContext,
  { moves }: Pick<Followed, "moves">,
): Promise<void> {
  if (moves.length === 0) return;
  const steps = moves.map(({ known, entry }) => ({ id: known.id, to: entry.path }));
  const left = new Set(moves.map(({ known }) => known.path));
  const atOnce = steps.some(({ to }) => left.has(to)) ? steps.length : MOVED_AT_ONCE;
  for (let at = 0; at < steps.length; at += atOnce) {
    const some = steps.slice(at, at + atOnce);
    await ledger.write(() => ledger.files.repath(some));
  }
}
