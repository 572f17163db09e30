import type { KnownFile, Look, Move, RelativePath, ScanEntry } from "./model.ts";

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
export function pairByIdentity(
  missing: readonly KnownFile[],
  changed: readonly Move[],
  fresh: readonly ScanEntry[],
): Pairs {
  // A row whose path still holds the same inode was edited in place; its file has not gone anywhere.
  const strangers = changed.filter(({ entry, known }) => entry.ino !== known.ino);
  const stayed = changed.filter(({ entry, known }) => entry.ino === known.ino);
  const rows = onlyOnes([...missing, ...strangers.map(({ known }) => known)].filter(mayMove));
  const entries = onlyOnes([...fresh, ...strangers.map(({ entry }) => entry)]);

  const moves: Move[] = [];
  const movedRows = new Set<number>();
  const takenPaths = new Set<RelativePath>();
  for (const [key, entry] of entries) {
    const row = entry === undefined ? undefined : rows.get(key);
    if (row === undefined || entry === undefined || row.path === entry.path) continue;
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
    const rowsByName = singles(candidates, ({ known }) => nameOf(known.path));
    const targetsByName = singles(targets, ({ entry }) => nameOf(entry.path));
    for (const [name, { known }] of rowsByName) {
      const entry = targetsByName.get(name)?.entry;
      if (entry !== undefined) moves.push({ known, entry });
    }
  }
  return moves;
}

/** A row whose resource is not surely what the ledger says has no content to recognise; one without has no id to keep. */
function mayMove(row: KnownFile): boolean {
  return row.docId !== null && row.state !== "doomed";
}

function onlyOnes<T extends Identity>(items: readonly T[]): ReadonlyMap<string, T> {
  return singles(items, ({ ino, sizeBytes, mtimeMs }) => `${ino}:${sizeBytes}:${mtimeMs}`);
}

/** The items whose key no other item has. */
function singles<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  const doubled = new Set<string>();
  for (const item of items) {
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
