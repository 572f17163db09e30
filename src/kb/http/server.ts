import { hash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { IDEMPOTENCY_HEADER, ROUTES } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import { watchRoutes } from "./allowed-methods.ts";
import type { AllowedMethods } from "./allowed-methods.ts";
import { answerClientError } from "./client-error.ts";
import { addFileRoutes } from "./file-routes.ts";
import { addHealthRoute, HEALTH_PATH } from "./health-route.ts";
import type { Health } from "./health-route.ts";
import { openJsonReader } from "./json-reader.ts";
import { addLaterRoutes } from "./later-routes.ts";
import { JSON_TYPE, sendJson } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { addResourceRoutes } from "./resource-routes.ts";
import { addSearchRoutes } from "./search-routes.ts";
import { refusalAnswer } from "./status.ts";
import { addUploadRoutes } from "./upload-routes.ts";

/** How much longer than the text itself a body may be: JSON escapes every line break and quote of it. */
const ESCAPES_FACTOR = 1.25;
/** Time to receive a whole request; the slowest line we serve carries 32 MB in it (1 Mbit/s). */
const REQUEST_TIMEOUT_MS = 300_000;
/** Longer than the idle time of common proxies and clients, so that they close first and no request hits a closing socket. */
const KEEP_ALIVE_MS = 72_000;
/** Sockets open at once; each costs memory even when idle. */
const CONNECTIONS_MAX = 2048;
/** Longest path parameter: the name of an uploaded file, each character in up to nine. */
const PARAM_CHARS_MAX = 2048;
/** Bodies of operations that take none or a small one. */
const SMALL_BODY_BYTES = 128 * 1024;

/** Builds the HTTP side over the operations. It listens when `listen` is called on it. */
export async function buildServer(parts: HttpParts, health: () => Health): Promise<FastifyInstance> {
  const server = Fastify({
    logger: false, // requests are logged below, in one line and without secrets
    bodyLimit: SMALL_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false, // the admission does, in our words
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    frameworkErrors: (error, request, reply) => {
      answerError(parts, error, request, reply);
    },
    clientErrorHandler: answerClientError,
    http: { requireHostHeader: false }, // refused below, in our words
  });
  server.server.on("checkExpectation", refuseExpectation);
  server.server.maxConnections = CONNECTIONS_MAX;
  server.decorateRequest("caller", null);
  server.decorateRequest("bodySha256", null);

  const allowed = watchRoutes(server);
  server.setErrorHandler((error, request, reply) => {
    answerError(parts, error, request, reply);
  });
  server.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done();
  });
  server.addHook("onRequest", (request, _reply, done) => {
    const { httpVersion, headers } = request.raw;
    const lacking = headers.host === undefined && httpVersion === "1.1";
    done(lacking ? new Refusal("invalid_request", "The request carries no Host header.") : undefined);
  });
  takeJson(server);
  letIn(server, parts);
  // Before a body is read: what has no operation needs none.
  server.addHook("onRequest", async (request, reply) => {
    if (request.is404) refuseRoute(allowed, request, reply);
  });

  addHealthRoute(server, health);
  addResourceRoutes(server, parts, Math.ceil(parts.kb.limits.contentBytes * ESCAPES_FACTOR));
  addSearchRoutes(server, parts);
  addFileRoutes(server, parts);
  await server.register((scope) => addUploadRoutes(scope, parts));
  addLaterRoutes(server, parts);
  await server.ready();
  return server;
}

/** Node would answer an `Expect` other than `100-continue` itself, with an empty body. */
function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refusal = new Refusal("expectation_failed", "The service meets no expectation but 100-continue.");
  const { status, body } = refusalAnswer(refusal);
  response.statusCode = status;
  response.setHeader("content-type", JSON_TYPE);
  response.end(JSON.stringify(body));
}

