import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { openLoopTurns } from "../../lib/loop-turns.ts";
import { KEY_HEADER, REQUEST_ID_HEADER } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Chat } from "../chat/chat.ts";
import type { ChatJobRunner } from "../chat/job-runner.ts";
import { addAgentRoutes } from "./routes/agent-routes.ts";
import { addEventRoutes } from "./routes/event-routes.ts";
import { addChatRoutes } from "./routes/chat-routes.ts";
import { answerClientError } from "./client-error.ts";
import { limitConnections, limitUnanswered } from "./limits/connection-limit.ts";
import type { ConsoleFile } from "../console/pages.ts";
import { addConsoleRoutes } from "./routes/console-routes.ts";
import { addDaemonRoutes, type DaemonHandlers } from "./routes/daemon-routes.ts";
import { addFileRoutes } from "./routes/file-routes.ts";
import { addKeyRoutes } from "./routes/key-routes.ts";
import { addHealthRoute, type Health } from "./routes/health-route.ts";
import { addMonitoringRoutes, type MetricsText } from "./routes/monitoring-routes.ts";
import type { HttpParts } from "./operation/operation.ts";
import { addOpenApiRoute } from "./routes/openapi.ts";
import { addResourceReadRoutes } from "./routes/resource-read-routes.ts";
import { addResourceRoutes } from "./routes/resource-routes.ts";
import { watchRoutes } from "./operation/route-table.ts";
import { addSearchRoutes } from "./routes/search-routes.ts";
import { addSessionRoutes } from "./routes/session-routes.ts";
import { openShedLog, type ShedLog } from "./limits/shed-log.ts";
import { limitSmallPieces } from "./limits/small-pieces.ts";
import { addThreadRoutes } from "./routes/thread-routes.ts";
import { addUploadRoutes } from "./routes/upload-routes.ts";
import { addWebhookRoutes } from "./routes/webhook-routes.ts";
import { newRequestId, answerError, refuseExpectation, refuseRoute } from "./error-answers.ts";
import { SMALL_BODY_BYTES, replaceJsonParser } from "./body/json-parser.ts";
import { admitRequests, endStalledAnswers } from "./request-admission.ts";

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
  replaceJsonParser(server);
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
  addDocumentRoutes(server, parts, textBytesMax);
  addSearchRoutes(server, parts);
  addFileRoutes(server, parts);
  addWebhookRoutes(server, parts, webhooks);
  addEventRoutes(server, parts, (accountId) => jobs.figures(accountId));
  await server.register((scope) => addUploadRoutes(scope, parts, chat));
  addAnsweringRoutes(server, parts, chat);
  addKeyRoutes(server, parts);
  addSessionRoutes(server, parts);
  addConsoleRoutes(server, parts, consoleFiles);
  if (daemon !== undefined) addDaemonRoutes(server, parts, daemon);
  addOpenApiRoute(server, table, () => health().version);
  await server.ready();
  return server;
}

/** Adds the routes of resources. */
function addDocumentRoutes(server: FastifyInstance, parts: HttpParts, textBytesMax: number): void {
  addResourceRoutes(server, parts, textBytesMax);
  addResourceReadRoutes(server, parts);
}

/** Adds the routes of chat completion, threads and agents. */
function addAnsweringRoutes(server: FastifyInstance, parts: HttpParts, chat: Chat): void {
  addChatRoutes(server, parts, chat);
  addAgentRoutes(server, parts, chat.agents);
  addThreadRoutes(server, parts);
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
