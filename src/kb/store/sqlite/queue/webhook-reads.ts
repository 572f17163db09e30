import type {
  DeadDelivery,
  DeadQuery,
  Delivery,
  DeliveryFigures,
  DeliveryTarget,
  DueQuery,
  Endpoint,
  EndpointKey,
  SigningSecret,
} from "../../webhooks.ts";
import type { Connection } from "../database/connection.ts";

/** Reads of endpoints and deliveries, on a connection of either kind. */
export interface WebhookReads {
  endpoint(at: EndpointKey): Endpoint | undefined;
  endpoints(this: void, accountId: string): Endpoint[];
  /** Of registered endpoints. */
  dueOfEndpoints(this: void, query: DueQuery): Delivery[];
  /** To addresses of their own: what fits of one page, and whether there may be another. */
  dueOwn(this: void, query: DueOwnQuery): { due: Delivery[]; more: boolean };
  nextDeliveryMs(): number | undefined;
  deadDeliveries(this: void, query: DeadQuery): DeadDelivery[];
  deliveryFigures(this: void, accountId: string | undefined): DeliveryFigures;
}

/** Deliveries to addresses of their own that are looked at in one go: their hosts are read out of their targets. */
const OWN_PAGE = 500;

/** Another one after every change by the account; null without an endpoint. */
export const ENDPOINT_STATE = "webhook_endpoint.updated_at || ' ' || webhook_endpoint.url";

const NONE: DeliveryFigures = { endpoints: 0, waiting: 0, dead: 0 };

interface DueOwnQuery extends DueQuery {
  /** Most that are wanted. */
  readonly limit: number;
  readonly range: DueRange;
  /** Pages of the range that were looked at before. */
  readonly page: number;
}

/** Times at which deliveries are due, both ends included. */
export interface DueRange {
  readonly from: number;
  readonly to: number;
}

/**
 * What is due by now, in the order of its turns: what is tried again, and what is new, whose time is 0. Pure.
 */
export function dueRanges(nowMs: number): readonly DueRange[] {
  return [
    { from: 1, to: nowMs },
    { from: 0, to: 0 },
  ];
}

interface OwnRow {
  readonly number: number;
  readonly target: string;
}

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

interface DeliveryRow {
  readonly number: number;
  readonly account_id: string;
  readonly endpoint_id: string | null;
  readonly url: string | null;
  readonly secrets: string | null;
  readonly enabled: number | null;
  readonly endpoint_state: string | null;
  readonly target: string | null;
  readonly event_id: string;
  readonly type: string;
  readonly body: string;
  readonly attempts: number;
  readonly created_ms: number;
  readonly problem: string | null;
}

