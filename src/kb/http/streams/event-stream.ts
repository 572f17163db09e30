import type { FastifyReply } from "fastify";
import { REQUEST_ID_HEADER } from "../../../wire/routes.ts";

/** Silence after which a comment is sent, so that proxies do not consider the connection dead. */
const PING_MS = 15_000;

/** An answer as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface EventStream {
  /** Whether anything was sent: the status is then 200, and failures are events. */
  hasStarted(): boolean;
  /** Sends an event; `id` is where a client that reconnects continues. */
  send(event: string, data: object, id?: string): void;
  /** Resolves when the client has read enough of what was sent to get more, or has disconnected. */
  drained(): Promise<void>;
  /** Sends nothing; the caller sends another answer. Only before the stream has started. */
  cancel(): void;
  end(): void;
}

/**
 * Opens the stream. Its head is sent with the first event, or with the first ping after a silence. A client that stops
 * reading is disconnected after `idleMs`.
 */
export function openEventStream(reply: FastifyReply, idleMs: number): EventStream {
  const { raw } = reply;
  let started = false;
  let ping: NodeJS.Timeout | undefined;
  const pingNow = (): void => {
    // A client that does not read gets no ping, so that it reaches its idle timeout.
    if (raw.writableLength === 0) raw.write(": still at it\n\n");
  };
  const start = (): void => {
    if (started) return;
    started = true;
    clearTimeout(firstPing);
    reply.hijack();
    raw.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      // Keeps nginx from buffering the events.
      "x-accel-buffering": "no",
      [REQUEST_ID_HEADER]: reply.request.id,
    });
    raw.setTimeout(idleMs, () => {
      if (raw.writableLength > 0) raw.destroy();
    });
    ping = setInterval(pingNow, PING_MS);
  };
  // Proxies also time out on a missing head. Once it is sent, failures are events.
  const firstPing = setTimeout(() => {
    if (raw.destroyed) return;
    start();
    pingNow();
  }, PING_MS);
  raw.once("close", () => {
    clearTimeout(firstPing);
    clearInterval(ping);
  });
  return {
    hasStarted: () => started,
    send: (event, data, id) => {
      start();
      const position = id === undefined ? "" : `id: ${id}\n`;
      // JSON has no line breaks outside its escapes, so the data is one line.
      if (!raw.destroyed) raw.write(`${position}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      ping?.refresh();
    },
    drained: async () => {
      if (raw.destroyed || !raw.writableNeedDrain) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      raw.once("drain", resolve);
      raw.once("close", resolve);
      await promise;
      raw.off("drain", resolve);
      raw.off("close", resolve);
    },
    cancel: () => clearTimeout(firstPing),
    end: () => {
      clearTimeout(firstPing);
      clearInterval(ping);
      raw.end();
    },
  };
}
