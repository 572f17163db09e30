import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A web server on a free port of this machine. */
export interface Web {
  readonly port: number;
  /** An address on it; `host` default 127.0.0.1. */
  url(path: string, host?: string): URL;
  /** Requests so far, the newest last. */
  readonly requests: readonly IncomingMessage[];
  close(): Promise<void>;
}

export type Page = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves pages by path; another path is a 404. */
export async function openWeb(pages: Readonly<Record<string, Page>>): Promise<Web> {
  const requests: IncomingMessage[] = [];
  const listener: RequestListener = (request, response) => {
    requests.push(request);
    const page = pages[request.url ?? ""];
    if (page === undefined) response.writeHead(404).end("nothing here");
    else page(request, response);
  };
  const server = createServer(listener);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // it listens on a port, not on a pipe
  return {
    port,
    requests,
    url: (path, host = "127.0.0.1") => new URL(`http://${host}:${port}${path}`),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}
