import type { Difference, KnownFile, Look, Move, RelativePath, ScanEntry } from "./model.ts";
import { STEP_ITEMS, type Steps, takeAll } from "./steps.ts";
import { openTextMap, type TextMap } from "./text-map.ts";

/** What a file is told by apart from its name. An inode number alone is not enough: it is used again at once. */
interface Identity {
  readonly ino: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
}

/** Whether two looks saw the same file with the same bytes, whatever its name. */
export function sameIdentity(a: Identity, b: Identity): boolean {
  return a.ino === b.ino && a.sizeBytes === b.sizeBytes && a.mtimeMs === b.mtimeMs;
}

/** How rows and entries were brought together: `gone` rows and `fresh` entries are left without a partner. */
export interface Pairs {
  readonly moves: readonly Move[];
  readonly stayed: readonly Move[];
  readonly gone: readonly KnownFile[];
  readonly fresh: readonly ScanEntry[];
}

/**
 * Finds files that have another name now: by inode, size and modification time. Renames, swaps, rings and renames
 * over another file come out as moves. Where two rows or two entries share an identity (hard links), none of them is
 * moved: there is nothing to tell them apart by.
 */
export function* pairInSteps(
  missing: readonly KnownFile[],
  changed: readonly Move[],
  fresh: readonly ScanEntry[],
): Steps<Pairs> {
  // A row whose path still holds the same inode was edited in place; its file has not gone anywhere.
  const strangers = changed.filter(({ entry, known }) => entry.ino !== known.ino);
  const stayed = changed.filter(({ entry, known }) => entry.ino === known.ino);
  // Nothing has gone, so nothing has come from elsewhere: as in a first sync.
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

/** New files that may be a missing one under another name, judged by size: their hash must be known to decide. */
export function moveSuspects(looks: readonly Look[], gone: readonly KnownFile[]): readonly Look[] {
  const sizes = new Set(gone.filter(mayMove).map(({ sizeBytes }) => sizeBytes));
  return sizes.size === 0
    ? []
    : looks.filter(({ entry, known }) => known === undefined && sizes.has(entry.sizeBytes));
}

/**
 * New files with the inode of a missing one, whose size or time is another: moved and edited at once, or a number that
 * was used again. A file that was born before the row's change time had the inode then, so it is the row's.
 */
export function inodeSuspects(looks: readonly Look[], gone: readonly KnownFile[]): readonly Move[] {
  if (gone.length === 0) return [];
  const rows = takeAll(singles(gone.filter(mayMove), ({ ino }) => String(ino)));
  const fresh = looks.filter(
    ({ entry, known }) => known === undefined && entry.link === undefined && rows.has(String(entry.ino)),
  );
  return [...takeAll(singles(fresh, ({ entry }) => String(entry.ino))).entries()].flatMap(
    ([ino, { entry }]) => {
      const known = rows.get(ino);
      return known === undefined ? [] : [{ known, entry }];
    },
  );
}

/**
 * Pairs missing rows with new files of the same content hash. Of several rows or files with one hash, those whose
 * file name is the only one of its kind on both sides are paired; the rest is left: equal bytes tell nothing more.
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

/** What is left of a difference once its moves are done. */
export interface Followed {
  /** All moves, those by content too. */
  readonly moves: readonly Move[];
  readonly looks: readonly Look[];
  /** Rows that are to be deleted, as the brakes see fit; one whose path a moved file took is doomed. */
  readonly gone: readonly KnownFile[];
}

/** Works out what a difference comes to with the moves that were found `byHash`. `looks` are those that may begin now. */
export function followMoves(
  { moves: byIdentity, gone }: Pick<Difference, "moves" | "gone">,
  looks: readonly Look[],
  byHash: readonly Move[],
): Followed {
  const moves = [...byIdentity, ...byHash];
  const targets = new Set(moves.map(({ entry }) => entry.path));
  const moved = new Set(moves.map(({ known }) => known.id));
  // Renamed over: the old file's path is another's now, so its resource goes whatever the brakes say of others.
  const judged = (row: KnownFile): KnownFile =>
    targets.has(row.path) && row.state !== "held" ? { ...row, state: "doomed" } : row;
  const hashMoves = new Map(byHash.map((move) => [move.entry.path, move]));
  return {
    moves,
    looks: looks.map((look) => {
      const move = hashMoves.get(look.entry.path);
      return move === undefined ? look : { entry: look.entry, known: move.known, from: move.known.path };
    }),
    gone: gone.filter(({ id }) => !moved.has(id)).map(judged),
  };
}

/** A row whose resource is not surely what the ledger says has no content to recognise; one without has no id to keep. */
function mayMove(row: KnownFile): boolean {
  return row.docId !== null && row.state !== "doomed";
}

function uniqueByIdentity<T extends Identity>(items: readonly T[]): Steps<TextMap<T>> {
  return singles(items, ({ ino, sizeBytes, mtimeMs }) => `${ino}:${sizeBytes}:${mtimeMs}`);
}

/** The items whose key no other item has. */
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
