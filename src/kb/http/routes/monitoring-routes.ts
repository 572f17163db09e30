import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { Refusal } from "../../resources/refusal.ts";
import { HEALTH_PATH } from "./health-route.ts";
import type { Health } from "./health-route.ts";
import { routeConfig, sendJson } from "../operation/operation.ts";
import { storeDamaged } from "../operation/status.ts";

/** Metrics in their text form. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/** Liveness: the process answers. */
export const LIVE_PATH = "/healthz";
/** Readiness: the service accepts requests. */
export const READY_PATH = "/readyz";
/** Metrics. */
const METRICS_PATH = "/metrics";

const MONITORING = new Set<string | undefined>([HEALTH_PATH, LIVE_PATH, READY_PATH, METRICS_PATH]);

/** Reports whether a route is for monitoring: answered in every state, without a key, and not counted. */
export function isMonitoring(url: string | undefined): boolean {
  return MONITORING.has(url);
}

/** Adds `GET /healthz`, `/readyz` and, if there are metrics, `/metrics` (additions). */
export function addMonitoringRoutes(
  server: FastifyInstance,
  statusNow: () => Health["status"],
  metrics: (() => Promise<MetricsText>) | undefined,
): void {
  const docOf = (summary: string, status: string, id: string) => ({
    summary,
    tag: "Service",
    answers: {
      200: z.object({ success: z.literal(true), status: z.literal(status) }).meta({ id }),
    },
  });
  const live = docOf("Whether the process answers at all.", "alive", "LiveAnswer");
  server.get(LIVE_PATH, { config: routeConfig("none", live) }, async (_request, reply) =>
    sendJson(reply, 200, JSON.stringify({ success: true, status: "alive" })),
  );
  const ready = docOf(
    "Whether requests are accepted; 503 while the service starts or shuts down, or its store is damaged or failing.",
    "ready",
    "ReadyAnswer",
  );
  server.get(READY_PATH, { config: routeConfig("none", ready) }, async (_request, reply) => {
    const state = statusNow();
    if (state === "starting") throw new Refusal("starting", "The service is starting.");
    if (state === "draining") throw new Refusal("draining", "The service is shutting down.");
    if (state === "damaged") throw storeDamaged(undefined);
    if (state === "failing") throw new Refusal("store_busy", "The store does not work at present.");
    return sendJson(reply, 200, JSON.stringify({ success: true, status: "ready" }));
  });
  if (metrics === undefined) return;
  const doc = {
    summary: "Metrics of the process, in the text format of Prometheus.",
    tag: "Service",
    answers: { 200: "file" as const },
  };
  server.get(METRICS_PATH, { config: routeConfig("none", doc) }, async (_request, reply) => {
    const { contentType, text } = await metrics();
    return reply.code(200).header("content-type", contentType).send(text);
  });
}
