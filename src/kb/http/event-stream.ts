import type { FastifyReply } from "fastify";
import { REQUEST_ID_HEADER } from "../../wire/routes.ts";

/** A comment is sent after so long a silence, so that proxies do not take the connection for dead. */
const PING_MS = 15_000;

/** An answer in pieces, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface EventStream {
  /** Whether anything was sent: from then on the status is 200, and failures are events. */
  hasBegun(): boolean;
  send(event: string, data: object): void;
  /** Nothing is to be sent: the answer is another one. Only before it has begun. */
  giveUp(): void;
  end(): void;
}

/** Prepares it; the head goes out with the first event, or after so long a silence as a ping follows. A client that does not read on is let go after `idleMs`. */
export function openEventStream(reply: FastifyReply, idleMs: number): EventStream {
  const { raw } = reply;
  let begun = false;
  let ping: NodeJS.Timeout | undefined;
  const pingNow = (): void => {
    // One that does not read gets none: its silence is what it is let go for.
    if (raw.writableLength === 0) raw.write(": still at it\n\n");
  };
  const begin = (): void => {
    if (begun) return;
    begun = true;
    clearTimeout(patience);
    reply.hijack();
    raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      // For nginx, which would gather the pieces.
      "x-accel-buffering": "no",
      [REQUEST_ID_HEADER]: reply.request.id,
    });
    raw.setTimeout(idleMs, () => {
      if (raw.writableLength > 0) raw.destroy();
    });
    ping = setInterval(pingNow, PING_MS);
  };
  // Proxies give up on a head that does not come just as on pieces: from then on failures are events.
  const patience = setTimeout(() => {
    if (raw.destroyed) return;
    begin();
    pingNow();
  }, PING_MS);
  raw.once("close", () => {
    clearTimeout(patience);
    clearInterval(ping);
  });
  return {
    hasBegun: () => begun,
    send: (event, data) => {
      begin();
      // JSON has no line break outside of its escapes, so the data is one line.
      if (!raw.destroyed) raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      ping?.refresh();
    },
    giveUp: () => clearTimeout(patience),
    end: () => {
      clearTimeout(patience);
      clearInterval(ping);
      raw.end();
    },
  };
}
