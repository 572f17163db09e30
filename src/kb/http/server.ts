import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import Fastify, { errorCodes } from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bytesOf } from "../../lib/byte-block.ts";
import { within } from "../../lib/deadline.ts";
import { codeOf } from "../../lib/failure.ts";
import { openLoopTurns } from "../../lib/loop-turns.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER, REQUEST_ID_HEADER, ROUTES } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Chat } from "../chat/chat.ts";
import type { ChatJobRunner } from "../chat/job-runner.ts";
import { addAgentRoutes } from "./agent-routes.ts";
import type { RequestKind } from "./admission.ts";
import { addBatchRoutes } from "./batch-routes.ts";
import { addBulkRoutes } from "./bulk-routes.ts";
import { addEventRoutes } from "./event-routes.ts";
import { addChangeRoutes } from "./change-routes.ts";
import { addChatRoutes } from "./chat-routes.ts";
import { answerClientError } from "./client-error.ts";
import { limitConnections, limitUnanswered } from "./connection-limit.ts";
import type { ConsoleFile } from "../console/pages.ts";
import { addConsoleRoutes } from "./console-routes.ts";
import { addDaemonRoutes } from "./daemon-routes.ts";
import type { DaemonHandlers } from "./daemon-routes.ts";
import { addFileRoutes } from "./file-routes.ts";
import { addEraseRoutes } from "./erase-routes.ts";
import { addGrantRoutes } from "./grant-routes.ts";
import { addKeyRoutes } from "./key-routes.ts";
import { addHealthRoute } from "./health-route.ts";
import type { Health } from "./health-route.ts";
import { openJsonReader } from "./json-reader.ts";
import type { JsonReader } from "./json-reader.ts";
import { addMonitoringRoutes, isMonitoring } from "./monitoring-routes.ts";
import type { MetricsText } from "./monitoring-routes.ts";
import { isDisconnect } from "./disconnect.ts";
import { JSON_TYPE, sendJson } from "./operation.ts";
import type { HttpParts } from "./operation.ts";
import { addOpenApiRoute } from "./openapi-route.ts";
import { addPreviewRoutes } from "./preview-routes.ts";
import { addResourceRoutes } from "./resource-routes.ts";
import { addUsageRoutes } from "./usage-routes.ts";
import { watchRoutes } from "./route-table.ts";
import type { RouteTable } from "./route-table.ts";
import { addSearchRoutes } from "./search-routes.ts";
import { addSessionRoutes } from "./session-routes.ts";
import { isShed, openShedLog } from "./shed-log.ts";
import type { ShedLog } from "./shed-log.ts";
import { limitSmallPieces } from "./small-pieces.ts";
import { refusalAnswer } from "./status.ts";
import { trackHandlers, trackRequest, workOn } from "./in-flight.ts";
import { addThreadRoutes } from "./thread-routes.ts";
import { addUploadRoutes } from "./upload-routes.ts";
import { oneOf } from "./validate.ts";
import { addQueuesRoute, queueReader, addWebhookRoutes } from "./webhook-routes.ts";

/** Maximum size of a body relative to its text: JSON escapes every line break and quote. */
const ESCAPES_FACTOR = 1.25;
/** Interval at which Node checks for requests that take too long to arrive; its own default. */
const TIMEOUT_CHECK_MS = 30_000;
/** Maximum time to receive the headers, so that a client that sends them slowly does not hold a socket. */
const HEADERS_TIMEOUT_MS = 60_000;
/** Longer than the idle time of common proxies and clients, so that they close first and no request hits a closing socket. */
const KEEP_ALIVE_MS = 72_000;
/** Maximum open sockets; each costs memory even when idle. */
const CONNECTIONS_MAX = 2048;
/** Longest path parameter: the name of an uploaded file, with up to nine characters per character of the name. */
const PARAM_CHARS_MAX = 2048;
/** Maximum time for a small body to arrive. */
const SHORT_BODY_MS = 30_000;
/** Maximum body of operations with a small one or none. */
const SMALL_BODY_BYTES = 128 * 1024;
/** Longest time of a turn of the event loop in which requests begin. A request takes about 0.1 ms before its first wait. */
const BEGIN_MS = 1;

/** Routes that not every service has. */
export interface OptionalRoutes {
  readonly metrics?: (() => Promise<MetricsText>) | undefined;
  readonly consoleFiles?: readonly ConsoleFile[] | undefined;
  readonly daemon?: DaemonHandlers | undefined;
}

