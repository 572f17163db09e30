import { randomUUID } from "node:crypto";
import type { EventType, ResourceEvent } from "../../../../wire/event.ts";
import type { Resource } from "../../records.ts";
import type { NewDelivery } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Deliveries that may wait of one endpoint, and of an account's own addresses together; what comes on top is a dead letter at once, to be replayed by hand. */
const WAITING_MAX = 20_000;
/** Dead letters of an account, oldest out first. */
const DEAD_MAX = 20_000;

/** Puts messages into the queue of deliveries; each runs inside a transaction of the caller. */
export interface DeliveryQueue {
  /** For every endpoint of the account that wants the type. */
  publish(type: EventType, resource: Omit<Resource, "content">, nowIso: string): void;
  add(delivery: NewDelivery): void;
  /** Removes the oldest dead letters of an account that are too many. */
  trimDead(accountId: string): void;
}

/** Prepares the statements on the writing connection. */
export function prepareDeliveryQueue(db: Connection): DeliveryQueue {
  const selectEndpoints = db.prepare<[string], { number: number; events: string }>(
    "SELECT number, events FROM webhook_endpoint WHERE account_id = ? AND enabled = 1",
  );
  const selectEndpoint = db
    .prepare<[string, string], number>("SELECT number FROM webhook_endpoint WHERE id = ? AND account_id = ?")
    .pluck();
  // By account as well: addresses that stand in requests have no endpoint, and one account's are not another's.
  const selectFull = db.prepare<[string, number | null]>(
    `SELECT 1 FROM webhook_delivery WHERE account_id = ? AND state = 'waiting' AND endpoint IS ?
     LIMIT 1 OFFSET ${WAITING_MAX - 1}`,
  );
  // Due whatever the clock says: it may be set back before the first attempt.
  const insert = db.prepare(`
    INSERT INTO webhook_delivery (account_id, endpoint, target, event_id, type, state, due_ms, created_ms, problem, body)
    VALUES (@accountId, @endpoint, @target, @eventId, @type, @state, 0, @nowMs, @problem, @body)`);
  const trim = db.prepare(`
    DELETE FROM webhook_delivery WHERE account_id = @accountId AND state = 'dead' AND number <= (
      SELECT number FROM webhook_delivery WHERE account_id = @accountId AND state = 'dead'
      ORDER BY number DESC LIMIT 1 OFFSET ${DEAD_MAX})`);

  const trimDead = (accountId: string): void => {
    trim.run({ accountId });
  };
  const write = (
    endpoint: number | null,
    target: string | null,
    message: Pick<NewDelivery, "accountId" | "eventId" | "type" | "body" | "nowMs">,
  ): void => {
    const { accountId, eventId, type, body, nowMs } = message;
    const isFull = selectFull.get(accountId, endpoint) !== undefined;
    const state = isFull ? "dead" : "waiting";
    const whose = endpoint === null ? "to addresses of the account's requests" : "of this endpoint";
    const problem = isFull ? `more than ${WAITING_MAX} deliveries ${whose} wait` : null;
    insert.run({ accountId, eventId, type, body, nowMs, endpoint, target, state, problem });
    if (isFull) trimDead(accountId);
  };

  return {
    trimDead,
    publish: (type, resource, nowIso) => {
      let message: Parameters<typeof write>[2] | undefined;
      for (const { number, events } of selectEndpoints.all(resource.accountId)) {
        const wanted = JSON.parse(events) as string[]; // written by this store from a list of strings
        if (wanted.length > 0 && !wanted.includes(type)) continue;
        message ??= {
          accountId: resource.accountId,
          eventId: newEventId(),
          type,
          body: JSON.stringify(eventOf(type, resource, nowIso)),
          nowMs: Date.parse(nowIso),
        };
        write(number, null, message);
      }
    },
    add: (delivery) => {
      const { to, ...message } = delivery;
      if ("target" in to) {
        write(null, JSON.stringify(to.target), message);
        return;
      }
      const endpoint = selectEndpoint.get(to.endpointId, delivery.accountId);
      if (endpoint !== undefined) write(endpoint, null, message);
    },
  };
}

/** A `webhook-id` nobody else has. */
export function newEventId(): string {
  return `msg_${randomUUID().replaceAll("-", "")}`;
}

function eventOf(type: EventType, resource: Omit<Resource, "content">, timestamp: string): ResourceEvent {
  return {
    type,
    timestamp,
    data: {
      _id: resource.id,
      title: resource.title,
      collectionId: resource.collectionId,
      ownerId: resource.ownerId,
      version: resource.version,
      chunks: resource.chunkCount,
      status: type === "resource.deleted" ? "deleted" : resource.status,
      ...(resource.statusMessage === null ? {} : { message: resource.statusMessage }),
    },
  };
}
