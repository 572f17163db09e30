import { rowOf } from "../../../index/rows.ts";
import { mergeParts, type MergedHead } from "../../../index/words/merge.ts";
import { runsToMerge } from "../../../index/words/merge-plan.ts";
import {
  isWorn,
  REMOVED_MIN,
  REMOVED_SHARE_MAX,
  SEGMENT_BYTES_MAX,
  SEGMENTS_MERGED,
  SEGMENTS_MERGED_MAX,
} from "../../search/merge-rules.ts";
import { lastSequence, type Removal } from "../../search/stored-parts.ts";
import type { Transaction } from "../database/connections.ts";
import {
  PagesMissing,
  partOf,
  readParts,
  readRemovals,
  withPages,
  type MarkedPart,
  type PartsOf,
} from "./word-parts.ts";
import { fetchPages } from "./word-reads.ts";

/** Family of the advisory locks of merges; the second key is the scope. `queue.ts` and `accounts/keys.ts` have the others. */
const MERGE = 3;
/** Pages that one statement writes. */
const PAGES_AT_ONCE = 256;

/** Finds scopes whose merge is due, those with the most segments first. Leaves out `except`. Scans all scopes, or those `among` them. */
export async function scopesToMerge(
  tx: Transaction,
  limit: number,
  except: readonly number[] = [],
  among?: readonly number[],
): Promise<PartsOf[]> {
  return tx.all<PartsOf>(
    `SELECT scope.number AS scope, collection.account_id AS "accountId"
    FROM scope JOIN collection ON collection.id = collection_id
    WHERE (segments >= ${SEGMENTS_MERGED} OR ${WORN}) AND number <> ALL (@except::bigint[])
      ${among === undefined ? "" : "AND number = ANY (@among::bigint[])"}
    ORDER BY segments DESC, removed DESC LIMIT @limit`,
    { limit, except, among },
  );
}

/** `isWorn` of a scope. Integers alone: a scan of many scopes takes half as long as with the share. */
const WORN = `(removed > ${REMOVED_MIN} AND removed * ${1 / REMOVED_SHARE_MAX} > chunks OR chunks = 0 AND removed > 0)`;

/** Scopes of an account that have removed chunks in their index, each with the number of its last removal. */
export async function scopesToPurge(
  tx: Transaction,
  accountId: string,
): Promise<(PartsOf & { readonly last: number })[]> {
  return tx.all(
    `SELECT account_id AS "accountId", scope, max(number) AS last FROM word_removal WHERE account_id = @accountId
    GROUP BY account_id, scope ORDER BY scope`,
    { accountId },
  );
}

/** `none`: no merge is due. `busy`: another process makes one in the scope. */
export type MergeOutcome = "merged" | "none" | "busy";

/**
 * Makes the merge that is most due in a scope, in one transaction: a crash leaves nothing of it. Writes go on meanwhile, but for the
 * moment in which the run takes the place of its parts. Removals up to the number `purged` make a merge of all parts due.
 *
 * Every merge leaves fewer segments, runs or removals, so repeating it ends.
 */
export async function mergeScope(tx: Transaction, of: PartsOf, purged = 0): Promise<MergeOutcome> {
  const { scope } = of;
  if (!(await lockMerges(tx, scope))) return "busy";
  const counts = await tx.get<{ removed: number; chunks: number }>(
    "SELECT removed, chunks FROM scope WHERE number = @scope",
    { scope },
  );
  if (counts === undefined) return "none";
  // Read once, and before the parts: each statement sees what others committed meanwhile. The run must lack the chunks of the dropped
  // removals and of no others, or a removal is left whose chunks no part has.
  const removals = await readRemovals(tx, of);
  const all = await readParts(tx, of, [], removals);
  const isPurge = removals.some((removal) => removal.number <= purged);
  const isWhole = isPurge || (removals.length > 0 && isWorn(counts.removed, counts.chunks));
  const parts = choose(all, isWhole);
  const dropped = droppedBy(parts, removals, all);
  if (parts.length === 0 && dropped.length === 0) return "none";
  const run = parts.length === 0 ? undefined : await writeMerged(tx, of, parts);
  await exchange(tx, of, parts, dropped, run);
  return "merged";
}

/** Excludes other merges of a scope until this transaction ends. Returns false if one runs. */
export async function lockMerges(tx: Transaction, scope: number): Promise<boolean> {
  const lock = await tx.get<{ readonly isMine: boolean }>(
    `SELECT pg_try_advisory_xact_lock(${MERGE}, @scope::int) AS "isMine"`,
    { scope },
  );
  return lock?.isMine === true;
}

/** Returns the removals that a merge of some of all parts drops: those that lie in one of them, or in no part. */
function droppedBy(
  merged: readonly MarkedPart[],
  removals: readonly Removal[],
  all: readonly MarkedPart[],
): Removal[] {
  const isMerged = new Set(merged);
  return removals.filter(({ first }) => {
    const part = all[partOf(all, first)];
    return part === undefined || isMerged.has(part) || first < part.first || first > lastSequence(part);
  });
}

