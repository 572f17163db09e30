import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { DAEMON_API, DAEMON_PREFIX, DaemonFailure } from "../../../wire/daemon.ts";
import type { DaemonOperation } from "../../../wire/daemon.ts";
import { Refusal } from "../../resources/refusal.ts";
import { callerOf, requireKey, routeConfig } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import type { RouteDoc } from "../operation/route-table.ts";

/** Handlers of the operations of a daemon in this process. They answer failures themselves. */
export type DaemonHandlers = Readonly<
  Record<DaemonOperation, (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>>
>;

const SUMMARIES: Readonly<Record<DaemonOperation, string>> = {
  status: "Returns the status of the daemon and of its folders.",
  why: "Explains every decision about a file.",
  files:
    "Lists files that are not searchable as they are on disk, by state, or the saved texts of deleted files.",
  log: "Lists the latest activities, or streams them and then every new one.",
  wait: "Waits until a file or all files are searchable.",
  pause: "Pauses or resumes folders.",
  reload: "Reads the configuration again.",
  add: "Adds a folder to the configuration, and syncs it; or counts what would be taken, and what is left out by which rule.",
  remove: "Removes a folder from the configuration, and deletes its documents if asked.",
  retry: "Tries failed files again now, and compares the rest with the ledger.",
  approve: "Approves held deletes.",
  erase: "Erases the text of a deleted or excluded file everywhere.",
  undelete: "Restores saved texts as files.",
  verify: "Compares the service's list with the ledger, and repairs differences if asked.",
};

/**
 * Adds the operations of the daemon in this process, for admin keys of its account alone: they name paths on this machine. Other
 * accounts get the answer of a service without a daemon.
 */
export function addDaemonRoutes(server: FastifyInstance, parts: HttpParts, handlers: DaemonHandlers): void {
  const refuseOthers = async (request: FastifyRequest): Promise<void> => {
    if (callerOf(request).accountId === parts.daemonAccountId) return;
    throw new Refusal("route_not_found", "There is no operation at this address.");
  };
  for (const name of Object.keys(DAEMON_API) as DaemonOperation[]) {
    server.route({
      method: DAEMON_API[name].method,
      url: `${DAEMON_PREFIX}/${name}`,
      onRequest: [requireKey(parts, "admin"), refuseOthers],
      config: routeConfig("admin", docOf(name), "short"),
      handler: handlers[name],
    });
  }
}

const Refused = DaemonFailure.meta({ id: "DaemonFailure" });

function docOf(name: DaemonOperation): RouteDoc {
  const { method, request, line, answer }: Described = DAEMON_API[name];
  const id = `Daemon${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return {
    summary: SUMMARIES[name],
    tag: "Daemon",
    ...(method === "GET" ? { query: request } : { body: request }),
    ...(line !== undefined && { line: line.meta({ id: `${id}Line` }) }),
    failure: Refused,
    answers: { 200: answer.meta({ id: `${id}Answer` }) },
  };
}

/** An operation of the table. */
interface Described {
  readonly method: "GET" | "POST";
  readonly request: z.ZodType;
  readonly line?: z.ZodType;
  readonly answer: z.ZodType;
}
