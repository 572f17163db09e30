import type { FastifyReply, FastifyRequest } from "fastify";
import { codeOf, KbsyncError } from "../../../lib/failure.ts";

/** Error code of a request whose client disconnected. */
export const CLIENT_GONE = "client_gone";

/** Returns a signal that aborts if the client disconnects before its answer is complete, so that unread work stops. */
export function disconnectSignal(request: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    const facts = { code: CLIENT_GONE, subject: request.id };
    controller.abort(new KbsyncError(`the client of request ${request.id} disconnected`, facts));
  };
  raw.once("close", () => {
    if (!raw.writableFinished) abort();
  });
  // The event has passed if the client disconnected while the request was read and checked.
  if (raw.destroyed) abort();
  return controller.signal;
}

/** Reports whether a request failed only because its client disconnected, which is no failure of the service. */
export function isDisconnect(error: unknown): boolean {
  return codeOf(error) === CLIENT_GONE;
}
