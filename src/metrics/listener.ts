import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { listenFailure } from "../lib/listen-failure.ts";
import type { Metrics } from "./metrics.ts";

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: Pick<Metrics, "text">;
  /** Returns why the process is not ready, or undefined. */
  readonly notReady: () => string | undefined;
}

/** An HTTP listener for monitoring. */
export interface Listener {
  readonly url: string;
  close(): Promise<void>;
}

/** Concurrent connections: a monitoring system needs one or two. */
const CONNECTIONS_MAX = 32;
/** Longest time to receive a request, which is one line and some headers. */
const REQUEST_TIMEOUT_MS = 10_000;
/** `Retry-After` of a process that is not ready. */
const RETRY_AFTER_SECONDS = 5;
const ADDRESS = {
  what: " for metrics",
  hint: "Set metrics in the configuration to an address of this machine that is free.",
};

/**
 * Serves `GET /metrics`, `/healthz` and `/readyz` without a key: the answers name no account and no file. For a daemon with
 * a remote service, and for scrapers that must not reach the service. Throws the errors of `listenFailure`.
 */
export async function listenForMonitoring(options: ListenerOptions): Promise<Listener> {
  const { host, port, metrics, notReady } = options;
  // Concurrent requests share one reading of the figures.
  let reading: ReturnType<Metrics["text"]> | undefined;
  const read = (): ReturnType<Metrics["text"]> =>
    (reading ??= metrics.text().finally(() => (reading = undefined)));

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "" } = request;
    const path = (request.url ?? "").split("?", 1)[0];
    if (method !== "GET" && method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      sendText(response, 405, "only GET and HEAD are allowed\n");
      return;
    }
    switch (path) {
      case "/metrics": {
        const { contentType, text } = await read();
        response.writeHead(200, { "content-type": contentType }).end(text);
        return;
      }
      case "/healthz":
        sendText(response, 200, "alive\n");
        return;
      case "/readyz": {
        const reason = notReady();
        if (reason !== undefined) response.setHeader("retry-after", String(RETRY_AFTER_SECONDS));
        sendText(response, reason === undefined ? 200 : 503, `${reason ?? "ready"}\n`);
        return;
      }
      case undefined:
      default:
        sendText(response, 404, "there are /metrics, /healthz and /readyz\n");
    }
  };
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      answer(request, response).catch(() => {
        if (response.headersSent) response.destroy();
        else sendText(response, 500, "the metrics cannot be read\n");
      });
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenFailure(error, { subject: `${host}:${port}`, ...ADDRESS })));
    server.listen({ host, port }, resolve);
  });
  // A listening TCP server has an address with a port.
  const bound = server.address() as AddressInfo;
  const name = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${name}:${bound.port}`,
    close: async () => {
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(text);
}