/** Lists a run instead of the parts that it was merged from, and drops removals. Writes to the scope wait from here on. */
async function exchange(
  tx: Transaction,
  of: PartsOf,
  parts: readonly MarkedPart[],
  dropped: readonly Removal[],
  run: WrittenRun | undefined,
): Promise<void> {
  const { accountId, scope } = of;
  await tx.run("SELECT 1 FROM scope WHERE number = @scope FOR UPDATE", { scope });
  const runs = parts.flatMap((part) => (part.kind === "run" ? part.number : []));
  const base = rowOf(scope, 0);
  const segments = parts.flatMap((part) => (part.kind === "segment" ? base + part.number : []));
  await tx.run(
    "DELETE FROM word_segment WHERE account_id = @accountId AND first_row = ANY (@segments::bigint[])",
    { accountId, segments },
  );
  await tx.run(
    "DELETE FROM word_run WHERE account_id = @accountId AND scope = @scope AND number = ANY (@runs::bigint[])",
    { accountId, scope, runs },
  );
  await tx.run("DELETE FROM word_page WHERE account_id = @accountId AND run = ANY (@runs::bigint[])", {
    accountId,
    runs,
  });
  await tx.run(
    "DELETE FROM word_removal WHERE account_id = @accountId AND scope = @scope AND number = ANY (@numbers::bigint[])",
    { accountId, scope, numbers: dropped.map((removal) => removal.number) },
  );
  if (run !== undefined && run.rows > 0) {
    await tx.run(
      `INSERT INTO word_run (account_id, number, scope, first, rows, sequences, lengths, directory, filter)
      VALUES (@accountId, @number, @scope, @first, @rows, @sequences, @lengths, @directory, @filter)`,
      { ...of, ...run },
    );
  }
  await tx.run(
    `UPDATE scope SET merged = merged + 1, segments = segments - @segments::bigint, removed = removed - @removed::bigint
    WHERE number = @scope`,
    {
      scope,
      segments: segments.length,
      removed: dropped.reduce((sum, removal) => sum + removal.last - removal.first + 1, 0),
    },
  );
}

/** Chooses the parts of a merge: consecutive ones by their sequences. `isWhole`: all of them are merged, in the end. */
function choose(parts: readonly MarkedPart[], isWhole: boolean): MarkedPart[] {
  const runs = parts.filter(({ kind }) => kind === "run");
  const segments = parts.filter(({ kind }) => kind === "segment");
  if (segments.length >= SEGMENTS_MERGED) {
    let bytes = 0;
    const end = segments.findIndex((segment) => (bytes += segment.bytes) >= SEGMENT_BYTES_MAX);
    return segments.slice(0, Math.min(SEGMENTS_MERGED_MAX, end < 0 ? Infinity : end + 1));
  }
  if (isWhole) return [...parts];
  const count = runsToMerge(runs.map(({ part }) => part.rows));
  return count === 0 ? [] : runs.slice(-count);
}

interface WrittenRun extends MergedHead {
  readonly number: number;
}

/** Merges parts and writes the pages of the run, which nothing refers to yet. */
async function writeMerged(tx: Transaction, of: PartsOf, parts: readonly MarkedPart[]): Promise<WrittenRun> {
  const next = await tx.get<{ readonly number: number }>("SELECT nextval('word_run_number') AS number");
  if (next === undefined) throw new TypeError("a sequence returned no number");
  const { number } = next;
  const pages = await readPages(tx, of, parts);
  const merged = mergeParts(parts);
  let page = 0;
  let waiting: Buffer[] = [];
  const write = async (): Promise<void> => {
    await tx.run(
      `INSERT INTO word_page (account_id, run, page, data)
      SELECT @accountId, @number, @page::integer + nth - 1, data FROM unnest(@waiting::bytea[]) WITH ORDINALITY AS new (data, nth)`,
      { accountId: of.accountId, number, page, waiting },
    );
    page += waiting.length;
    waiting = [];
  };
  for (;;) {
    const step = withPages(pages, () => merged.next());
    if (step.done === true) {
      if (waiting.length > 0) await write();
      return { ...step.value, number };
    }
    waiting.push(...step.value);
    if (waiting.length >= PAGES_AT_ONCE) await write();
  }
}

/** Reads all pages of the runs among some parts. */
async function readPages(
  tx: Transaction,
  { accountId }: PartsOf,
  parts: readonly MarkedPart[],
): Promise<Map<string, Buffer | undefined>> {
  const pages = new Map<string, Buffer | undefined>();
  const runs = parts.filter(({ kind }) => kind === "run");
  const rows = await tx.all<{ readonly run: number; readonly last: number }>(
    `SELECT run, max(page) AS last FROM word_page WHERE account_id = @accountId AND run = ANY (@runs::bigint[]) GROUP BY run`,
    { accountId, runs: runs.map(({ number }) => number) },
  );
  await fetchPages(
    tx,
    accountId,
    rows.map(({ run, last }) => new PagesMissing(run, 0, last)),
    pages,
  );
  return pages;
}
