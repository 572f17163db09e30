import type { FastifyInstance, FastifyRequest } from "fastify";
import { KbsyncError } from "../../lib/failure.ts";
import type { Admitted } from "./admission.ts";
import { CLIENT_GONE } from "./disconnect.ts";

/** A request that was let in, until its connection is done with it and nothing works on it. */
export interface UnderWay extends Pick<Admitted, "hold" | "release"> {
  /**
   * Does work for the request, which is under way until the work is over, however soon its client leaves: the memory is
   * taken until then. Rejects with `client_gone` where it was over already, and with what the work rejects with.
   */
  during<T>(this: void, work: () => T | Promise<T>): Promise<T>;
  /** The connection is done with the request. To be called once. */
  close(this: void): void;
}

/** Leaves the admission once it is over. */
export function openUnderWay(id: string, { hold, release, leave }: Admitted): UnderWay {
  let holders = 1; // the connection
  const letGo = (): void => {
    holders -= 1;
    if (holders === 0) leave();
  };
  return {
    during: async (work) => {
      if (holders === 0) {
        throw new KbsyncError(`the client of request ${id} went away`, { code: CLIENT_GONE, subject: id });
      }
      holders += 1;
      try {
        return await work();
      } finally {
        letGo();
      }
    },
    close: letGo,
    hold,
    release,
  };
}

/** Does work for a request, as `during`; for one that needs no letting in, just does it. */
export function workOn<T>({ underWay }: FastifyRequest, work: () => T | Promise<T>): Promise<T> {
  return underWay === null ? Promise.resolve(work()) : underWay.during(work);
}

/** Counts the handler of every route added from now on as work on its request. */
export function holdHandlers(server: FastifyInstance): void {
  server.decorateRequest("underWay", null);
  server.addHook("onRoute", (route) => {
    const { handler } = route;
    // Async: `workOn` may throw at once, and a handler as well.
    route.handler = async function held(request, reply): Promise<unknown> {
      return workOn(request, () => handler.call(this, request, reply));
    };
  });
}

declare module "fastify" {
  interface FastifyRequest {
    /** Null for what is let in always, as monitoring. */
    underWay: UnderWay | null;
  }
}
