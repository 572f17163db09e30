import type { EventType } from "../../../../wire/event.ts";
import type { Resource } from "../../resources.ts";
import {
  FAILED_MAX,
  eventMessage,
  isWanted,
  WAITING_MAX,
  type ChangeFacts,
  type Message,
} from "../../rows/webhooks.ts";
import { ownLine, type DeliveryBody, type DeliveryTarget, type NewDelivery } from "../../webhooks.ts";
import type { Transaction } from "../database/connections.ts";

/** Queues an event for every enabled endpoint of the account that subscribes to the type. */
export async function publish(
  tx: Transaction,
  type: EventType,
  resource: Omit<Resource, "content">,
  change: ChangeFacts,
): Promise<void> {
  await publishAll(tx, type, resource.accountId, [{ resource, change }]);
}

/** Queues events of one type, of resources of one account, in their order. */
export async function publishAll(
  tx: Transaction,
  type: EventType,
  accountId: string,
  events: readonly { readonly resource: Omit<Resource, "content">; readonly change: ChangeFacts }[],
): Promise<void> {
  const endpoints = await tx.all<{ id: string; events: string }>(
    "SELECT id, events FROM webhook_endpoint WHERE account_id = @accountId AND enabled ORDER BY number",
    { accountId },
  );
  const wanted = endpoints.filter((endpoint) => isWanted(endpoint.events, type));
  if (wanted.length === 0) return;
  const messages = events.map(({ resource, change }) => eventMessage(type, resource, change));
  for (const { id } of wanted) await write(tx, accountId, messages, id);
}

/** Queues a message for a registered endpoint, if it exists, or for the address given with it. */
export async function addDelivery(tx: Transaction, { to, ...message }: NewDelivery): Promise<void> {
  if ("target" in to) {
    await write(tx, message.accountId, [message], to.target);
    return;
  }
  const { endpointId } = to;
  const found = await tx.get(
    "SELECT 1 FROM webhook_endpoint WHERE id = @endpointId AND account_id = @accountId FOR KEY SHARE",
    { endpointId, accountId: message.accountId },
  );
  if (found !== undefined) await write(tx, message.accountId, [message], endpointId);
}

/** Removes the oldest deliveries of an account that were given up, above the maximum. */
export async function trimFailed(tx: Transaction, accountId: string): Promise<void> {
  await tx.run(
    `DELETE FROM job WHERE queue = 'webhook' AND is_failed AND account_id = @accountId AND number <= (
      SELECT number FROM job WHERE queue = 'webhook' AND is_failed AND account_id = @accountId
      ORDER BY number DESC LIMIT 1 OFFSET ${FAILED_MAX})`,
    { accountId },
  );
}

/** Queues messages of an account for one receiver, in their order. */
async function write(
  tx: Transaction,
  accountId: string,
  messages: readonly Message[],
  to: string | DeliveryTarget,
): Promise<void> {
  const isOwn = typeof to !== "string";
  const line = isOwn ? ownLine(accountId, to.url) : to;
  const [from, until] = isOwn ? [`${accountId} `, `${accountId}!`] : [to, to];
  const found = await tx.get<{ jobs: number }>(
    `SELECT count(*) AS jobs FROM (
      SELECT 1 FROM job WHERE queue = 'webhook' AND NOT is_failed AND line BETWEEN @from AND @until LIMIT ${WAITING_MAX}) AS waiting`,
    { from, until },
  );
  const room = WAITING_MAX - (found?.jobs ?? 0);
  // 0 is due at any clock time: the clock may be set back before the first attempt.
  await tx.run(
    `INSERT INTO job (queue, account_id, line, name, is_failed, due_ms, created_ms, body)
    SELECT 'webhook', @accountId, @line, name, nth > @room::bigint, 0, created_ms, CASE WHEN nth > @room::bigint THEN '{}' ELSE body END
    FROM unnest(@names::text[], @times::bigint[], @bodies::text[]) WITH ORDINALITY AS new (name, created_ms, body, nth)
    ORDER BY nth`,
    {
      accountId,
      line,
      room,
      names: messages.map(({ eventId }) => eventId),
      times: messages.map(({ nowMs }) => nowMs),
      bodies: messages.map(({ type, body, reads }) => {
        const jobBody: DeliveryBody = { type, body, ...(reads && { reads }), ...(isOwn && { target: to }) };
        return JSON.stringify(jobBody);
      }),
    },
  );
  if (messages.length > room) await trimFailed(tx, accountId);
}
