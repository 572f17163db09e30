import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { RequestKind } from "./limits/admission.ts";
import { isMonitoring } from "./routes/monitoring-routes.ts";
import type { HttpParts } from "./operation/operation.ts";
import { trackHandlers, trackRequest } from "./limits/in-flight.ts";
import { SMALL_BODY_BYTES } from "./body/json-parser.ts";

/** Refuses requests while the service starts or shuts down, reports each request at its end, and bounds those in flight. */
export function admitRequests(server: FastifyInstance, { admission, log, onAnswered }: HttpParts): void {
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
 * waits to be read, the service's own work takes that long.
 */
export function endStalledAnswers(server: FastifyInstance, answerIdleMs: number): void {
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
