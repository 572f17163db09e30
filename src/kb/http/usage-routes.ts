import type { FastifyInstance } from "fastify";
import { ROUTES } from "../../wire/routes.ts";
import { UsageAnswer, UsageQuery } from "../../wire/usage.ts";
import { firstHour, HOUR_MS, seriesOf } from "../usage/series.ts";
import { addOperation, answer } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { readInput } from "./validate.ts";

/** Adds the use of the account over time (an addition). */
export function addUsageRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { records, usage, nowMs } = parts.kb;
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.usage,
    scope: "admin",
    doc: {
      summary: "Returns documents, searches, their latency, the queue and the cost of models by hour or day.",
      tag: "Service",
      query: UsageQuery,
      answers: { 200: UsageAnswer },
    },
    handle: async (request, accountId) => {
      const query = readInput(UsageQuery, request.query);
      await usage.flush(accountId);
      const atMs = nowMs();
      const fromHour = firstHour(query, atMs);
      const fromDay = new Date(fromHour * HOUR_MS).toISOString().slice(0, 10);
      // The person who runs the service pays for models.
      const isPayer = accountId === parts.localAccountId && parts.hasBudget;
      const [hours, spending] = await Promise.all([
        records.usage({ accountId, fromHour }),
        isPayer ? records.spendingSince(fromDay) : null,
      ]);
      return answer(200, "Usage fetched successfully", { points: seriesOf(query, hours, spending, atMs) });
    },
  });
}
