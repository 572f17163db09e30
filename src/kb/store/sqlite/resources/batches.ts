import { KbsyncError } from "../../../../lib/failure.ts";
import type { BatchFailure, BatchItem, OpenBatch, StoredBatch } from "../../batches.ts";
import type { Inside } from "../../methods.ts";
import type { AnswerNotes } from "../database/answer-notes.ts";
import type { Connection } from "../database/connection.ts";

const PENDING = "(SELECT count(*) FROM batch_item WHERE batch = batch.number AND code IS NULL)";
const FAILED = "(SELECT count(*) FROM batch_item WHERE batch = batch.number AND code IS NOT NULL)";
const IS_OPEN =
  "is_stopped = 0 AND EXISTS (SELECT 1 FROM batch_item WHERE batch = batch.number AND code IS NULL)";

/** Prepares the statements on the writing connection. Each runs inside a transaction of the caller. */
export function prepareBatchWrites(
  db: Connection,
  notes: Pick<AnswerNotes, "batch">,
): Pick<Inside<"write" | "free">["records"], "addBatch" | "stopBatch" | "settleItems"> {
  const countOpen = db
    .prepare<[string], number>(`SELECT count(*) FROM batch WHERE account_id = ? AND ${IS_OPEN}`)
    .pluck();
  const selectOld = db
    .prepare<[string, number], number>(
      `SELECT number FROM batch WHERE account_id = ? AND NOT (${IS_OPEN}) ORDER BY number DESC LIMIT -1 OFFSET ?`,
    )
    .pluck();
  const deleteItems = db.prepare("DELETE FROM batch_item WHERE batch = ?");
  const deleteBatch = db.prepare("DELETE FROM batch WHERE number = ?");
  const insert = db.prepare(`
    INSERT INTO batch (id, account_id, kind, total, created_at, updated_at)
    VALUES (@id, @accountId, @kind, @total, @nowIso, @nowIso)`);
  const insertItems = db.prepare(
    "INSERT INTO batch_item (batch, position, resource_id) SELECT @number, key, value FROM json_each(@ids)",
  );
  const stop = db.prepare(
    `UPDATE batch SET is_stopped = 1, updated_at = @nowIso WHERE id = @id AND account_id = @accountId AND ${IS_OPEN}`,
  );
  const exists = db.prepare<{ id: string; accountId: string }>(
    "SELECT 1 FROM batch WHERE id = @id AND account_id = @accountId",
  );
  const touch = db.prepare("UPDATE batch SET updated_at = ? WHERE number = ?");
  const settle = db.prepare("DELETE FROM batch_item WHERE batch = ? AND position = ?");
  const fail = db.prepare("UPDATE batch_item SET code = ?, message = ? WHERE batch = ? AND position = ?");

  return {
    addBatch: ({ id, accountId, kind, resourceIds, nowIso, openMax, keptMax }, sameTransaction) => {
      if ((countOpen.get(accountId) ?? 0) >= openMax) {
        throw new KbsyncError(`an account has at most ${openMax} batches that work`, {
          code: "too_many_batches",
          hint: "Wait until one is done, or stop one.",
        });
      }
      for (const number of selectOld.all(accountId, keptMax)) {
        deleteItems.run(number);
        deleteBatch.run(number);
      }
      const total = resourceIds.length;
      const added = insert.run({ id, accountId, kind, total, nowIso });
      insertItems.run({ number: Number(added.lastInsertRowid), ids: JSON.stringify(resourceIds) });
      if (sameTransaction?.request !== undefined)
        notes.batch(accountId, { id, kind, total, createdAt: nowIso }, sameTransaction.request);
    },
    stopBatch: ({ id, accountId, nowIso }) =>
      stop.run({ id, accountId, nowIso }).changes > 0 || exists.get({ id, accountId }) !== undefined,
    settleItems: ({ number, nowIso, outcomes }) => {
      for (const { position, failure } of outcomes) {
        if (failure === undefined) settle.run(number, position);
        else fail.run(failure.code, failure.message, number, position);
      }
      touch.run(nowIso, number);
    },
  };
}

/** Prepares the statements on a connection of either kind. */
export function prepareBatchReads(
  db: Connection,
): Pick<Inside<"read">["records"], "batches" | "batch" | "batchFailures" | "openBatches" | "pendingItems"> {
  const columns = `id, kind, is_stopped AS isStopped, total, ${PENDING} AS pending, ${FAILED} AS failed,
    created_at AS createdAt, updated_at AS updatedAt`;
  type Row = Omit<StoredBatch, "isStopped"> & { readonly isStopped: number };
  const selectAll = db.prepare<[string], Row>(
    `SELECT ${columns} FROM batch WHERE account_id = ? ORDER BY number DESC`,
  );
  const selectOne = db.prepare<[string, string], Row>(
    `SELECT ${columns} FROM batch WHERE id = ? AND account_id = ?`,
  );
  const selectFailures = db.prepare<[string, string, number], BatchFailure>(`
    SELECT resource_id AS resourceId, title, code, message
    FROM batch JOIN batch_item ON batch = batch.number
      LEFT JOIN resource ON resource.id = resource_id AND resource.account_id = batch.account_id AND is_deleted = 0
    WHERE batch.id = ? AND batch.account_id = ? AND code IS NOT NULL ORDER BY position LIMIT ?`);
  const selectOpen = db.prepare<[], OpenBatch>(
    `SELECT id, account_id AS accountId, number, kind FROM batch WHERE ${IS_OPEN} ORDER BY updated_at, number`,
  );
  const selectPending = db.prepare<[number, number], BatchItem>(`
    SELECT position, resource_id AS resourceId FROM batch_item
    WHERE batch = ? AND code IS NULL AND EXISTS (SELECT 1 FROM batch WHERE number = batch AND is_stopped = 0)
    ORDER BY position LIMIT ?`);
  const read = ({ isStopped, ...row }: Row): StoredBatch => ({ ...row, isStopped: isStopped === 1 });
  return {
    batches: (accountId) => selectAll.all(accountId).map(read),
    batch: ({ id, accountId }) => {
      const row = selectOne.get(id, accountId);
      return row && read(row);
    },
    batchFailures: ({ id, accountId, limit }) => selectFailures.all(id, accountId, limit),
    openBatches: () => selectOpen.all(),
    pendingItems: ({ number, limit }) => selectPending.all(number, limit),
  };
}
