import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { ROUTES } from "../../wire/routes.ts";
import { openApiDocument } from "./openapi.ts";
import { routeConfig, sendJson } from "./operation.ts";
import type { RouteTable } from "./route-table.ts";

const AnyObject = z.record(z.string(), z.unknown());
const Document = z
  .object({
    openapi: z.string(),
    info: AnyObject,
    servers: z.array(AnyObject),
    paths: AnyObject,
    components: AnyObject,
  })
  .meta({ id: "ApiDocument" });

/** `GET /openapi.json`, an addition: describes this API to programs. Needs no key, as it says no more than docs/API.md. */
export function addOpenApiRoute(server: FastifyInstance, table: RouteTable, version: () => string): void {
  // Built at the first request, when all routes are registered; they do not change afterwards.
  let text: string | undefined;
  const doc = { summary: "This API as an OpenAPI document.", tag: "Service", answers: { 200: Document } };
  server.get(ROUTES.openApi, { config: routeConfig("none", doc) }, async (_request, reply) => {
    text ??= JSON.stringify(openApiDocument(table.routes, version()));
    return sendJson(reply, 200, text);
  });
}
