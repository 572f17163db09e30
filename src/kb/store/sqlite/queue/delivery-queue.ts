import { randomUUID } from "node:crypto";
import type { EventType, ResourceEvent } from "../../../../wire/event.ts";
import type { Resource } from "../../records.ts";
import { ownLine, type DeliveryBody, type DeliveryTarget, type NewDelivery } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Deliveries that may wait of one endpoint, and of an account's own addresses together; what comes on top is a dead letter at once, to be replayed by hand. */
const WAITING_MAX = 20_000;
/** Dead letters of an account, oldest out first. */
const DEAD_MAX = 20_000;

type Message = Omit<NewDelivery, "to">;

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
  const selectEndpoints = db.prepare<[string], { id: string; events: string }>(
    "SELECT id, events FROM webhook_endpoint WHERE account_id = ? AND enabled = 1",
  );
  const selectEndpoint = db.prepare<[string, string]>(
    "SELECT 1 FROM webhook_endpoint WHERE id = ? AND account_id = ?",
  );
  const selectFull = db.prepare<[string, string]>(
    `SELECT 1 FROM job WHERE queue = 'webhook' AND is_dead = 0 AND line BETWEEN ? AND ? LIMIT 1 OFFSET ${WAITING_MAX - 1}`,
  );
  // Due whatever the clock says: it may be set back before the first attempt.
  const insert = db.prepare(`
    INSERT INTO job (queue, account_id, line, name, is_dead, due_ms, created_ms, problem, body)
    VALUES ('webhook', @accountId, @line, @eventId, @isDead, 0, @nowMs, @problem, @body)`);
  const trim = db.prepare(`
    DELETE FROM job WHERE queue = 'webhook' AND is_dead = 1 AND account_id = @accountId AND number <= (
      SELECT number FROM job WHERE queue = 'webhook' AND is_dead = 1 AND account_id = @accountId
      ORDER BY number DESC LIMIT 1 OFFSET ${DEAD_MAX})`);

  const trimDead = (accountId: string): void => {
    trim.run({ accountId });
  };
  const write = ({ accountId, eventId, type, body, nowMs }: Message, to: string | DeliveryTarget): void => {
    const isOwn = typeof to !== "string";
    const line = isOwn ? ownLine(accountId, to.url) : to;
    const isFull =
      (isOwn ? selectFull.get(`${accountId} `, `${accountId}!`) : selectFull.get(to, to)) !== undefined;
    const whose = isOwn ? "to addresses of the account's requests" : "of this endpoint";
    const brought: DeliveryBody = { type, body, ...(isOwn && { target: to }) };
    insert.run({
      accountId,
      eventId,
      nowMs,
      line,
      isDead: Number(isFull),
      problem: isFull ? `more than ${WAITING_MAX} deliveries ${whose} wait` : null,
      body: JSON.stringify(brought),
    });
    if (isFull) trimDead(accountId);
  };

  return {
    trimDead,
    publish: (type, resource, nowIso) => {
      let message: Message | undefined;
      for (const { id, events } of selectEndpoints.all(resource.accountId)) {
        const wanted = JSON.parse(events) as string[]; // written by this store from a list of strings
        if (wanted.length > 0 && !wanted.includes(type)) continue;
        message ??= {
          accountId: resource.accountId,
          eventId: newEventId(),
          type,
          body: JSON.stringify(eventOf(type, resource, nowIso)),
          nowMs: Date.parse(nowIso),
        };
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
