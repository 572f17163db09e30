import type { Failure } from "../../request-note.ts";
import type { Expected, ResourceKey } from "../../resources.ts";
import { SELECT_RESOURCE, type ResourceRow } from "../../rows/records.ts";
import {
  refuseUnexpected,
  WARNING_AFTER_FAILURE,
  WARNING_OF_TEXT,
  type ChangedColumns,
} from "../../rows/resource-columns.ts";
import type { Transaction } from "../database/connections.ts";
import { lockScopes } from "../scopes/scopes.ts";

/** Reads a live resource. */
export function readRow(tx: Transaction, { accountId, id }: ResourceKey): Promise<ResourceRow | undefined> {
  return tx.get<ResourceRow>(
    `${SELECT_RESOURCE} WHERE resource.id = @id AND resource.account_id = @accountId AND NOT is_deleted`,
    { accountId, id },
  );
}

/** Locks a resource that is to change, with its scope, and reads it. Throws `precondition_failed`. */
export async function readLocked(
  tx: Transaction,
  at: ResourceKey & Expected,
): Promise<ResourceRow | undefined> {
  // Sent together, and carried out one after the other: the read sees what was committed before the lock was given.
  const [, row] = await Promise.all([lockScopes(tx, at.accountId, [at.id]), readRow(tx, at)]);
  refuseUnexpected(row, at);
  return row;
}

/** Reads a resource that this transaction has written. */
export async function readWritten(tx: Transaction, at: ResourceKey): Promise<ResourceRow> {
  const row = await readRow(tx, at);
  if (row === undefined) throw new TypeError("a resource just written was not found");
  return row;
}

/** Reserves numbers of new resources. They ascend. */
export async function reserveNumbers(tx: Transaction, count: number): Promise<number[]> {
  const rows = await tx.all<{ number: number }>(
    "SELECT nextval('resource_number') AS number FROM generate_series(1, @count::int)",
    { count },
  );
  return rows.map(({ number }) => number);
}

/** Writes new rows. */
export async function insertRows(tx: Transaction, rows: readonly ResourceRow[]): Promise<void> {
  const names = COLUMNS.map(([name]) => name).join(", ");
  await tx.run(
    `INSERT INTO resource (${names})
    SELECT * FROM unnest(${COLUMNS.map(([name, type]) => `@${name}::${type}[]`).join(", ")}) AS new (${names})`,
    Object.fromEntries(COLUMNS.map(([name]) => [name, rows.map((row) => row[name])])),
  );
}

/** Columns of a new resource with their types. */
const COLUMNS = [
  ["number", "bigint"],
  ["id", "text"],
  ["account_id", "text"],
  ["scope", "bigint"],
  ["origin", "text"],
  ["title", "text"],
  ["label", "text"],
  ["description", "text"],
  ["url", "text"],
  ["head", "text"],
  ["settings", "text"],
  ["created_at", "text"],
  ["updated_at", "text"],
  ["version", "bigint"],
  ["first_row", "bigint"],
  ["chunks", "bigint"],
  ["status", "text"],
  ["metadata", "text"],
  ["file_metadata", "text"],
  ["file_token", "text"],
  ["strategy_used", "text"],
  ["warning", "text"],
  ["sha256", "bytea"],
  ["locations", "text"],
] as const satisfies readonly (readonly [keyof ResourceRow, string])[];

/** Changes the row of a resource. */
export async function updateRow(tx: Transaction, accountId: string, columns: ChangedColumns): Promise<void> {
  await tx.run(
    `UPDATE resource SET title = @title, description = @description, url = @url, head = @head, settings = @settings,
      refreshed_at = @refreshedAt, updated_at = @nowIso, version = @version, first_row = @firstRow, chunks = @chunks,
      status = @status, status_message = @statusMessage, status_error = @statusError, metadata = @metadata,
      file_metadata = @fileMetadata, file_token = @fileToken, strategy_used = @strategyUsed, warning = @warning,
      sha256 = @sha256, locations = @locations, label = @label, revision = revision + 1
    WHERE account_id = @accountId AND number = @number`,
    { ...columns, accountId },
  );
}

/** Sets the state of a resource: a change of it waits, or failed. */
export async function markStatus(
  tx: Transaction,
  { account_id: accountId, number }: ResourceRow,
  nowIso: string,
  failure?: Failure,
): Promise<void> {
  const status =
    failure === undefined
      ? `status = 'queued', warning = ${WARNING_OF_TEXT}`
      : `status = 'error', status_message = @message, status_error = @code, warning = ${WARNING_AFTER_FAILURE}`;
  await tx.run(
    `UPDATE resource SET ${status}, updated_at = @nowIso, revision = revision + 1
    WHERE account_id = @accountId AND number = @number`,
    { nowIso, accountId, number, ...failure },
  );
}

/** Leaves the record of a resource without its text. */
export async function markDeleted(
  tx: Transaction,
  { account_id: accountId, number }: ResourceRow,
  nowIso: string,
): Promise<void> {
  await tx.run(
    `UPDATE resource SET is_deleted = true, updated_at = @nowIso, head = '', chunks = 0, sha256 = NULL, locations = NULL,
      revision = revision + 1
    WHERE account_id = @accountId AND number = @number`,
    { nowIso, accountId, number },
  );
}

/** Notes that a resource no longer uses its file, unless `next` is the same file. */
export async function releaseFile(
  tx: Transaction,
  { id, file_token: token }: ResourceRow,
  next: string | null,
  nowIso: string,
): Promise<void> {
  if (token === null || next === token) return;
  await tx.run("UPDATE stored_file SET released_at = @nowIso, released_of = @id WHERE token = @token", {
    nowIso,
    id,
    token,
  });
}
