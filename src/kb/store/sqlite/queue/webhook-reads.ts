import type { Inside } from "../../methods.ts";
import { endpointOf, type EndpointRow } from "../../rows/webhooks.ts";
import type { DeadDelivery } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of endpoints and dead letters. */
export type WebhookReads = Pick<
  Inside<"read" | "lookup">["records"],
  "endpoint" | "endpoints" | "deadDeliveries"
>;

/** Prepares the statements on a connection of either kind. */
export function prepareWebhookReads(db: Connection): WebhookReads {
  const count = (isDead: number): string =>
    `(SELECT count(*) FROM job WHERE queue = 'webhook' AND is_dead = ${isDead} AND line = webhook_endpoint.id)`;
  const counted = `SELECT *, ${count(0)} AS waiting, ${count(1)} AS dead FROM webhook_endpoint`;
  const selectOne = db.prepare<[string, string], EndpointRow>(`${counted} WHERE id = ? AND account_id = ?`);
  const selectAll = db.prepare<[string], EndpointRow>(`${counted} WHERE account_id = ? ORDER BY number`);
  const selectDead = db.prepare<[string, number, number], DeadDelivery>(`
    SELECT job.number, webhook_endpoint.id AS endpointId, coalesce(url, body ->> '$.target.url') AS url, name AS eventId,
      body ->> '$.type' AS type, attempts, job.problem, created_ms AS createdMs
    FROM job LEFT JOIN webhook_endpoint ON webhook_endpoint.id = job.line
    WHERE queue = 'webhook' AND is_dead = 1 AND job.account_id = ? AND job.number < ?
    ORDER BY job.number DESC LIMIT ?`);

  return {
    endpoint: (at) => {
      const row = selectOne.get(at.id, at.accountId);
      return row === undefined ? undefined : endpointOf(row);
    },
    endpoints: (accountId) => selectAll.all(accountId).map(endpointOf),
    deadDeliveries: ({ accountId, beforeNumber, limit }) =>
      selectDead.all(accountId, beforeNumber ?? Number.MAX_SAFE_INTEGER, limit),
  };
}