/** Builds the HTTP server of the operations. Call `listen` on it to start. */
export async function buildServer(
  parts: HttpParts,
  webhooks: Webhooks,
  { chat, jobs }: { readonly chat: Chat; readonly jobs: Pick<ChatJobRunner, "figures"> },
  health: () => Health,
  { metrics, consoleFiles = [], daemon }: OptionalRoutes,
): Promise<FastifyInstance> {
  const answering = new WeakSet<Socket>();
  const untimed = new WeakSet<Socket>();
  const reporting = { log: parts.log, reportShed: openShedLog(parts.log, () => performance.now()) };
  const server = Fastify({
    logger: false, // `admitRequests` logs requests, in one line and without secrets
    genReqId: newRequestId,
    bodyLimit: SMALL_BODY_BYTES,
    requestTimeout: parts.requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    return503OnClosing: false, // the admission does, in the API's error format
    routerOptions: { maxParamLength: PARAM_CHARS_MAX },
    frameworkErrors: (error, request, reply) => {
      answerError(reporting, error, request, reply);
    },
    clientErrorHandler: (error, socket) => {
      // Node reports a late request once; if the socket is left open, the request continues.
      const isLate = codeOf(error) === "ERR_HTTP_REQUEST_TIMEOUT";
      if (isLate && untimed.has(socket)) return;
      const requestId = newRequestId();
      const code = answerClientError(error, socket, answering.has(socket), requestId);
      if (code !== undefined) parts.log.debug({ requestId, code }, "request refused");
    },
    http: {
      requireHostHeader: false, // checked below, with the API's error format
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, parts.requestMs),
    },
  });
  server.server.on("checkExpectation", refuseExpectation);
  beginInTurns(server, parts, reporting.reportShed);
  server.server.maxConnections = CONNECTIONS_MAX;
  limitConnections(server.server, parts.connectionsPerAddress, () => {
    const message = `more than ${parts.connectionsPerAddress} connections are open from one address`;
    reporting.reportShed("too_many_connections", message);
  });
  server.server.headersTimeout = Math.min(HEADERS_TIMEOUT_MS, parts.requestMs);
  server.decorateRequest("caller", null);
  server.decorateRequest("bodySha256", null);

  const table = watchRoutes(server);
  server.decorate("routeTable", table);
  server.setErrorHandler((error, request, reply) => {
    answerError(reporting, error, request, reply);
  });
  server.addHook("onRequest", (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    done();
  });
  server.addHook("onRequest", (request, _reply, done) => {
    const { httpVersion, headers } = request.raw;
    const isMissing = headers.host === undefined && httpVersion === "1.1";
    done(isMissing ? new Refusal("invalid_request", "The request carries no Host header.") : undefined);
  });
  const json = replaceJsonParser(server);
  admitRequests(server, parts);
  endStalledAnswers(server, parts.answerIdleMs);
  server.addHook("onSend", (request, reply, payload, done) => {
    const { socket } = request.raw;
    answering.add(socket);
    reply.raw.once("close", () => answering.delete(socket));
    done(null, payload);
  });
  // Refused before the body is read.
  server.addHook("onRequest", async (request, reply) => {
    if (request.is404) refuseRoute(table, request, reply);
  });

  addHealthRoute(server, health);
  addMonitoringRoutes(server, () => health().status, metrics);
  const textBytesMax = Math.ceil(parts.kb.limits.contentBytes * ESCAPES_FACTOR);
  addResourceRoutes(server, parts, textBytesMax);
  addBatchRoutes(server, parts);
  addPreviewRoutes(server, parts, textBytesMax);
  addSearchRoutes(server, parts);
  addUsageRoutes(server, parts);
  addChangeRoutes(server, parts);
  addFileRoutes(server, parts);
  addWebhookRoutes(server, parts, webhooks);
  addStateRoutes(server, parts, jobs);
  await server.register((scope) => addBulkRoutes(scope, parts, json, textBytesMax, untimed));
  await server.register((scope) => addUploadRoutes(scope, parts, chat));
  addAnsweringRoutes(server, parts, chat);
  addEraseRoutes(server, parts);
  addKeyRoutes(server, parts);
  addSessionRoutes(server, parts);
  addConsoleRoutes(server, parts, consoleFiles);
  if (daemon !== undefined) addDaemonRoutes(server, parts, daemon);
  addGrantRoutes(server, parts);
  addOpenApiRoute(server, table, () => health().version);
  await server.ready();
  return server;
}

/** Adds the routes of chat completion, threads and agents. */
function addAnsweringRoutes(server: FastifyInstance, parts: HttpParts, chat: Chat): void {
  addChatRoutes(server, parts, chat);
  addAgentRoutes(server, parts, chat.agents);
  addThreadRoutes(server, parts);
}

