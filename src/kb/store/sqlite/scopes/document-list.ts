import type { DocumentEntry } from "../../../../wire/documents.ts";
import type { DocumentsPage, DocumentsQuery } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { queryOf } from "./filters.ts";
import type { prepareScopes } from "./scopes.ts";

/** Documents that one step looks at: a few milliseconds. */
const STEP = 500;

/** What of a document decides about its place in a list. */
interface Placed {
  readonly number: number;
  readonly id: string;
  readonly title: string;
  readonly updatedAt: string;
  readonly status: DocumentEntry["status"];
}

/** A list in the making. Holds no more than one page. */
export interface DocumentList {
  /** Looks at some documents after this number. Returns the last one's, or undefined at the end. */
  readonly step: (after: number) => number | undefined;
  readonly page: () => DocumentsPage;
}

const NOTHING: DocumentList = {
  step: () => undefined,
  page: () => ({ documents: [], more: false, statuses: { queued: 0, chunked: 0, error: 0 } }),
};

/**
 * Prepares lists of a scope's documents, without their texts. A list takes many steps, because it looks at every document to count
 * and sort them, and a scope may have a million.
 */
export function prepareDocumentList(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): (query: DocumentsQuery) => DocumentList {
  const columns = "number, id, title, updated_at AS updatedAt, status";
  const selectStep = db.prepare<[number, number], Placed>(
    `SELECT ${columns} FROM resource WHERE scope = ? AND is_deleted = 0 AND number > ? ORDER BY number LIMIT ${STEP}`,
  );
  // The place of a document that was deleted meanwhile is known as long as its record is.
  const selectPlaced = db.prepare<[number, string], Placed>(
    `SELECT ${columns} FROM resource WHERE scope = ? AND id = ?`,
  );
  const selectEntry = db.prepare<[number], DocumentEntry & { readonly path: unknown }>(`
    SELECT id AS _id, title, url, coalesce(json_extract(metadata, '$.path'), json_extract(file_metadata, '$.path')) AS path,
      status, iif(status = 'error', status_error, NULL) AS code, iif(status = 'error', status_message, NULL) AS message,
      warning, created_at AS createdAt, updated_at AS updatedAt, version, chunks
    FROM resource WHERE number = ? AND is_deleted = 0`);

  return (query) => {
    const { scope, status, limit, afterId } = query;
    const target = scopes.find(scope);
    const after = target && afterId !== undefined ? selectPlaced.get(target.scope, afterId) : undefined;
    if (target === undefined || (afterId !== undefined && after === undefined)) return NOTHING;
    const sign = query.descending ? -1 : 1;
    const compare: Compare = (a, b) => sign * (order(a.key, b.key) || order(a.id, b.id));
    const start = after && keyed(after, query.sort);
    const title = query.title === undefined ? undefined : folded(query.title);
    const matching = matchingNumbers(db, target.scope, query);
    const statuses = { queued: 0, chunked: 0, error: 0 };
    const page: Keyed[] = [];
    const look = (each: Placed): void => {
      if (matching?.has(each.number) === false) return;
      if (title !== undefined && !folded(each.title).includes(title)) return;
      statuses[each.status] += 1;
      if (status !== undefined && each.status !== status) return;
      const placed = keyed(each, query.sort);
      if (start === undefined || compare(placed, start) > 0) insert(page, placed, compare, limit + 1);
    };
    return {
      step: (from) => {
        const rows = selectStep.all(target.scope, from);
        for (const row of rows) look(row);
        return rows.length < STEP ? undefined : rows.at(-1)?.number;
      },
      page: () => ({
        documents: page.slice(0, limit).flatMap(({ number }) => {
          const entry = selectEntry.get(number);
          return entry === undefined ? [] : [entryOf(entry)];
        }),
        more: page.length > limit,
        statuses,
      }),
    };
  };
}

interface Keyed extends Placed {
  readonly key: string;
}

type Compare = (a: Keyed, b: Keyed) => number;

/** Computes what an order compares once for each document. */
function keyed(each: Placed, sort: DocumentsQuery["sort"]): Keyed {
  switch (sort) {
    case "created": // ids ascend with the time of their creation
      return { ...each, key: "" };
    case "updated":
      return { ...each, key: each.updatedAt };
    case "title":
      return { ...each, key: folded(each.title) };
  }
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** Inserts into the first `max` of an order. */
function insert(page: Keyed[], each: Keyed, compare: Compare, max: number): void {
  let low = 0;
  let high = page.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = page[middle];
    if (other !== undefined && compare(other, each) < 0) low = middle + 1;
    else high = middle;
  }
  if (low === max) return;
  page.splice(low, 0, each);
  if (page.length > max) page.pop();
}

/** The numbers of the documents that have the path and match the filter; undefined: all. */
function matchingNumbers(
  db: Connection,
  scope: number,
  { scope: { filter }, path }: Pick<DocumentsQuery, "scope" | "path">,
): ReadonlySet<number> | undefined {
  const queries: { readonly sql: string; readonly values: readonly unknown[] }[] = [];
  if (path !== undefined) {
    const folder = path.replace(/\/+$/, "");
    // `0` follows `/`, so that the range has what begins with the folder's name and a slash.
    const sql = `SELECT resource FROM metadata_value WHERE scope = ? AND path = 'path' AND kind = 's'
      AND (value = ? OR (value >= ? AND value < ?))`;
    queries.push({ sql, values: [scope, path, `${folder}/`, `${folder}0`] });
  }
  if (filter !== undefined) queries.push(queryOf(scope, filter));
  if (queries.length === 0) return undefined;
  const numbers = db
    .prepare<unknown[], number>(queries.map(({ sql }) => `SELECT * FROM (${sql})`).join(" INTERSECT "))
    .pluck()
    .all(...queries.flatMap(({ values }) => values));
  return new Set(numbers);
}

function entryOf({ path, ...entry }: DocumentEntry & { readonly path: unknown }): DocumentEntry {
  return { ...entry, path: typeof path === "string" ? path : null };
}

/** Without differences of case and of how accents are encoded. */
function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}
