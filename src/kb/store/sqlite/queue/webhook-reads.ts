import type { Inside } from "../../methods.ts";
import type { DeadDelivery, Endpoint, SigningSecret } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of endpoints and dead letters. */
export type WebhookReads = Pick<
  Inside<"read" | "lookup">["records"],
  "endpoint" | "endpoints" | "deadDeliveries"
>;

interface EndpointRow {
  readonly number: number;
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly description: string;
  readonly events: string;
  readonly secrets: string;
  readonly enabled: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly delivered_at: string | null;
  readonly problem: string | null;
  readonly waiting: number;
  readonly dead: number;
}

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

function endpointOf(row: EndpointRow): Endpoint {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    events: JSON.parse(row.events) as string[], // both written by this store from an endpoint
    secrets: JSON.parse(row.secrets) as SigningSecret[],
    enabled: row.enabled === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    waiting: row.waiting,
    dead: row.dead,
    deliveredAt: row.delivered_at,
    problem: row.problem,
  };
}
