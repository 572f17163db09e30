import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { REQUEST_ID_HEADER, ROUTES } from "../../wire/routes.ts";
import { Refusal } from "../resources/refusal.ts";
import { isDisconnect } from "./limits/disconnect.ts";
import { JSON_TYPE, sendJson, type HttpParts } from "./operation/operation.ts";
import type { RouteTable } from "./operation/route-table.ts";
import { isShed, type ShedLog } from "./limits/shed-log.ts";
import { refusalAnswer } from "./operation/status.ts";
import { oneOf } from "./body/validate.ts";

/** Returns a random id: clients may report ids long after a restart, and a service's log must not contain one twice. */
export function newRequestId(): string {
  return randomUUID();
}

/** Refuses an `Expect` other than `100-continue`, which Node would answer with an empty body. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const refusal = new Refusal("expectation_failed", "The service supports no expectation but 100-continue.");
  const { status, body } = refusalAnswer(refusal);
  response.statusCode = status;
  response.setHeader("content-type", JSON_TYPE);
  response.setHeader(REQUEST_ID_HEADER, newRequestId());
  response.end(JSON.stringify(body));
}

/** Where failed and refused requests are logged. */
interface Reporting extends Pick<HttpParts, "log"> {
  readonly reportShed: ShedLog;
}

/** Answers a request that failed or was refused, and logs it. */
export function answerError(
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

/** Refuses a request for an address or a method that no operation has. */
export function refuseRoute(table: RouteTable, request: FastifyRequest, reply: FastifyReply): never {
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
