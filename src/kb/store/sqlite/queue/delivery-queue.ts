import type { EventType } from "../../../../wire/event.ts";
import type { Resource } from "../../resources.ts";
import { ownLine, type DeliveryBody, type DeliveryTarget, type NewDelivery } from "../../webhooks.ts";
import {
  FAILED_MAX,
  eventMessage,
  isWanted,
  WAITING_MAX,
  type ChangeFacts,
  type Message,
} from "../../rows/webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Queues deliveries. Each method runs inside a transaction of the caller. */
export interface DeliveryQueue {
  /** Queues an event for every enabled endpoint of the account that subscribes to the type. */
  publish(type: EventType, resource: Omit<Resource, "content">, change: ChangeFacts): void;
  add(delivery: NewDelivery): void;
  /** Removes the oldest deliveries of an account that were given up, above the maximum. */
  trimFailed(accountId: string): void;
}

/** Prepares the statements on the writing connection. */
export function prepareDeliveryQueue(db: Connection): DeliveryQueue {
  const selectEndpoints = db.prepare<[string], { id: string; events: string }>(
    "SELECT id, events FROM webhook_endpoint WHERE account_id = ? AND enabled = 1",
  );
  const selectEndpoint = db.prepare<[string, string]>(
    "SELECT 1 FROM webhook_endpoint WHERE id = ? AND account_id = ?",
  );
  const selectFull = db.prepare<[string, string]>(
    `SELECT 1 FROM job WHERE queue = 'webhook' AND is_failed = 0 AND line BETWEEN ? AND ? LIMIT 1 OFFSET ${WAITING_MAX - 1}`,
  );
  // 0 is due at any clock time: the clock may be set back before the first attempt.
  const insert = db.prepare(`
    INSERT INTO job (queue, account_id, line, name, is_failed, due_ms, created_ms, body)
    VALUES ('webhook', @accountId, @line, @eventId, @isFailed, 0, @nowMs, @body)`);
  const trim = db.prepare(`
    DELETE FROM job WHERE queue = 'webhook' AND is_failed = 1 AND account_id = @accountId AND number <= (
      SELECT number FROM job WHERE queue = 'webhook' AND is_failed = 1 AND account_id = @accountId
      ORDER BY number DESC LIMIT 1 OFFSET ${FAILED_MAX})`);

  const trimFailed = (accountId: string): void => {
    trim.run({ accountId });
  };
  const write = (
    { accountId, eventId, type, body, reads, nowMs }: Message,
    to: string | DeliveryTarget,
  ): void => {
    const isOwn = typeof to !== "string";
    const line = isOwn ? ownLine(accountId, to.url) : to;
    const isFull =
      (isOwn ? selectFull.get(`${accountId} `, `${accountId}!`) : selectFull.get(to, to)) !== undefined;
    const jobBody: DeliveryBody = { type, body, ...(reads && { reads }), ...(isOwn && { target: to }) };
    insert.run({
      accountId,
      eventId,
      nowMs,
      line,
      isFailed: Number(isFull),
      body: isFull ? "{}" : JSON.stringify(jobBody),
    });
    if (isFull) trimFailed(accountId);
  };

  return {
    trimFailed,
    publish: (type, resource, change) => {
      let message: Message | undefined;
      for (const { id, events } of selectEndpoints.all(resource.accountId)) {
        if (!isWanted(events, type)) continue;
        message ??= eventMessage(type, resource, change);
        write(message, id);
      }
    },
    add: ({ to, ...message }) => {
      if ("target" in to) write(message, to.target);
      else if (selectEndpoint.get(to.endpointId, message.accountId) !== undefined)
        write(message, to.endpointId);
    },
  };
}