/** Adds the routes that show the queues of an account, now and as they change. */
function addStateRoutes(
  server: FastifyInstance,
  parts: HttpParts,
  jobs: Pick<ChatJobRunner, "figures">,
): void {
  const queuesOf = queueReader(parts.kb, (accountId) => jobs.figures(accountId));
  addQueuesRoute(server, parts, queuesOf);
  addEventRoutes(server, parts, queuesOf);
}

/**
 * Lets the requests of accounts begin in turns. Hundreds of one account may arrive in one turn of the event loop, and would
 * all begin before the next request of another account is read. A key counts for its account once it was checked; before,
 * the client's address counts.
 */
function beginInTurns(
  { server }: FastifyInstance,
  { keyring }: Pick<HttpParts, "keyring">,
  reportShed: ShedLog,
): void {
  const mayBegin = limitUnanswered((message) => reportShed("too_many_requests", message));
  const turns = openLoopTurns({ sliceMs: BEGIN_MS });
  const handlers = server.listeners("request") as ((...given: [IncomingMessage, ServerResponse]) => void)[]; // Node's own event
  server.removeAllListeners("request");
  server.on("request", (request, response) => {
    if (!mayBegin(request, response)) return;
    limitSmallPieces(request, response, (message) => reportShed("small_pieces", message));
    const account = keyring.accountOf(request.headers[KEY_HEADER]);
    turns.run([account ?? `address ${request.socket.remoteAddress}`], () => {
      // A client that disconnected while its request waited gets no answer.
      if (!response.destroyed) for (const handle of handlers) handle(request, response);
    });
  });
}

/** Returns a random id: clients may report ids long after a restart, and a service's log must not contain one twice. */
function newRequestId(): string {
  return randomUUID();
}

/** Refuses an `Expect` other than `100-continue`, which Node would answer with an empty body. */
function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refusal = new Refusal("expectation_failed", "The service supports no expectation but 100-continue.");
  const { status, body } = refusalAnswer(refusal);
  response.statusCode = status;
  response.setHeader("content-type", JSON_TYPE);
  response.setHeader(REQUEST_ID_HEADER, newRequestId());
  response.end(JSON.stringify(body));
}

/** Replaces Fastify's parsers by one for JSON. */
function replaceJsonParser(server: FastifyInstance): JsonReader {
  const reader = openJsonReader();
  server.addHook("onClose", () => reader.close());
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    "application/json",
    async (request: FastifyRequest, payload: IncomingMessage) => {
      const bytes = await jsonBytes(request, payload);
      const account = request.caller?.accountId ?? "";
      if (request.headers[IDEMPOTENCY_HEADER] === undefined)
        return workOn(request, () => reader.parse(bytes, account));
      const { value, sha256 } = await workOn(request, () => reader.parseHashed(bytes, account));
      request.bodySha256 = sha256;
      return value;
    },
  );
  return reader;
}

/**
 * Reads the body into one buffer; Fastify would hold every piece. Its memory is counted as it arrives. A small body must
 * arrive within SHORT_BODY_MS; a long one has the time of a request.
 */
async function jsonBytes(request: FastifyRequest, payload: Readable): Promise<Buffer> {
  const { headers, routeOptions, inFlight } = request;
  const limit = routeOptions.bodyLimit ?? SMALL_BODY_BYTES;
  const length = headers["content-length"];
  const declared = length === undefined ? limit : Number(length);
  if (declared > limit) throw new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
  const read = bytesOf(payload, limit, declared, (bytes) => inFlight?.hold(bytes)).catch((cause: unknown) => {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal("invalid_body", "The client interrupted the body.", { cause });
  });
  const bytes = await (limit > SMALL_BODY_BYTES ? read : within(read, SHORT_BODY_MS, lateBody));
  if (bytes === undefined) throw new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE();
  return bytes;
}

function lateBody(): Refusal {
  return new Refusal("request_timeout", `The body did not arrive within ${SHORT_BODY_MS / 1000} s.`);
}

/** Refuses requests while the service starts or shuts down, reports each request at its end, and bounds those in flight. */
function admitRequests(server: FastifyInstance, { admission, log, onAnswered }: HttpParts): void {
  trackHandlers(server);
  server.addHook("onRequest", (request, reply, done) => {
    // Monitoring is answered in every state.
    if (isMonitoring(request.routeOptions.url)) {
      done();
      return;
    }
    const startMs = performance.now();
    reply.raw.once("close", () => {
      onAnswered?.(operationOf(request), sentStatus(reply), (performance.now() - startMs) / 1000);
      if (request.inFlight !== null && log.isLevelEnabled("debug"))
        log.debug(requestLine(request, reply, startMs), "request");
    });
    try {
      admission.refuseUnlessReady();
      done();
    } catch (error) {
      // Otherwise a client could reuse the connection to a service that is shutting down.
      if (admission.state() === "draining") reply.header("connection", "close");
      done(error as Error); // it throws only Refusals
    }
  });
  // Runs after the route's own hooks, so that a request counts only after its key is checked.
  server.addHook("onRoute", (route) => {
    if (isMonitoring(route.url)) return;
    const enter = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
      const account = request.caller?.accountId ?? `address ${request.ip}`;
      // It is in flight until its work ends, which continues if the client disconnects.
      const inFlight = trackRequest(request.id, admission.enter(account, kindOf(request)));
      request.inFlight = inFlight;
      reply.raw.once("close", () => inFlight.close());
      // The event has passed if the client disconnected while the key was checked.
      if (reply.raw.destroyed) inFlight.close();
    };
    route.onRequest = [...[route.onRequest ?? []].flat(), enter];
  });
}

