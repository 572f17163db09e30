import type { FastifyInstance, FastifyRequest } from "fastify";
import { KbsyncError } from "../../../lib/failure.ts";
import type { Admitted } from "./admission.ts";
import { CLIENT_GONE } from "./disconnect.ts";

/** An admitted request, until its connection has finished with it and no work runs for it. */
export interface InFlight extends Pick<Admitted, "hold" | "release"> {
  /**
   * Does work for the request. The request stays in flight until the work ends, even if its client leaves, because the work
   * uses its memory. Rejects with `client_gone` if the request has ended already, and with any error of the work.
   */
  during<T>(this: void, work: () => T | Promise<T>): Promise<T>;
  /** The connection has finished with the request. Call it once. */
  close(this: void): void;
}

/** Tracks an admitted request, and calls `leave` when it ends. */
export function trackRequest(id: string, { hold, release, leave }: Admitted): InFlight {
  let holders = 1; // the connection
  const drop = (): void => {
    holders -= 1;
    if (holders === 0) leave();
  };
  return {
    during: async (work) => {
      if (holders === 0) {
        throw new KbsyncError(`the client of request ${id} disconnected`, { code: CLIENT_GONE, subject: id });
      }
      holders += 1;
      try {
        return await work();
      } finally {
        drop();
      }
    },
    close: drop,
    hold,
    release,
  };
}

/** Does work for a request as `during` does; for a request without admission, just does it. */
export function workOn<T>({ inFlight }: FastifyRequest, work: () => T | Promise<T>): Promise<T> {
  return inFlight === null ? Promise.resolve(work()) : inFlight.during(work);
}

/** Counts the handlers of all routes added from now on as work on their requests. */
export function trackHandlers(server: FastifyInstance): void {
  server.decorateRequest("inFlight", null);
  server.addHook("onRoute", (route) => {
    const { handler } = route;
    // Async, because `workOn` and the handler may throw synchronously.
    route.handler = async function tracked(request, reply): Promise<unknown> {
      return workOn(request, () => handler.call(this, request, reply));
    };
  });
}

declare module "fastify" {
  interface FastifyRequest {
    /** Null for requests without admission, such as monitoring. */
    inFlight: InFlight | null;
  }
}
