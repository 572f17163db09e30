import { KbsyncError } from "../../../../lib/failure.ts";
import type { BatchFailure, BatchItem, BatchRecords, OpenBatch, StoredBatch } from "../../batches.ts";
import type { Transaction } from "../database/connections.ts";
import { lockAccount } from "../queue/webhooks.ts";
import { noteBatch } from "./request-notes.ts";

const IS_OPEN =
  "NOT is_stopped AND EXISTS (SELECT 1 FROM batch_item WHERE batch = batch.number AND code IS NULL)";
const COLUMNS = `id, kind, is_stopped AS "isStopped", total,
  (SELECT count(*) FROM batch_item WHERE batch = batch.number AND code IS NULL) AS pending,
  (SELECT count(*) FROM batch_item WHERE batch = batch.number AND code IS NOT NULL) AS failed,
  created_at AS "createdAt", updated_at AS "updatedAt"`;

/** Work on many documents, inside a transaction. */
export function batchesOn(tx: Transaction): BatchRecords {
  return { ...readsOn(tx), ...writesOn(tx) };
}

function readsOn(
  tx: Transaction,
): Pick<BatchRecords, "batches" | "batch" | "batchFailures" | "openBatches" | "pendingItems"> {
  return {
    batches: (accountId) =>
      tx.all<StoredBatch>(`SELECT ${COLUMNS} FROM batch WHERE account_id = @accountId ORDER BY number DESC`, {
        accountId,
      }),
    batch: ({ id, accountId }) =>
      tx.get<StoredBatch>(`SELECT ${COLUMNS} FROM batch WHERE id = @id AND account_id = @accountId`, {
        id,
        accountId,
      }),
    batchFailures: ({ id, accountId, limit }) =>
      tx.all<BatchFailure>(
        `SELECT resource_id AS "resourceId", title, code, message
        FROM batch JOIN batch_item ON batch = batch.number
          LEFT JOIN resource ON resource.id = resource_id AND resource.account_id = @accountId AND NOT is_deleted
        WHERE batch.id = @id AND batch.account_id = @accountId AND code IS NOT NULL ORDER BY position LIMIT @limit`,
        { id, accountId, limit },
      ),
    openBatches: () =>
      tx.all<OpenBatch>(
        `SELECT id, account_id AS "accountId", number, kind FROM batch WHERE ${IS_OPEN} ORDER BY updated_at, number`,
      ),
    pendingItems: ({ number, limit }) =>
      tx.all<BatchItem>(
        `SELECT position, resource_id AS "resourceId" FROM batch_item
        WHERE batch = @number AND code IS NULL
          AND EXISTS (SELECT 1 FROM batch WHERE number = @number AND NOT is_stopped)
        ORDER BY position LIMIT @limit`,
        { number, limit },
      ),
  };
}

function writesOn(tx: Transaction): Pick<BatchRecords, "addBatch" | "stopBatch" | "settleItems"> {
  return {
    async addBatch({ id, accountId, kind, resourceIds, nowIso, openMax, keptMax }, sameTransaction) {
      await lockAccount(tx, accountId);
      const found = await tx.get<{ open: number }>(
        `SELECT count(*) AS open FROM batch WHERE account_id = @accountId AND ${IS_OPEN}`,
        { accountId },
      );
      if ((found?.open ?? 0) >= openMax) {
        throw new KbsyncError(`an account has at most ${openMax} batches that work`, {
          code: "too_many_batches",
          hint: "Wait until one is done, or stop one.",
        });
      }
      await tx.run(
        `DELETE FROM batch WHERE number IN (
          SELECT number FROM batch WHERE account_id = @accountId AND NOT (${IS_OPEN})
          ORDER BY number DESC OFFSET @keptMax)`,
        { accountId, keptMax },
      );
      const total = resourceIds.length;
      await tx.run(
        `WITH added AS (
          INSERT INTO batch (id, account_id, kind, total, created_at, updated_at)
          VALUES (@id, @accountId, @kind, @total, @nowIso, @nowIso) RETURNING number)
        INSERT INTO batch_item (batch, position, resource_id)
        SELECT added.number, at - 1, resource_id
        FROM added CROSS JOIN unnest(@resourceIds::text[]) WITH ORDINALITY AS item (resource_id, at)`,
        { id, accountId, kind, total, nowIso, resourceIds },
      );
      if (sameTransaction?.request !== undefined)
        await noteBatch(tx, accountId, { id, kind, total, createdAt: nowIso }, sameTransaction.request);
    },
    async stopBatch({ id, accountId, nowIso }) {
      const stopped = await tx.run(
        `UPDATE batch SET is_stopped = true, updated_at = @nowIso
        WHERE id = @id AND account_id = @accountId AND ${IS_OPEN}`,
        { id, accountId, nowIso },
      );
      if (stopped > 0) return true;
      const found = await tx.get("SELECT 1 FROM batch WHERE id = @id AND account_id = @accountId", {
        id,
        accountId,
      });
      return found !== undefined;
    },
    async settleItems({ number, nowIso, outcomes }) {
      const done = outcomes.filter(({ failure }) => failure === undefined);
      const failed = outcomes.flatMap(({ position, failure }) =>
        failure === undefined ? [] : { position, ...failure },
      );
      await tx.run("UPDATE batch SET updated_at = @nowIso WHERE number = @number", { nowIso, number });
      await tx.run("DELETE FROM batch_item WHERE batch = @number AND position = ANY (@positions::bigint[])", {
        number,
        positions: done.map(({ position }) => position),
      });
      await tx.run(
        `UPDATE batch_item SET code = failed.code, message = failed.message
        FROM unnest(@positions::bigint[], @codes::text[], @messages::text[]) AS failed (position, code, message)
        WHERE batch = @number AND batch_item.position = failed.position`,
        {
          number,
          positions: failed.map(({ position }) => position),
          codes: failed.map(({ code }) => code),
          messages: failed.map(({ message }) => message),
        },
      );
    },
  };
}
