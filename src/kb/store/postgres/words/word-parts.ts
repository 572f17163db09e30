import { rowOf, SEQUENCE_MAX } from "../../../index/rows.ts";
import { makeByteCache, type ByteCache } from "../../../index/words/byte-cache.ts";
import type { PostingList } from "../../../index/words/postings.ts";
import { makeRemoved } from "../../../index/words/removed.ts";
import type { RunHead } from "../../../index/words/run.ts";
import {
  markRemoved,
  storedRun,
  storedSegment,
  type Removal,
  type StoredPart,
} from "../../search/stored-parts.ts";
import type { Transaction } from "../database/connections.ts";

/** Memory for posting lists of runs, in bytes: some 50 million postings. */
export const LIST_BYTES_MAX = 64 * 1024 * 1024;
/** Memory for open parts of scopes, in bytes: the segments and what is read of a run before its lists. */
export const PART_BYTES_MAX = 64 * 1024 * 1024;

/** The parts of a scope in one snapshot. Never changes: snapshots of several searches are open at a time. */
export interface OpenScope {
  /** Differs between all states of the scope. */
  readonly state: string;
  /** By ascending sequences. */
  readonly parts: readonly MarkedPart[];
}

/** A part with its removed chunks marked. */
export interface MarkedPart extends StoredPart {
  /** The marked removals of the scope: how many, and the number of the last one. */
  readonly marks: string;
}

/** The caches of searches by words. */
export interface WordCaches {
  /** Lists of runs, by the number of the run and the hash of the term. */
  readonly lists: ByteCache<string, PostingList>;
  readonly scopes: ByteCache<number, OpenScope>;
}

export function makeWordCaches(listBytesMax = LIST_BYTES_MAX, partBytesMax = PART_BYTES_MAX): WordCaches {
  return { lists: makeByteCache(listBytesMax), scopes: makeByteCache(partBytesMax) };
}

/** Thrown by a read of pages of a run that have not been fetched yet. */
export class PagesMissing extends Error {
  readonly run: number;
  readonly first: number;
  readonly last: number;
  constructor(run: number, first: number, last: number) {
    super("pages of a run are not in memory");
    [this.run, this.first, this.last] = [run, first, last];
  }
}

/** Pages of runs by `pageKey`; undefined: the database has no such page. */
export type Pages = ReadonlyMap<string, Buffer | undefined>;

export const pageKey = (run: number, page: number): string => `${run}/${page}`;

const NO_PAGES: Pages = new Map();

/**
 * The pages that runs read at present. A run is shared by searches, each of which fetches its own pages; reads of a run return before
 * another search goes on.
 */
let current: Pages = NO_PAGES;

/** Lets runs read these pages. Reads of others throw `PagesMissing`. */
export function withPages<T>(pages: Pages, read: () => T): T {
  current = pages;
  try {
    return read();
  } finally {
    current = NO_PAGES;
  }
}

function pagesOf(run: number) {
  return (first: number, last: number): Buffer[] => {
    const found: Buffer[] = [];
    for (let page = first; page <= last; page++) {
      const key = pageKey(run, page);
      if (!current.has(key)) throw new PagesMissing(run, first, last);
      const bytes = current.get(key);
      if (bytes !== undefined) found.push(bytes);
    }
    return found;
  };
}

/** Where the parts of a scope are. */
export interface PartsOf {
  readonly accountId: string;
  readonly scope: number;
}

/** Reads the parts of a scope and marks these removals in them. Takes parts that `known` has already. Throws `DamagedIndex`. */
export async function readParts(
  tx: Transaction,
  of: PartsOf,
  known: readonly MarkedPart[],
  removals: readonly Removal[],
): Promise<MarkedPart[]> {
  const before = new Map(known.map((part) => [`${part.kind} ${part.number}`, part]));
  const opened = [...(await readRuns(tx, of, before)), ...(await readSegments(tx, of, before))];
  const parts = opened.toSorted((a, b) => a.first - b.first);
  return marked(parts, removals, before);
}

export async function readRemovals(tx: Transaction, of: PartsOf): Promise<Removal[]> {
  return tx.all<Removal>(
    "SELECT number, first, last FROM word_removal WHERE account_id = @accountId AND scope = @scope ORDER BY number",
    { ...of },
  );
}

/** Runs of a scope, by their first sequences. */
async function readRuns(
  tx: Transaction,
  of: PartsOf,
  known: ReadonlyMap<string, StoredPart>,
): Promise<StoredPart[]> {
  const listed = await tx.all<{ readonly number: number }>(
    "SELECT number FROM word_run WHERE account_id = @accountId AND scope = @scope ORDER BY first",
    { ...of },
  );
  const numbers = listed.map(({ number }) => number);
  const missing = numbers.filter((number) => !known.has(`run ${number}`));
  const rows =
    missing.length === 0
      ? []
      : await tx.all<RunHead & { readonly number: number; readonly first: number }>(
          `SELECT number, first, sequences, lengths, directory, filter FROM word_run
          WHERE account_id = @accountId AND scope = @scope AND number = ANY (@missing::bigint[])`,
          { ...of, missing },
        );
  const made = new Map(
    rows.map((row) => [row.number, storedRun(row.number, row.first, row, pagesOf(row.number))]),
  );
  return numbers.flatMap((number) => made.get(number) ?? known.get(`run ${number}`) ?? []);
}

/** Segments of a scope, in order. */
async function readSegments(
  tx: Transaction,
  of: PartsOf,
  known: ReadonlyMap<string, StoredPart>,
): Promise<StoredPart[]> {
  const base = rowOf(of.scope, 0);
  const within = { accountId: of.accountId, from: base, to: rowOf(of.scope, SEQUENCE_MAX) };
  const listed = await tx.all<{ readonly row: number }>(
    `SELECT first_row AS row FROM word_segment
    WHERE account_id = @accountId AND first_row BETWEEN @from AND @to ORDER BY first_row`,
    within,
  );
  const missing = listed.flatMap(({ row }) => (known.has(`segment ${row - base}`) ? [] : row));
  const rows =
    missing.length === 0
      ? []
      : await tx.all<{ readonly row: number; readonly data: Buffer }>(
          `SELECT first_row AS row, data FROM word_segment
          WHERE account_id = @accountId AND first_row = ANY (@missing::bigint[])`,
          { accountId: of.accountId, missing },
        );
  const made = new Map(rows.map(({ row, data }) => [row, storedSegment(data, row - base)]));
  return listed.flatMap(({ row }) => made.get(row) ?? known.get(`segment ${row - base}`) ?? []);
}

/** Marks the removed chunks of parts. Those with other marks than before get new ones: other searches still read the old. */
function marked(
  parts: readonly StoredPart[],
  removals: readonly Removal[],
  before: ReadonlyMap<string, MarkedPart>,
): MarkedPart[] {
  const of = parts.map((): Removal[] => []);
  for (const removal of removals) of[partOf(parts, removal.first)]?.push(removal);
  return parts.map((part, at) => {
    const own = of[at] ?? [];
    const marks = `${own.length}/${own.at(-1)?.number ?? 0}`;
    const known = before.get(`${part.kind} ${part.number}`);
    if (known?.marks === marks) return known;
    const fresh = { ...part, removed: makeRemoved(part.part), marks };
    markRemoved([fresh], own);
    return fresh;
  });
}

/** Returns the index of the part that has a sequence, if one has it. */
export function partOf(parts: readonly StoredPart[], sequence: number): number {
  let low = 0;
  let high = parts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((parts[middle]?.first ?? 0) <= sequence) low = middle;
    else high = middle - 1;
  }
  return low;
}
