import { KbsyncError } from "../../../../lib/failure.ts";
import type {
  DeliveryOutcome,
  Endpoint,
  EndpointChange,
  EndpointKey,
  NewDelivery,
  NewEndpoint,
  Replayed,
  ReplayQuery,
} from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";
import { prepareDeliveryQueue } from "./delivery-queue.ts";
import { ENDPOINT_STATE, prepareWebhookReads } from "./webhook-reads.ts";

/** Writes of endpoints and deliveries, one argument each; each runs inside a transaction of the caller. */
export type WebhookWrites = {
  addEndpoint(argument: { readonly endpoint: NewEndpoint; readonly endpointsMax: number }): Endpoint;
  changeEndpoint(change: EndpointChange): Endpoint | undefined;
  removeEndpoint(at: EndpointKey): boolean;
  addDelivery(delivery: NewDelivery): void;
  settleDelivery(outcome: DeliveryOutcome): void;
  limitDeliveryWaits(argument: { readonly nowMs: number; readonly longestMs: readonly number[] }): void;
  replayDeliveries(query: ReplayQuery): Replayed;
};

/** Prepares the statements on the writing connection. */
export function prepareWebhookWrites(db: Connection): WebhookWrites {
  const reads = prepareWebhookReads(db);
  const queue = prepareDeliveryQueue(db);
  const insert = db.prepare(`
    INSERT INTO webhook_endpoint (id, account_id, url, description, events, secrets, enabled, created_at, updated_at)
    VALUES (@id, @accountId, @url, @description, @events, @secrets, @enabled, @nowIso, @nowIso)`);
  const update = db.prepare(`
    UPDATE webhook_endpoint SET url = @url, description = @description, events = @events, secrets = @secrets,
      enabled = @enabled, updated_at = @nowIso
    WHERE id = @id AND account_id = @accountId`);
  const selectNumber = db
    .prepare<[string, string], number>("SELECT number FROM webhook_endpoint WHERE id = ? AND account_id = ?")
    .pluck();
  const removeDeliveries = db.prepare("DELETE FROM webhook_delivery WHERE endpoint = ?");
  const remove = db.prepare("DELETE FROM webhook_endpoint WHERE number = ?");
  const selectDelivery = db.prepare<
    [number],
    { endpoint: number | null; account_id: string; state: string | null }
  >(`
    SELECT endpoint, webhook_delivery.account_id, ${ENDPOINT_STATE} AS state
    FROM webhook_delivery LEFT JOIN webhook_endpoint ON webhook_endpoint.number = webhook_delivery.endpoint
    WHERE webhook_delivery.number = ? AND webhook_delivery.state = 'waiting'`);
  const removeDelivery = db.prepare("DELETE FROM webhook_delivery WHERE number = ?");
  const retry = db.prepare(
    "UPDATE webhook_delivery SET attempts = attempts + 1, due_ms = ?, problem = ? WHERE number = ?",
  );
  const limit = db.prepare(`
    UPDATE webhook_delivery SET due_ms = @nowMs
    WHERE state = 'waiting' AND due_ms > @nowMs + json_extract(@longestMs, '$[' || CAST(max(1, min(attempts, @waits)) - 1 AS INTEGER) || ']')`);
  const bury = db.prepare(
    "UPDATE webhook_delivery SET attempts = attempts + 1, state = 'dead', problem = ? WHERE number = ?",
  );
  const noteArrival = db.prepare(
    "UPDATE webhook_endpoint SET delivered_at = ?, problem = NULL WHERE number = ?",
  );
  const noteProblem = db.prepare(
    "UPDATE webhook_endpoint SET problem = @problem, enabled = CASE @disable WHEN 1 THEN 0 ELSE enabled END WHERE number = @endpoint",
  );
  const asked = `account_id = @accountId AND state = 'dead' AND (@eventId IS NULL OR event_id = @eventId)
      AND (@endpoint IS NULL OR endpoint = @endpoint)`;
  // A null, of an address of its own, is in no list.
  const isDisabled = "endpoint IN (SELECT number FROM webhook_endpoint WHERE enabled = 0)";
  const countDisabled = db
    .prepare<[object], number>(`SELECT count(*) FROM webhook_delivery WHERE ${asked} AND ${isDisabled}`)
    .pluck();
  const replay = db.prepare(`
    UPDATE webhook_delivery SET state = 'waiting', attempts = 0, due_ms = 0, created_ms = @nowMs
    WHERE ${asked} AND (endpoint IS NULL OR NOT ${isDisabled})`);

  const rowOf = (endpoint: Omit<NewEndpoint, "nowIso">, nowIso: string): object => {
    const { id, accountId, url, description } = endpoint;
    const lists = { events: JSON.stringify(endpoint.events), secrets: JSON.stringify(endpoint.secrets) };
    return { id, accountId, url, description, nowIso, ...lists, enabled: endpoint.enabled ? 1 : 0 };
  };
  const existing = (at: EndpointKey): Endpoint => {
    const found = reads.endpoint(at);
    if (found === undefined) throw new TypeError("an endpoint just written was not found");
    return found;
  };

  return {
    addEndpoint: ({ endpoint, endpointsMax }) => {
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
      const number = selectNumber.get(id, accountId);
      if (number === undefined) return false;
      removeDeliveries.run(number);
      remove.run(number);
      return true;
    },
    addDelivery: (delivery) => {
      queue.add(delivery);
    },
    settleDelivery: (outcome) => {
      const { number } = outcome;
      const row = selectDelivery.get(number);
      if (row === undefined) return;
      const { endpointState } = outcome;
      const isOutdated = endpointState !== undefined && endpointState !== row.state;
      if (outcome.kind !== "delivered" && isOutdated) {
        retry.run(0, null, number);
        return;
      }
      switch (outcome.kind) {
        case "delivered":
          removeDelivery.run(number);
          noteArrival.run(outcome.nowIso, row.endpoint);
          break;
        case "retry":
          retry.run(outcome.dueMs, outcome.problem, number);
          noteProblem.run({ problem: outcome.problem, disable: 0, endpoint: row.endpoint });
          break;
        case "dead":
          bury.run(outcome.problem, number);
          noteProblem.run({
            problem: outcome.problem,
            disable: outcome.disable ? 1 : 0,
            endpoint: row.endpoint,
          });
          queue.trimDead(row.account_id);
          break;
      }
    },
    limitDeliveryWaits: ({ nowMs, longestMs }) => {
      limit.run({ nowMs, longestMs: JSON.stringify(longestMs), waits: longestMs.length });
    },
    replayDeliveries: ({ accountId, eventId, endpointId, nowMs }) => {
      const endpoint = endpointId === undefined ? undefined : selectNumber.get(endpointId, accountId);
      if (endpointId !== undefined && endpoint === undefined) return { replayed: 0, disabled: 0 };
      const which = { accountId, eventId: eventId ?? null, endpoint: endpoint ?? null };
      const disabled = countDisabled.get(which) ?? 0;
      return { replayed: replay.run({ ...which, nowMs }).changes, disabled };
    },
  };
}
