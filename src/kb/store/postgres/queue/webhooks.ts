import { KbsyncError } from "../../../../lib/failure.ts";
import type { Lease } from "../../../queue/queue.ts";
import { endpointOf, type EndpointRow } from "../../rows/webhooks.ts";
import {
  stateOf,
  type DeliveryOutcome,
  type Endpoint,
  type EndpointKey,
  type NewEndpoint,
  type WebhookRecords,
} from "../../webhooks.ts";
import type { Transaction } from "../database/connections.ts";
import type { Parameters } from "../../sql/steps.ts";
import { addDelivery, trimFailed } from "./deliveries.ts";
import { queueOn } from "./queue.ts";

const count = (condition: string): string =>
  `(SELECT count(*) FROM job WHERE queue = 'webhook' AND ${condition} AND line = webhook_endpoint.id)`;
const SELECT = `SELECT *, ${count("NOT is_failed")} AS waiting,
  ${count("is_failed AND account_id = webhook_endpoint.account_id")} AS failed FROM webhook_endpoint`;

/** Endpoints and their deliveries inside a transaction. */
export function webhooksOn(tx: Transaction): WebhookRecords {
  return { ...endpointsOn(tx), ...deliveriesOn(tx) };
}

function endpointsOn(
  tx: Transaction,
): Pick<WebhookRecords, "addEndpoint" | "changeEndpoint" | "removeEndpoint" | "endpoint" | "endpoints"> {
  const endpoint = async ({ id, accountId }: EndpointKey): Promise<Endpoint | undefined> => {
    const row = await tx.get<EndpointRow>(`${SELECT} WHERE id = @id AND account_id = @accountId`, {
      id,
      accountId,
    });
    return row === undefined ? undefined : endpointOf(row);
  };
  const endpoints = async (accountId: string): Promise<Endpoint[]> => {
    const rows = await tx.all<EndpointRow>(`${SELECT} WHERE account_id = @accountId ORDER BY number`, {
      accountId,
    });
    return rows.map(endpointOf);
  };
  const existing = async (at: EndpointKey): Promise<Endpoint> => {
    const found = await endpoint(at);
    if (found === undefined) throw new TypeError("an endpoint just written was not found");
    return found;
  };
  return {
    endpoint,
    endpoints,
    async addEndpoint(added, endpointsMax) {
      await lockAccount(tx, added.accountId);
      if ((await endpoints(added.accountId)).length >= endpointsMax) {
        throw new KbsyncError(`an account has at most ${endpointsMax} endpoints`, {
          code: "too_many_endpoints",
          hint: "Remove one first.",
        });
      }
      await tx.run(
        `INSERT INTO webhook_endpoint (id, account_id, url, description, events, secret, enabled, created_at, updated_at)
        VALUES (@id, @accountId, @url, @description, @events, @secret, @enabled, @nowIso, @nowIso)`,
        columnsOf(added, added.nowIso),
      );
      return existing(added);
    },
    async changeEndpoint({ nowIso, ...change }) {
      const locked = await tx.get(
        "SELECT 1 FROM webhook_endpoint WHERE id = @id AND account_id = @accountId FOR UPDATE",
        {
          id: change.id,
          accountId: change.accountId,
        },
      );
      const before = locked === undefined ? undefined : await endpoint(change);
      if (before === undefined) return undefined;
      await tx.run(
        `UPDATE webhook_endpoint SET url = @url, description = @description, events = @events, secret = @secret,
          enabled = @enabled, updated_at = @nowIso
        WHERE id = @id AND account_id = @accountId`,
        columnsOf({ ...before, ...change }, nowIso),
      );
      return existing(change);
    },
    async removeEndpoint({ id, accountId }) {
      const removed = await tx.run(
        "DELETE FROM webhook_endpoint WHERE id = @id AND account_id = @accountId",
        {
          id,
          accountId,
        },
      );
      if (removed === 0) return false;
      await tx.run("DELETE FROM job WHERE queue = 'webhook' AND line = @id", { id });
      return true;
    },
  };
}

/** Makes transactions that count what an account has take turns. */
async function lockAccount(tx: Transaction, accountId: string): Promise<void> {
  await tx.run("SELECT 1 FROM account WHERE id = @accountId FOR NO KEY UPDATE", { accountId });
}

function columnsOf(endpoint: Omit<NewEndpoint, "nowIso">, nowIso: string): Parameters {
  return {
    ...endpoint,
    nowIso,
    events: JSON.stringify(endpoint.events),
  };
}

function deliveriesOn(tx: Transaction): Pick<WebhookRecords, "addDelivery" | "settleDelivery"> {
  return {
    addDelivery: (delivery) => addDelivery(tx, delivery),
    settleDelivery: (job, outcome) => settle(tx, job, outcome),
  };
}

async function settle(tx: Transaction, job: Lease, outcome: DeliveryOutcome): Promise<void> {
  const queue = queueOn(tx);
  const delivery = await tx.get<{
    readonly line: string;
    readonly account_id: string;
    readonly updated_at: string | null;
    readonly url: string | null;
  }>(
    `SELECT line, job.account_id, updated_at, url FROM job LEFT JOIN webhook_endpoint ON webhook_endpoint.id = line
    WHERE job.number = @number`,
    { number: job.number },
  );
  if (delivery === undefined) return;
  const { line: id, account_id: accountId, updated_at: updatedAt, url } = delivery;
  const { kind, endpointState, nowIso } = outcome;
  if (kind === "delivered") {
    if (await queue.complete(job))
      await tx.run("UPDATE webhook_endpoint SET delivered_at = @nowIso, problem = NULL WHERE id = @id", {
        nowIso,
        id,
      });
    return;
  }
  if (
    endpointState !== undefined &&
    endpointState !== stateOf({ updatedAt: updatedAt ?? "", url: url ?? "" })
  ) {
    await queue.postpone(job, { dueMs: 0, nowMs: 0, counts: true });
    return;
  }
  const { problem } = outcome;
  const note = (disable: boolean): Promise<number> =>
    tx.run(
      "UPDATE webhook_endpoint SET problem = @problem, enabled = enabled AND NOT @disable::boolean WHERE id = @id",
      {
        problem,
        disable,
        id,
      },
    );
  if (kind === "retry") {
    if (await queue.postpone(job, { dueMs: outcome.dueMs, nowMs: outcome.nowMs, counts: true }))
      await note(false);
  } else if (await queue.fail(job)) {
    await note(outcome.disable);
    await trimFailed(tx, accountId);
  }
}
