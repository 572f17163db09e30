import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { Refusal } from "../resources/refusal.ts";
import { HEALTH_PATH } from "./health-route.ts";
import type { Health } from "./health-route.ts";
import { routeConfig, sendJson } from "./operation.ts";
import { storeDamaged } from "./status.ts";

/** Metrics as they are served. */
export interface MetricsText {
  readonly contentType: string;
  readonly text: string;
}

/** The process answers. */
export const LIVE_PATH = "/healthz";
/** Requests are taken. */
export const READY_PATH = "/readyz";
/** What monitoring reads. */
export const METRICS_PATH = "/metrics";

const MONITORING = new Set<string | undefined>([HEALTH_PATH, LIVE_PATH, READY_PATH, METRICS_PATH]);

/** Whether a route is for who watches over the service: answered in every state, without a key, and counted nowhere. */
export function isMonitoring(url: string | undefined): boolean {
  return MONITORING.has(url);
}

/** `GET /healthz`, `/readyz` and, where there are metrics, `/metrics`: additions. */
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
    "Whether requests are taken; 503 while the service starts or shuts down, or its store is damaged or does not work.",
    "ready",
    "ReadyAnswer",
  );
  server.get(READY_PATH, { config: routeConfig("none", ready) }, async (_request, reply) => {
    const state = statusNow();
    if (state === "starting") throw new Refusal("starting", "The service is starting.");
    if (state === "draining") throw new Refusal("draining", "The service is shutting down.");
    if (state === "damaged") throw storeDamaged(undefined);
    if (state === "failing") throw new Refusal("store_busy", "The store is being opened again.");
    return sendJson(reply, 200, JSON.stringify({ success: true, status: "ready" }));
  });
  if (metrics === undefined) return;
  const doc = {
    summary: "What the process measures, in the text form of Prometheus.",
    tag: "Service",
    answers: { 200: "file" as const },
  };
  server.get(METRICS_PATH, { config: routeConfig("none", doc) }, async (_request, reply) => {
    const { contentType, text } = await metrics();
    return reply.code(200).header("content-type", contentType).send(text);
  });
}
