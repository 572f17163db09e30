import type { FastifyReply } from "fastify";

/** A comment is sent after so long a silence, so that proxies do not take the connection for dead. */
const PING_MS = 15_000;

/** An answer in pieces, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface EventStream {
  /** Whether anything was sent: from then on the status is 200, and failures are events. */
  hasBegun(): boolean;
  send(event: string, data: object): void;
  end(): void;
}

/** Prepares it; the head goes out with the first event. A client that does not read on is let go after `idleMs`. */
export function openEventStream(reply: FastifyReply, idleMs: number): EventStream {
  const { raw } = reply;
  let begun = false;
  let ping: NodeJS.Timeout | undefined;
  const begin = (): void => {
    if (begun) return;
    begun = true;
    reply.hijack();
    raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      // For nginx, which would gather the pieces.
      "x-accel-buffering": "no",
      "x-request-id": reply.request.id,
    });
    raw.setTimeout(idleMs, () => {
      if (raw.writableLength > 0) raw.destroy();
    });
    ping = setInterval(() => {
      // One that does not read gets none: its silence is what it is let go for.
      if (raw.writableLength === 0) raw.write(": still at it\n\n");
    }, PING_MS);
    raw.once("close", () => clearInterval(ping));
  };
  return {
    hasBegun: () => begun,
    send: (event, data) => {
      begin();
      // JSON has no line break outside of its escapes, so the data is one line.
      if (!raw.destroyed) raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      ping?.refresh();
    },
    end: () => {
      clearInterval(ping);
      raw.end();
    },
  };
}