/** Our own JSON parser in place of the framework's two. */
function takeJson(server: FastifyInstance): void {
  const reader = openJsonReader();
  server.addHook("onClose", () => reader.close());
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    (request: FastifyRequest, bytes: Buffer) => {
      // Before parsing, which may take the bytes away.
      if (request.headers[IDEMPOTENCY_HEADER] !== undefined)
        request.bodySha256 = hash("sha256", bytes, "hex");
      return reader.parse(bytes);
    },
  );
}

/** Bounds what is under way, refuses what comes too early or too late, and logs each request once it is over. */
function letIn(server: FastifyInstance, { admission, log }: HttpParts): void {
  server.addHook("onRequest", (request, reply, done) => {
    if (request.routeOptions.url === HEALTH_PATH) {
      done();
      return;
    }
    try {
      const leave = admission.enter(heldBytes(request));
      const startMs = performance.now();
      reply.raw.once("close", () => {
        leave();
        if (log.isLevelEnabled("debug")) log.debug(requestLine(request, reply, startMs), "request");
      });
      done();
    } catch (error) {
      // Whoever keeps the connection would wait on it for a service that is going away.
      if (admission.state() === "draining") reply.header("connection", "close");
      done(error as Error); // enter throws Refusals only
    }
  });
}

/** Bytes of memory the request's body will take. A form goes straight to the disk. */
function heldBytes(request: FastifyRequest): number {
  const { headers, routeOptions } = request;
  if (routeOptions.url === ROUTES.upload || routeOptions.url === undefined) return 0;
  if (headers["transfer-encoding"] !== undefined) return routeOptions.bodyLimit ?? SMALL_BODY_BYTES;
  return Math.min(Number(headers["content-length"] ?? 0) || 0, routeOptions.bodyLimit ?? SMALL_BODY_BYTES);
}

/** One line on a request. The path is the route's pattern: a real one may hold a file's secret token. */
function requestLine(request: FastifyRequest, reply: FastifyReply, startMs: number): object {
  return {
    requestId: request.id,
    method: request.method,
    route: request.routeOptions.url,
    status: reply.statusCode,
    ms: Math.round((performance.now() - startMs) * 10) / 10,
    accountId: request.caller?.accountId,
  };
}

function answerError({ log }: HttpParts, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, retryAfterSeconds, body } = refusalAnswer(error);
  const line = { requestId: request.id, method: request.method, route: request.routeOptions.url, status };
  if (body.error.code === "disk_full") tellFullDisk(log, line);
  else if (status >= 500 && status !== 501 && body.error.code !== "draining")
    log.error({ ...line, err: error }, "request failed");
  else log.debug({ ...line, code: body.error.code }, "request refused");
  if (retryAfterSeconds !== undefined) reply.header("retry-after", String(retryAfterSeconds));
  // The framework closes the connection where it refuses a body; a client that is still sending would see a reset and
  // never the answer. Left open, Node reads the rest away, for as long as a request may take.
  if (body.error.code !== "draining") reply.removeHeader("connection");
  void sendJson(reply, status, JSON.stringify(body));
}

/** A full disk refuses every request, which is one trouble and no defect: it is said this often, without their stacks. */
const FULL_DISK_EVERY_MS = 60_000;
const fullDiskToldMs = new WeakMap<HttpParts["log"], number>();

function tellFullDisk(log: HttpParts["log"], line: object): void {
  const nowMs = performance.now();
  const toldMs = fullDiskToldMs.get(log);
  if (toldMs !== undefined && nowMs - toldMs < FULL_DISK_EVERY_MS) return;
  fullDiskToldMs.set(log, nowMs);
  log.warn(line, "no space is left for the service: changes are refused until there is");
}

function refuseRoute(allowed: AllowedMethods, request: FastifyRequest, reply: FastifyReply): never {
  const path = request.url.split("?", 1)[0] ?? "";
  const methods = allowed.of(path);
  if (methods.length === 0) {
    throw new Refusal("route_not_found", "There is no operation at this address.");
  }
  reply.header("allow", methods.join(", "));
  throw new Refusal(
    "method_not_allowed",
    `${request.method} is not possible here; ${methods.join(", ")} is.`,
  );
}
