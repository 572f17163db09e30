import { DESCRIPTION_CHARS } from "../../../../wire/constants.ts";
import type { DocumentEntry } from "../../../../wire/documents.ts";
import { metadataOf } from "../../rows/records.ts";
import type { ListPosition, DocumentsPage, DocumentsQuery, Statuses } from "../../search-index.ts";
import { folded } from "../../title-key.ts";
import type { Transaction } from "../database/connections.ts";
import { findTarget } from "./target.ts";
import { matchingResources, type FilterCache } from "./filters.ts";

/** Documents that one statement looks at for a title or words. */
const STEP = 500;

type Status = DocumentEntry["status"];

/** The columns of a document that decide its position in a list, with the texts that words are looked for in. */
interface Sorted extends ListPosition {
  readonly number: number;
  readonly status: Status;
  readonly title: string;
  readonly whole: string;
}

const NO_STATUSES: Statuses = { queued: 0, chunked: 0, error: 0 };
const KEYS = { created: "id", updated: "updated_at", title: "title_key" } as const;

/** A query for the documents of a scope: conditions and their parameters. */
interface Selected {
  readonly where: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Lists the documents of a scope, without their texts. Looks at all only to count those whose title or text matches. */
export async function listDocuments(
  tx: Transaction,
  filters: FilterCache,
  query: DocumentsQuery,
): Promise<DocumentsPage> {
  const { filter, ...scope } = query.scope;
  const target = await findTarget(tx, filters, scope);
  if (target === undefined) return { documents: [], next: undefined, statuses: NO_STATUSES };
  const selected = await select(tx, { accountId: target.accountId, scope: target.scope }, filter, query.path);
  const isFirst = query.after === undefined;
  const hasWords = wordFilter(query);
  const isCounting = isFirst && hasWords !== undefined;
  const { found, counted } = await walk(tx, selected, query, hasWords, isCounting);
  const shown = found.slice(0, query.limit);
  const last = shown.at(-1);
  const counts = isCounting
    ? counted
    : isFirst
      ? await countAll(tx, selected, filter === undefined && query.path === undefined)
      : undefined;
  return {
    documents: await readEntries(tx, target.accountId, shown),
    next: found.length > query.limit && last !== undefined ? { key: last.key, id: last.id } : undefined,
    statuses: counts,
  };
}

async function select(
  tx: Transaction,
  of: { readonly accountId: string; readonly scope: number },
  filter: DocumentsQuery["scope"]["filter"],
  path: string | undefined,
): Promise<Selected> {
  const conditions = ["account_id = @accountId AND scope = @scope AND NOT is_deleted"];
  let parameters: Record<string, unknown> = { ...of };
  if (path !== undefined) {
    const folder = path.replace(/\/+$/, "");
    // `0` follows `/`, so that the range has what begins with the folder's name and a slash.
    conditions.push(`number IN (SELECT resource FROM metadata_value
      WHERE account_id = @accountId AND scope = @scope AND path = 'path' AND kind = 's' AND text IS NOT NULL
        AND (text = @path OR (text >= @folder AND text < @folderEnd)))`);
    parameters = { ...parameters, path, folder: `${folder}/`, folderEnd: `${folder}0` };
  }
  if (filter !== undefined) {
    const matching = await matchingResources(tx, of, filter);
    conditions.push(`number IN (${matching.sql})`);
    parameters = { ...parameters, ...matching.parameters };
  }
  return { where: conditions.join(" AND "), parameters };
}

/** Walks in the order of the list, up to one document more than a page has, or to the end to count. */
async function walk(
  tx: Transaction,
  { where, parameters }: Selected,
  { sort, descending, status, limit, after: start }: DocumentsQuery,
  hasWords: ((document: Sorted) => boolean) | undefined,
  isCounting: boolean,
): Promise<{ readonly found: readonly Sorted[]; readonly counted: Statuses }> {
  const key = KEYS[sort];
  const [isAfter, order] = descending ? ["<", "DESC"] : [">", "ASC"];
  const isFiltering = status !== undefined && !isCounting;
  const max = hasWords === undefined ? limit + 1 : STEP;
  const whole =
    hasWords === undefined
      ? "'' AS title, '' AS whole"
      : `title, title || chr(10) || description || chr(10) || coalesce(url, '') || chr(10) || metadata || chr(10)
        || file_metadata AS whole`;
  const found: Sorted[] = [];
  const counted = { ...NO_STATUSES };
  for (let after = start; ;) {
    const rows = await tx.all<Sorted>(
      `SELECT number, id, ${key} AS key, status, ${whole} FROM resource
      WHERE ${where} ${isFiltering ? "AND status = @status" : ""}
        ${after === undefined ? "" : `AND (${key}, id) ${isAfter} (@key, @id)`}
      ORDER BY ${key} ${order}, id ${order} LIMIT @max`,
      { ...parameters, ...after, status, max },
    );
    for (const row of rows) {
      if (hasWords?.(row) === false) continue;
      counted[row.status] += 1;
      if ((status === undefined || row.status === status) && found.length <= limit) found.push(row);
    }
    after = rows.at(-1) ?? after;
    if (rows.length < max || (!isCounting && found.length > limit)) return { found, counted };
  }
}

/** Returns the filter by title and by words; undefined: the query has neither. */
function wordFilter({
  title,
  text,
}: Pick<DocumentsQuery, "title" | "text">): ((document: Sorted) => boolean) | undefined {
  if (title === undefined && text === undefined) return undefined;
  const part = folded(title ?? "");
  const words = folded(text ?? "")
    .split(/\s+/)
    .filter((word) => word !== "");
  return (document) => {
    if (part !== "" && !folded(document.title).includes(part)) return false;
    if (words.length === 0) return true;
    const whole = folded(document.whole);
    return words.every((word) => whole.includes(word));
  };
}

/** Counts the documents of each status; `isAll`: the query selects all of the scope. */
async function countAll(tx: Transaction, { where, parameters }: Selected, isAll: boolean): Promise<Statuses> {
  // Documents that are not searchable yet have an index of their own.
  const unfinished = isAll ? "AND status <> 'chunked'" : "";
  const rows = await tx.all<{ readonly status: Status; readonly count: number }>(
    `SELECT status, count(*) AS count FROM resource WHERE ${where} ${unfinished} GROUP BY status`,
    parameters,
  );
  const counts = { ...NO_STATUSES, ...Object.fromEntries(rows.map(({ status, count }) => [status, count])) };
  if (!isAll) return counts;
  const all = await tx.get<{ readonly resources: number }>(
    "SELECT resources FROM scope WHERE number = @scope",
    parameters,
  );
  return { ...counts, chunked: (all?.resources ?? 0) - counts.queued - counts.error };
}

type EntryRow = Omit<DocumentEntry, "path"> & {
  readonly number: number;
  readonly metadata: string;
  readonly file_metadata: string;
};

async function readEntries(
  tx: Transaction,
  accountId: string,
  shown: readonly Sorted[],
): Promise<DocumentEntry[]> {
  if (shown.length === 0) return [];
  const rows = await tx.all<EntryRow>(
    `SELECT number, id AS _id, title, left(description, ${DESCRIPTION_CHARS}) AS description, url, metadata, file_metadata,
      status, CASE status WHEN 'error' THEN status_error END AS code, CASE status WHEN 'error' THEN status_message END AS message,
      warning, created_at AS "createdAt", updated_at AS "updatedAt", version, chunks
    FROM resource WHERE account_id = @accountId AND number = ANY (@numbers::bigint[])`,
    { accountId, numbers: shown.map(({ number }) => number) },
  );
  const entryOf = new Map(rows.map((row) => [row.number, row]));
  return shown.flatMap(({ number }) => {
    const row = entryOf.get(number);
    if (row === undefined) return [];
    const { number: _, metadata, file_metadata, ...entry } = row;
    const { path } = metadataOf({ metadata, file_metadata });
    return [{ ...entry, path: typeof path === "string" ? path : null }];
  });
}
