import { createHash } from "node:crypto";
import { KbsyncError } from "../../../lib/failure.ts";
import { joinText } from "../rows/parts.ts";
import type { MoveSource, MoveTarget, Progress } from "./side.ts";
import { openDigest, type Digest, type Row, type Table } from "./table.ts";
import { COUNTERS, TABLES } from "./tables.ts";

export interface MoveOptions {
  readonly signal: AbortSignal;
  /** Called after each page. */
  readonly onProgress?: (progress: MoveProgress) => void;
}

/** The progress of a copy. */
export interface MoveProgress {
  readonly step: "copy" | "compare" | "texts";
  /** The table that it works on, counted from 1. */
  readonly table: number;
  readonly tables: number;
  /** Records of this step so far. */
  readonly records: number;
}

/** The result of a copy. */
export interface Moved {
  readonly from: string;
  readonly to: string;
  /** Whether it went on with an unfinished copy. */
  readonly wasResumed: boolean;
  readonly records: number;
  readonly documents: number;
  /** Digests of the tables, which are equal in both stores. */
  readonly tables: Readonly<Record<string, Digest>>;
}

/** Opens two stores, copies the first to the second, and closes both. Throws as `moveStore`. */
export async function moveBetween(
  openSource: () => Promise<MoveSource> | MoveSource,
  openTarget: () => Promise<MoveTarget> | MoveTarget,
  options: MoveOptions,
): Promise<Moved> {
  const source = await openSource();
  try {
    const target = await openTarget();
    try {
      return await moveStore(source, target, options);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/**
 * Copies all records of a store to an empty one, page by page, and compares both afterwards: counts and hashes of all tables, and
 * the hash of each text. A copy that was ended in between goes on where it was. Changes nothing in the source. Throws `move_occupied`
 * if the target is a copy of another store, and `move_differs` if both differ in the end; the target then stays unfinished.
 */
export async function moveStore(
  source: MoveSource,
  target: MoveTarget,
  options: MoveOptions,
): Promise<Moved> {
  const identity = await identityOf(source, options);
  const before = await target.progress();
  if (before !== undefined && before.source !== identity) throw occupied(target.name, source.name);
  const first: Progress = { source: identity, table: 0, after: null };
  if (before === undefined) await target.begin(first);
  await copy(source, target, before ?? first, options);
  for (const counter of COUNTERS) await target.count(counter, await source.last(counter));
  const tables = await compare(source, target, options);
  const documents = await compareTexts(target, options);
  await target.end();
  const records = Object.values(tables).reduce((sum, { rows }) => sum + rows, 0);
  return { from: source.name, to: target.name, wasResumed: before !== undefined, records, documents, tables };
}

/** Identifies a store by the collections of its accounts, whose ids are random. */
async function identityOf(source: MoveSource, { signal }: MoveOptions): Promise<string> {
  return (await digestOf(source, tableNamed("collection"), signal)).sum;
}

function tableNamed(name: string): Table {
  const found = TABLES.find((table) => table.name === name);
  if (found === undefined) throw new TypeError(`there is no table ${name}`);
  return found;
}

async function copy(
  source: MoveSource,
  target: MoveTarget,
  start: Progress,
  { signal, onProgress }: MoveOptions,
): Promise<void> {
  let progress = start;
  let records = 0;
  while (progress.table < TABLES.length) {
    signal.throwIfAborted();
    const table = TABLES[progress.table];
    if (table === undefined) throw new TypeError("a copy is at a table that does not exist");
    const { rows, next } = await source.page(table, progress.after ?? undefined);
    const after: Progress =
      next === undefined
        ? { ...progress, table: progress.table + 1, after: null }
        : { ...progress, after: next };
    await target.add(table, rows, progress, after);
    records += rows.length;
    onProgress?.({ step: "copy", table: progress.table + 1, tables: TABLES.length, records });
    progress = after;
  }
}

/** Compares all tables of two stores. Reads both from the beginning. Throws `move_differs`. */
async function compare(
  source: MoveSource,
  target: MoveTarget,
  { signal, onProgress }: MoveOptions,
): Promise<Readonly<Record<string, Digest>>> {
  const digests: Record<string, Digest> = {};
  let records = 0;
  for (const [at, table] of TABLES.entries()) {
    const [mine, copied] = [await digestOf(source, table, signal), await digestOf(target, table, signal)];
    if (mine.rows !== copied.rows || mine.sum !== copied.sum) {
      const counts =
        mine.rows === copied.rows
          ? `the contents of its ${mine.rows} records are not the same`
          : `${mine.rows} records in the source, ${copied.rows} in the copy`;
      throw differs(target.name, `table ${table.name}: ${counts}`);
    }
    digests[table.name] = mine;
    records += mine.rows;
    onProgress?.({ step: "compare", table: at + 1, tables: TABLES.length, records });
  }
  return digests;
}

async function digestOf(store: MoveSource, table: Table, signal: AbortSignal): Promise<Digest> {
  const digest = openDigest(table.columns);
  for (let page = await store.page(table, undefined); ; page = await store.page(table, page.next)) {
    signal.throwIfAborted();
    for (const row of page.rows) digest.add(row);
    if (page.next === undefined) return digest.end();
  }
}

/** Joins the text of each document of the copy, and compares its hash with the one that was noted when it was written. */
async function compareTexts(target: MoveTarget, { signal, onProgress }: MoveOptions): Promise<number> {
  const table = tableNamed("resource");
  let records = 0;
  for (let page = await target.page(table, undefined); ; page = await target.page(table, page.next)) {
    for (const row of page.rows) {
      signal.throwIfAborted();
      if (row["is_deleted"] === true) continue;
      await compareText(target, row);
      records += 1;
    }
    onProgress?.({ step: "texts", table: TABLES.length, tables: TABLES.length, records });
    if (page.next === undefined) return records;
  }
}

async function compareText(target: MoveTarget, row: Row): Promise<void> {
  const { sha256 } = row;
  // Texts of old versions have none.
  if (!Buffer.isBuffer(sha256)) return;
  const [accountId, head, first, chunks] = [
    String(row["account_id"]),
    String(row["head"]),
    Number(row["first_row"]),
    Number(row["chunks"]),
  ];
  const text =
    chunks === 0 ? head : joinText(head, await target.chunks(accountId, first, first + chunks - 1));
  if (createHash("sha256").update(text).digest().equals(sha256)) return;
  throw differs(
    target.name,
    `the text of the document ${String(row["id"])} has another hash than when it was written`,
  );
}

function differs(target: string, what: string): KbsyncError {
  return new KbsyncError(`the copy in ${target} differs: ${what}`, {
    code: "move_differs",
    subject: target,
    hint: "If a service has used the source since the copy started, empty the target and start over. Otherwise check the disks of both: `kbsync doctor`.",
  });
}

function occupied(target: string, source: string): KbsyncError {
  return new KbsyncError(`${target} has the unfinished copy of another store than ${source}`, {
    code: "move_occupied",
    subject: target,
    hint: "Finish that copy, or name an empty target.",
  });
}
