import { KbsyncError } from "../../../../lib/failure.ts";
import type { Inside } from "../../methods.ts";
import { stateOf } from "../../webhooks.ts";
import type { Endpoint, EndpointKey, NewEndpoint, WebhookRecords } from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";
import { prepareDeliveryQueue } from "./delivery-queue.ts";
import type { QueueWrites } from "./queue.ts";
import { prepareWebhookReads } from "./webhook-reads.ts";

/** Writes of endpoints and deliveries. Each runs inside a transaction of the caller. */
export type WebhookWrites = Pick<
  Inside<"write" | "free">["records"],
  keyof WebhookRecords & keyof Inside<"write" | "free">["records"]
>;

/** Prepares the statements on the writing connection. */
export function prepareWebhookWrites(db: Connection, queue: QueueWrites): WebhookWrites {
  return { ...prepareEndpointWrites(db), ...prepareDeliveryWrites(db, queue) };
}

function prepareEndpointWrites(db: Connection) {
  const reads = prepareWebhookReads(db);
  const insert = db.prepare(`
    INSERT INTO webhook_endpoint (id, account_id, url, description, events, secret, enabled, created_at, updated_at)
    VALUES (@id, @accountId, @url, @description, @events, @secret, @enabled, @nowIso, @nowIso)`);
  const update = db.prepare(`
    UPDATE webhook_endpoint SET url = @url, description = @description, events = @events, secret = @secret,
      enabled = @enabled, updated_at = @nowIso
    WHERE id = @id AND account_id = @accountId`);
  const removeDeliveries = db.prepare(
    "DELETE FROM job WHERE queue = 'webhook' AND is_failed IN (0, 1) AND line = ?",
  );
  const remove = db.prepare("DELETE FROM webhook_endpoint WHERE id = ? AND account_id = ?");

  const rowOf = (endpoint: Omit<NewEndpoint, "nowIso">, nowIso: string): object => {
    const { id, accountId, url, description, secret } = endpoint;
    const events = JSON.stringify(endpoint.events);
    return { id, accountId, url, description, nowIso, events, secret, enabled: endpoint.enabled ? 1 : 0 };
  };
  const existing = (at: EndpointKey): Endpoint => {
    const found = reads.endpoint(at);
    if (found === undefined) throw new TypeError("an endpoint just written was not found");
    return found;
  };

  return {
    addEndpoint: (endpoint, endpointsMax) => {
      if (reads.endpoints(endpoint.accountId).length >= endpointsMax) {
        throw new KbsyncError(`an account has at most ${endpointsMax} endpoints`, {
          code: "too_many_endpoints",
          hint: "Remove one first.",
        });
      }
      insert.run(rowOf(endpoint, endpoint.nowIso));
      return existing(endpoint);
    },
    changeEndpoint: ({ nowIso, ...change }) => {
      const before = reads.endpoint(change);
      if (before === undefined) return undefined;
      update.run(rowOf({ ...before, ...change }, nowIso));
      return existing(change);
    },
    removeEndpoint: ({ id, accountId }) => {
      if (remove.run(id, accountId).changes === 0) return false;
      removeDeliveries.run(id);
      return true;
    },
  } satisfies Partial<WebhookWrites>;
}

function prepareDeliveryWrites(db: Connection, queue: QueueWrites) {
  const deliveries = prepareDeliveryQueue(db);
  const selectDelivery = db.prepare<
    [number],
    { line: string; account_id: string; updated_at: string | null; url: string | null }
  >(`
    SELECT line, job.account_id, updated_at, url FROM job LEFT JOIN webhook_endpoint ON webhook_endpoint.id = line
    WHERE job.number = ?`);
  const noteDelivered = db.prepare(
    "UPDATE webhook_endpoint SET delivered_at = ?, problem = NULL WHERE id = ?",
  );
  const noteProblem = db.prepare(
    "UPDATE webhook_endpoint SET problem = @problem, enabled = CASE @disable WHEN 1 THEN 0 ELSE enabled END WHERE id = @endpoint",
  );

  return {
    addDelivery: (delivery) => deliveries.add(delivery),
    settleDelivery: (job, outcome) => {
      const delivery = selectDelivery.get(job.number);
      if (delivery === undefined) return;
      const { line: endpoint, account_id: accountId, updated_at: updatedAt, url } = delivery;
      const { kind, endpointState, nowIso } = outcome;
      if (kind === "delivered") {
        if (queue.complete(job)) noteDelivered.run(nowIso, endpoint);
        return;
      }
      if (
        endpointState !== undefined &&
        endpointState !== stateOf({ updatedAt: updatedAt ?? "", url: url ?? "" })
      ) {
        queue.postpone(job, { dueMs: 0, nowMs: 0, counts: true });
        return;
      }
      const { problem } = outcome;
      if (kind === "retry") {
        const { dueMs, nowMs } = outcome;
        const isLeased = queue.postpone(job, { dueMs, nowMs, counts: true });
        if (isLeased) noteProblem.run({ problem, disable: 0, endpoint });
      } else if (queue.fail(job)) {
        noteProblem.run({ problem, disable: Number(outcome.disable), endpoint });
        deliveries.trimFailed(accountId);
      }
    },
  } satisfies Partial<WebhookWrites>;
}
