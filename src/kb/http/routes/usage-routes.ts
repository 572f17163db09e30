import { statfs } from "node:fs/promises";
import type { FastifyInstance } from "fastify";
import { DiskAnswer } from "../../../wire/disk.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { UsageAnswer, UsageQuery } from "../../../wire/usage.ts";
import { firstHour, HOUR_MS, seriesOf } from "../../usage/series.ts";
import { Refusal } from "../../resources/refusal.ts";
import { addOperation, answer } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readInput } from "../body/validate.ts";

/** Adds the use of the account over time, and the space on the service's disk (additions). */
export function addUsageRoutes(server: FastifyInstance, parts: HttpParts): void {
  addDiskRoute(server, parts);
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
      const spendingOf = (account: string | undefined) =>
        records.spendingSince({ accountId: account, fromDay });
      // The person who runs the service pays for the models of all.
      const isPayer = accountId === parts.localAccountId && parts.hasBudget;
      const [hours, own, all] = await Promise.all([
        records.usage({ accountId, fromHour }),
        parts.hasBudget ? spendingOf(accountId) : null,
        isPayer ? spendingOf(undefined) : null,
      ]);
      const points = seriesOf(query, hours, { own, all }, atMs);
      return answer(200, "Usage fetched successfully", { points });
    },
  });
}

/** The disk concerns the machine, so accounts other than that of the machine do not see it. */
function addDiskRoute(server: FastifyInstance, parts: HttpParts): void {
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.disk,
    scope: "admin",
    doc: {
      summary: "Returns the space on the disk of the service, to the account `local` alone.",
      tag: "Service",
      answers: { 200: DiskAnswer },
    },
    handle: async (_request, accountId) => {
      if (accountId !== parts.localAccountId)
        throw new Refusal("route_not_found", "There is no operation at this address.");
      const { bavail, blocks, bsize } = await statfs(parts.stateDir);
      return answer(200, "Disk fetched successfully", {
        freeBytes: bavail * bsize,
        totalBytes: blocks * bsize,
      });
    },
  });
}