/**
 * Closes the connection of a client that does not read its answer; the request would be in flight for ever. If no data
 * waits to be read, the service's own work takes that long, for example in a bulk create.
 */
function endStalledAnswers(server: FastifyInstance, answerIdleMs: number): void {
  server.addHook("onSend", (request, reply, payload, done) => {
    const { socket } = request.raw;
    reply.raw.setTimeout(answerIdleMs, () => {
      if (socket.writableLength > 0 || reply.raw.writableLength > 0) socket.destroy();
    });
    done(null, payload);
  });
}

/** Returns the kind of a request. Creates, updates and uploads bring documents. */
function kindOf({ method, routeOptions }: FastifyRequest): RequestKind {
  const { config, bodyLimit } = routeOptions;
  if (config.requestKind !== undefined) return config.requestKind;
  if (config.scope === "write" && method !== "DELETE") return "document";
  return bodyLimit > SMALL_BODY_BYTES ? "long" : "short";
}

/** Returns method and path as registered, so that the number of operations is bounded whatever clients send. */
function operationOf({ method, routeOptions }: FastifyRequest): string {
  return routeOptions.url === undefined ? "other" : `${method} ${routeOptions.url}`;
}

/** Status of the response; undefined if the client disconnected before there was one, when `statusCode` is still 200. */
function sentStatus({ raw, statusCode }: FastifyReply): number | undefined {
  return raw.headersSent ? statusCode : undefined;
}

/** Builds the log line of a request. Its path is the route's pattern, because a real path may contain a file's secret token. */
function requestLine(request: FastifyRequest, reply: FastifyReply, startMs: number): object {
  return {
    requestId: request.id,
    method: request.method,
    route: request.routeOptions.url,
    status: sentStatus(reply),
    ms: Math.round((performance.now() - startMs) * 10) / 10,
    accountId: request.caller?.accountId,
  };
}

/** Where failed and refused requests are logged. */
interface Reporting extends Pick<HttpParts, "log"> {
  readonly reportShed: ShedLog;
}

function answerError(
  { log, reportShed }: Reporting,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { status, retryAfterSeconds, body } = refusalAnswer(error);
  const line = { requestId: request.id, method: request.method, route: request.routeOptions.url, status };
  if (isDisconnect(error))
    log.debug({ ...line, status: undefined }, "the client disconnected before its answer");
  else if (isShed(body.error.code)) reportShed(body.error.code, body.message);
  // `onDamage` has reported a damaged store, and each request would report the same.
  else if (status >= 500 && body.error.code !== "draining" && body.error.code !== "store_damaged")
    log.error({ ...line, err: error }, "request failed");
  else log.debug({ ...line, code: body.error.code }, "request refused");
  // Requests that Fastify refuses before routing have run no hook.
  reply.header(REQUEST_ID_HEADER, request.id);
  if (retryAfterSeconds !== undefined) reply.header("retry-after", String(retryAfterSeconds));
  // Fastify closes the connection when it refuses a body; a client that is still sending would see a reset instead of the
  // answer. On an open connection Node discards the rest, for as long as a request may take.
  if (body.error.code === "request_timeout") reply.header("connection", "close");
  else if (body.error.code !== "draining") reply.removeHeader("connection");
  void sendJson(reply, status, JSON.stringify(body));
}

function refuseRoute(table: RouteTable, request: FastifyRequest, reply: FastifyReply): never {
  const path = request.url.split("?", 1)[0] ?? "";
  const methods = table.methodsOf(path);
  if (methods.length === 0) {
    throw new Refusal("route_not_found", "There is no operation at this address.", {
      hint: `GET ${ROUTES.openApi} lists the operations.`,
    });
  }
  reply.header("allow", methods.join(", "));
  throw new Refusal(
    "method_not_allowed",
    `This address does not support ${request.method}, expected ${oneOf(methods)}.`,
  );
}
