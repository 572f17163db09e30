import type { FastifyReply, FastifyRequest } from "fastify";
import { codeOf, KbsyncError } from "../../lib/failure.ts";

/** Code of the failure of a request whose client left. */
export const CLIENT_GONE = "client_gone";

/** Aborted when the client goes away before it has its answer: nobody pays for what nobody reads. */
export function disconnectSignal(request: FastifyRequest, { raw }: FastifyReply): AbortSignal {
  const leaving = new AbortController();
  const leave = (): void => {
    const facts = { code: CLIENT_GONE, subject: request.id };
    leaving.abort(new KbsyncError(`the client of request ${request.id} went away`, facts));
  };
  raw.once("close", () => {
    if (!raw.writableFinished) leave();
  });
  // Gone while the request was read and checked: that event has been.
  if (raw.destroyed) leave();
  return leaving.signal;
}

/** Whether a request ended for that alone, which is no trouble of the service's. */
export function hasLeft(error: unknown): boolean {
  return codeOf(error) === CLIENT_GONE;
}
