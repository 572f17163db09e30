import type { Difference, KnownFile, Candidate, Move, RelativePath, ScanEntry } from "./model.ts";
import { STEP_ITEMS, type Steps, takeAll } from "../../lib/steps.ts";
import { openTextMap, type TextMap } from "./text-map.ts";

/** Identifies a file apart from its name. An inode number alone is not enough: it is reused at once. */
interface Identity {
  readonly ino: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

/** Reports whether two scans saw the same file with the same bytes, whatever its name. */
export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.ino === b.ino && a.sizeBytes === b.sizeBytes && a.mtimeMs === b.mtimeMs;
}

/** Pairs of rows and entries. `gone` rows and `fresh` entries have no partner. */
export interface Pairs {
  readonly moves: readonly Move[];
  readonly stayed: readonly Move[];
  readonly gone: readonly KnownFile[];
  readonly fresh: readonly ScanEntry[];
}

/**
 * Finds renamed files by inode, size and modification time. Renames, swaps, rings and renames over another file come
 * out as moves. Where two rows or two entries share an identity (hard links), none of them moves: nothing distinguishes
 * them.
 */
export function* pairInSteps(
  missing: readonly KnownFile[],
  changed: readonly Move[],
  fresh: readonly ScanEntry[],
): Steps<Pairs> {
  // A row whose path still holds the same inode was edited in place; its file has not moved.
  const strangers = changed.filter(({ entry, known }) => entry.ino !== known.ino);
  const stayed = changed.filter(({ entry, known }) => entry.ino === known.ino);
  // Nothing is gone, so nothing has moved here, as in a first sync.
  if (missing.length + strangers.length === 0) return { moves: [], stayed, gone: [], fresh };
  const rows = yield* uniqueByIdentity([...missing, ...strangers.map(({ known }) => known)].filter(mayMove));
  const entries = yield* uniqueByIdentity([...fresh, ...strangers.map(({ entry }) => entry)]);

  const moves: Move[] = [];
  const movedRows = new Set<number>();
  const takenPaths = new Set<RelativePath>();
  let items = 0;
  for (const [key, entry] of entries.entries()) {
    if (++items % STEP_ITEMS === 0) yield;
    const row = rows.get(key);
    if (row === undefined || row.path === entry.path) continue;
    moves.push({ known: row, entry });
    movedRows.add(row.id);
    takenPaths.add(entry.path);
  }

  const gone = missing.filter(({ id }) => !movedRows.has(id));
  const left = fresh.filter(({ path }) => !takenPaths.has(path));
  for (const { entry, known } of strangers) {
    const rowStays = !movedRows.has(known.id);
    const entryFree = !takenPaths.has(entry.path);
    if (rowStays && entryFree) stayed.push({ entry, known });
    else if (rowStays) gone.push(known);
    else if (entryFree) left.push(entry);
  }
  return { moves, stayed, gone, fresh: left };
}

/** Returns new files that may be a missing one under another name, by size. Their hash must be known to decide. */
export function moveSuspects(
  candidates: readonly Candidate[],
  gone: readonly KnownFile[],
): readonly Candidate[] {
  const sizes = new Set(gone.filter(mayMove).map(({ sizeBytes }) => sizeBytes));
  return sizes.size === 0
    ? []
    : candidates.filter(({ entry, known }) => known === undefined && sizes.has(entry.sizeBytes));
}

/**
 * Returns new files with the inode of a missing one but another size or time: the file was moved and edited, or the
 * number was reused. A file born before the row's change time already had the inode then, so it is the row's.
 */
export function inodeSuspects(candidates: readonly Candidate[], gone: readonly KnownFile[]): readonly Move[] {
  if (gone.length === 0) return [];
  const rows = takeAll(singles(gone.filter(mayMove), ({ ino }) => String(ino)));
  const fresh = candidates.filter(({ entry, known }) => known === undefined && rows.has(String(entry.ino)));
  return [...takeAll(singles(fresh, ({ entry }) => String(entry.ino))).entries()].flatMap(
    ([ino, { entry }]) => {
      const known = rows.get(ino);
      return known === undefined ? [] : [{ known, entry }];
    },
  );
}