/** Prepares the statements. */
export function prepareWebhookReads(db: Connection): WebhookReads {
  const counted = `
    SELECT webhook_endpoint.*,
      (SELECT count(*) FROM webhook_delivery AS one WHERE one.account_id = webhook_endpoint.account_id
        AND one.endpoint = webhook_endpoint.number AND one.state = 'waiting') AS waiting,
      (SELECT count(*) FROM webhook_delivery AS one WHERE one.account_id = webhook_endpoint.account_id
        AND one.endpoint = webhook_endpoint.number AND one.state = 'dead') AS dead
    FROM webhook_endpoint`;
  const selectOne = db.prepare<[string, string], EndpointRow>(`${counted} WHERE id = ? AND account_id = ?`);
  const selectAll = db.prepare<[string], EndpointRow>(`${counted} WHERE account_id = ? ORDER BY number`);
  // Endpoints are few; a null stands for all deliveries to addresses of their own.
  const selectEndpoints = db.prepare<[], number>("SELECT number FROM webhook_endpoint").pluck();
  const selectOpenEndpoints = db
    .prepare<[string], number>(
      "SELECT number FROM webhook_endpoint WHERE account_id NOT IN (SELECT value FROM json_each(?))",
    )
    .pluck();
  const delivery = `
    SELECT webhook_delivery.number, webhook_delivery.account_id, webhook_endpoint.id AS endpoint_id, webhook_endpoint.url, secrets, enabled, target,
      event_id, type, body, attempts, created_ms, webhook_delivery.problem,
      ${ENDPOINT_STATE} AS endpoint_state
    FROM webhook_delivery LEFT JOIN webhook_endpoint ON webhook_endpoint.number = webhook_delivery.endpoint`;
  const selectDue = db.prepare<[number, number, number, string, number], DeliveryRow>(`${delivery}
    WHERE endpoint = ? AND state = 'waiting' AND due_ms BETWEEN ? AND ?
      AND webhook_delivery.number NOT IN (SELECT value FROM json_each(?))
    ORDER BY due_ms, webhook_delivery.number LIMIT ?`);
  const selectOwn = db.prepare<[number, number, string, number], OwnRow>(`
    SELECT number, target FROM webhook_delivery
    WHERE endpoint IS NULL AND state = 'waiting' AND due_ms BETWEEN ? AND ?
      AND account_id NOT IN (SELECT value FROM json_each(?))
    ORDER BY due_ms, number LIMIT ${OWN_PAGE} OFFSET ?`);
  const selectDelivery = db.prepare<[number], DeliveryRow>(`${delivery} WHERE webhook_delivery.number = ?`);
  const selectNext = db
    .prepare<[number | null], number | null>(
      "SELECT min(due_ms) FROM webhook_delivery WHERE endpoint IS ? AND state = 'waiting'",
    )
    .pluck();
  const selectDead = db.prepare<[string, number, number], DeliveryRow>(`${delivery}
    WHERE webhook_delivery.account_id = ? AND state = 'dead' AND webhook_delivery.number < ?
    ORDER BY webhook_delivery.number DESC LIMIT ?`);
  const selectFigures = db.prepare<{ accountId: string }, DeliveryFigures>(`
    SELECT (SELECT count(*) FROM webhook_endpoint WHERE account_id = @accountId) AS endpoints,
      (SELECT count(*) FROM webhook_delivery WHERE account_id = @accountId AND state = 'waiting') AS waiting,
      (SELECT count(*) FROM webhook_delivery WHERE account_id = @accountId AND state = 'dead') AS dead`);

  const selectAllFigures = db.prepare<[], DeliveryFigures>(`
    SELECT (SELECT count(*) FROM webhook_endpoint) AS endpoints,
      (SELECT count(*) FROM webhook_delivery WHERE state = 'waiting') AS waiting,
      (SELECT count(*) FROM webhook_delivery WHERE state = 'dead') AS dead`);

  return {
    endpoint: (at) => {
      const row = selectOne.get(at.id, at.accountId);
      return row === undefined ? undefined : endpointOf(row);
    },
    endpoints: (accountId) => selectAll.all(accountId).map(endpointOf),
    dueOfEndpoints: ({ nowMs, perEndpoint, underWay, fullAccounts = [] }) => {
      const skipped = JSON.stringify(underWay);
      return selectOpenEndpoints.all(JSON.stringify(fullAccounts)).flatMap((line) => {
        const due: DeliveryRow[] = [];
        for (const { from, to } of dueRanges(nowMs))
          due.push(...selectDue.all(line, from, to, skipped, perEndpoint - due.length));
        return due.map(deliveryOf);
      });
    },
    dueOwn: ({ range, underWay, fullHosts, fullAccounts = [], limit, page }) => {
      const rows = selectOwn.all(range.from, range.to, JSON.stringify(fullAccounts), page * OWN_PAGE);
      const fitting = rows.filter(({ number, target }) => {
        if (underWay.includes(number)) return false;
        const { url } = JSON.parse(target) as DeliveryTarget; // written by this store from a target
        return !fullHosts.includes(URL.parse(url)?.host ?? "");
      });
      const due = fitting.slice(0, limit).flatMap(({ number }) => selectDelivery.all(number).map(deliveryOf));
      return { due, more: rows.length === OWN_PAGE };
    },
    nextDeliveryMs: () => {
      const times = [...selectEndpoints.all(), null].map((line) => selectNext.get(line) ?? Infinity);
      const first = Math.min(...times);
      return Number.isFinite(first) ? first : undefined;
    },
    deadDeliveries: ({ accountId, beforeNumber, limit }) =>
      selectDead.all(accountId, beforeNumber ?? Number.MAX_SAFE_INTEGER, limit).map((row) => ({
        number: row.number,
        endpointId: row.endpoint_id ?? undefined,
        url: targetOf(row).url,
        eventId: row.event_id,
        type: row.type,
        attempts: row.attempts,
        problem: row.problem ?? "",
        createdMs: row.created_ms,
      })),
    deliveryFigures: (accountId) =>
      (accountId === undefined ? selectAllFigures.get() : selectFigures.get({ accountId })) ?? NONE,
  };
}

function endpointOf(row: EndpointRow): Endpoint {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    description: row.description,
    events: JSON.parse(row.events) as string[], // these two were written by this store from an endpoint
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

function deliveryOf(row: DeliveryRow): Delivery {
  return {
    number: row.number,
    accountId: row.account_id,
    endpointId: row.endpoint_id ?? undefined,
    enabled: row.enabled !== 0,
    endpointState: row.endpoint_state ?? undefined,
    target: targetOf(row),
    eventId: row.event_id,
    type: row.type,
    body: row.body,
    attempts: row.attempts,
  };
}

function targetOf({ url, secrets, target }: DeliveryRow): DeliveryTarget {
  // Both were written by this store from such values.
  if (target !== null) return JSON.parse(target) as DeliveryTarget;
  return { url: url ?? "", secrets: JSON.parse(secrets ?? "[]") as SigningSecret[], headers: {} };
}
