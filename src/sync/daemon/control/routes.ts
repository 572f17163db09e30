import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RequestListener } from "node:http";
import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { KbsyncError } from "../../../lib/failure.ts";
import { schemaProblems } from "../../../lib/schema-issue.ts";
import { DAEMON_API, DAEMON_PREFIX, type DaemonOperation, restarts } from "../../../wire/daemon.ts";
import { LINES_TYPE } from "./address.ts";
import { failureOf } from "./failure.ts";
import type { OperationContext, DaemonOperations } from "./operations.ts";

/** Longest body: a path of 4,096 bytes, each escaped to six characters, and a reserve. */
const BODY_BYTES_MAX = 64 * 1024;
/** Maximum size of unread lines. A client that follows the log and never reads is disconnected. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;

/** Routes requests of Node's server to a daemon's operations. Requests in flight end when `stopping` aborts. */
export async function openRouting(
  operations: DaemonOperations,
  stopping: AbortSignal,
): Promise<RequestListener> {
  const server = Fastify({ bodyLimit: BODY_BYTES_MAX, exposeHeadRoutes: false });
  server.setErrorHandler((error, _request, reply) => answerFailure(error, reply));
  const handlers = daemonHandlers(operations, stopping);
  for (const [name, { method }] of Object.entries(DAEMON_API)) {
    // A key of the table.
    const handler = handlers[name as DaemonOperation];
    server.route({ method, url: `${DAEMON_PREFIX}/${name}`, handler });
  }
  server.setNotFoundHandler((_request, reply) => {
    const unknown = new KbsyncError("The daemon has no such operation.", { code: "route_not_found" });
    answerFailure(unknown, reply);
  });
  await server.ready();
  return (request, response) => server.routing(request, response);
}

/** Handlers of the operations, for any server. They answer failures themselves. */
export type DaemonHandlers = Readonly<
  Record<DaemonOperation, (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>>
>;

/** Returns the handlers of a daemon's operations. Requests in flight end when `stopping` aborts. */
export function daemonHandlers(operations: DaemonOperations, stopping: AbortSignal): DaemonHandlers {
  const handlers = Object.entries(DAEMON_API).map(([name, { method, request: schema }]) => {
    // The table pairs each operation with its request and its answer.
    const operation = operations[name as DaemonOperation] as (
      request: unknown,
      context: OperationContext<unknown>,
    ) => Promise<unknown>;
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const input = (method === "GET" ? request.query : request.body) ?? {};
      const parsed = schema.safeParse(input);
      if (!parsed.success) return answerFailure(invalid(schemaProblems(parsed.error, input)[0]), reply);
      const disconnected = new AbortController();
      reply.raw.once("close", () => disconnected.abort(new Error("the client disconnected")));
      const signal = AbortSignal.any([disconnected.signal, stopping]);
      const lines = openLines(reply, signal);
      try {
        if (method === "POST") await refuseDisconnected(request, signal);
        const answer = await operation(parsed.data, { signal, ...lines });
        // An operation does not distinguish its end from an interruption by the stop.
        if (!restarts(name as DaemonOperation)) stopping.throwIfAborted();
        if (!reply.raw.headersSent) return answer;
        lines.emit(answer);
        reply.raw.end();
      } catch (error) {
        const isCutOff = stopping.aborted && !restarts(name as DaemonOperation);
        const failure = isCutOff ? (stopping.reason as unknown) : error;
        if (!reply.raw.headersSent) return answerFailure(failure, reply);
        lines.emit(failureOf(failure).body);
        reply.raw.end();
      }
      return reply;
    };
    return [name, handler];
  });
  return Object.fromEntries(handlers) as DaemonHandlers; // the names of DAEMON_API
}

/** Throws if the client gave up before: a stopped process takes its requests late, and the client has reported that it did not. */
async function refuseDisconnected({ raw: { socket } }: FastifyRequest, signal: AbortSignal): Promise<void> {
  // The end of the connection is read in the turn after the request.
  for (let turns = 0; turns < 2; turns += 1) await nextTurn();
  if (socket.destroyed) throw new Error("the client disconnected");
  signal.throwIfAborted();
}

/** Opens an answer in lines of JSON. */
function openLines(reply: FastifyReply, signal: AbortSignal): Omit<OperationContext<unknown>, "signal"> {
  const { raw } = reply;
  const begin = (): void => {
    if (raw.headersSent || raw.destroyed) return;
    reply.hijack();
    raw.setHeader("content-type", LINES_TYPE);
    raw.writeHead(200);
    raw.flushHeaders();
  };
  return {
    begin,
    emit: (line) => {
      begin();
      if (!raw.destroyed) raw.write(`${JSON.stringify(line)}\n`);
      if (raw.writableLength > UNREAD_BYTES_MAX) raw.destroy();
    },
    drained: async () => {
      if (raw.writableNeedDrain && !raw.destroyed) await once(raw, "drain", { signal });
    },
  };
}

function answerFailure(error: unknown, reply: FastifyReply): FastifyReply {
  const { status, body } = failureOf(error);
  return reply.code(status).send(body);
}

function invalid(problem: { readonly path: string; readonly message: string } | undefined): KbsyncError {
  return new KbsyncError(`${problem?.path ?? ""}: ${problem?.message ?? "invalid"}`, {
    code: "invalid_field",
    ...(problem !== undefined && { subject: problem.path }),
  });
}