/**
 * Pairs missing rows with new files of the same content hash. Of several rows or files with one hash, it pairs those
 * whose file name is unique on both sides and leaves the rest: equal bytes prove nothing more.
 */
export function pairByHash(
  gone: readonly { readonly known: KnownFile; readonly hash: string }[],
  fresh: readonly { readonly entry: ScanEntry; readonly hash: string }[],
): readonly Move[] {
  const rows = Map.groupBy(
    gone.filter(({ known, hash }) => hash !== "" && mayMove(known)),
    ({ hash }) => hash,
  );
  const files = Map.groupBy(fresh, ({ hash }) => hash);
  const moves: Move[] = [];
  for (const [hash, candidates] of rows) {
    const targets = files.get(hash) ?? [];
    const [row] = candidates;
    const [target] = targets;
    if (row !== undefined && target !== undefined && candidates.length === 1 && targets.length === 1) {
      moves.push({ known: row.known, entry: target.entry });
      continue;
    }
    const rowsByName = takeAll(singles(candidates, ({ known }) => nameOf(known.path)));
    const targetsByName = takeAll(singles(targets, ({ entry }) => nameOf(entry.path)));
    for (const [name, { known }] of rowsByName.entries()) {
      const entry = targetsByName.get(name)?.entry;
      if (entry !== undefined) moves.push({ known, entry });
    }
  }
  return moves;
}

/** The rest of a difference after its moves. */
export interface Followed {
  /** All moves, including those found by content. */
  readonly moves: readonly Move[];
  readonly candidates: readonly Candidate[];
  /** Rows with a resource whose file is gone, under every name. */
  readonly gone: readonly KnownFile[];
}

/** Applies the moves that were found `byHash` to a difference. `candidates` are those that may begin now. */
export function followMoves(
  { moves: byIdentity, gone }: Pick<Difference, "moves" | "gone">,
  candidates: readonly Candidate[],
  byHash: readonly Move[],
): Followed {
  const moves = [...byIdentity, ...byHash];
  const targets = new Set(moves.map(({ entry }) => entry.path));
  const moved = new Set(moves.map(({ known }) => known.id));
  // Renamed over: another file has the old file's path now, so its resource goes whatever the brakes decide about
  // others.
  const judged = (row: KnownFile): KnownFile =>
    targets.has(row.path) && row.state !== "held" ? { ...row, state: "doomed" } : row;
  const hashMoves = new Map(byHash.map((move) => [move.entry.path, move]));
  return {
    moves,
    candidates: candidates.map((candidate) => {
      const move = hashMoves.get(candidate.entry.path);
      return move === undefined
        ? candidate
        : { entry: candidate.entry, known: move.known, from: move.known.path };
    }),
    gone: gone.filter(({ id }) => !moved.has(id)).map(judged),
  };
}

/** A row without a resource has no id to preserve. A doomed row is deleted. */
function mayMove(row: KnownFile): boolean {
  return row.docId !== null && row.state !== "doomed";
}

function uniqueByIdentity<T extends Identity>(items: readonly T[]): Steps<TextMap<T>> {
  return singles(items, ({ ino, sizeBytes, mtimeMs }) => `${ino}:${sizeBytes}:${mtimeMs}`);
}

/** Returns the items whose key no other item has. */
function* singles<T>(items: readonly T[], keyOf: (item: T) => string): Steps<TextMap<T>> {
  const found = openTextMap<T>();
  const doubled = new Set<string>();
  for (const [index, item] of items.entries()) {
    if (index % STEP_ITEMS === STEP_ITEMS - 1) yield;
    const key = keyOf(item);
    if (found.has(key)) doubled.add(key);
    found.set(key, item);
  }
  for (const key of doubled) found.delete(key);
  return found;
}

function nameOf(path: RelativePath): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
