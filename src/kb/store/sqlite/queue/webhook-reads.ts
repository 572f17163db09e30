import type { Inside } from "../../methods.ts";
import { endpointOf, type EndpointRow } from "../../rows/webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of endpoints. */
export type WebhookReads = Pick<Inside<"read" | "lookup">["records"], "endpoint" | "endpoints">;

/** Prepares the statements on a connection of either kind. */
export function prepareWebhookReads(db: Connection): WebhookReads {
  const count = (isFailed: number): string =>
    `(SELECT count(*) FROM job WHERE queue = 'webhook' AND is_failed = ${isFailed} AND line = webhook_endpoint.id)`;
  const counted = `SELECT *, ${count(0)} AS waiting, ${count(1)} AS failed FROM webhook_endpoint`;
  const selectOne = db.prepare<[string, string], EndpointRow>(`${counted} WHERE id = ? AND account_id = ?`);
  const selectAll = db.prepare<[string], EndpointRow>(`${counted} WHERE account_id = ? ORDER BY number`);

  return {
    endpoint: (at) => {
      const row = selectOne.get(at.id, at.accountId);
      return row === undefined ? undefined : endpointOf(row);
    },
    endpoints: (accountId) => selectAll.all(accountId).map(endpointOf),
  };
}
