import { once } from "node:events";
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { KbsyncError, messageOf } from "../../../lib/failure.ts";
import {
  controlPaths,
  fitsSocket,
  LIFE_MS,
  LINES_TYPE,
  socketInState,
  socketOutside,
  type FreshSocket,
} from "./address.ts";
import { failureOf } from "./failure.ts";
import type { DaemonOperations } from "./operations.ts";

/** An open control socket. */
export type Control = Awaited<ReturnType<typeof openControl>>;

export interface ControlOptions {
  readonly stateDir: string;
  readonly version: string;
  readonly env: NodeJS.ProcessEnv;
  readonly operations: DaemonOperations;
  /** Called if the socket is not in the state folder. */
  readonly onSocketOutside: (path: string, reason: string) => void;
  /** Maximum time for a request to arrive. Default: 5 s. */
  readonly requestMs?: number;
}

/** Maximum number of clients: people and their scripts. Further ones are disconnected at once. */
const CLIENTS_MAX = 64;
const REQUEST_MS = 5000;
/** Time for a client to read its last line when the daemon stops. */
const CLOSE_MS = 1000;

/**
 * Opens the control socket of a state folder, whose lock the caller holds: HTTP with the operations of `wire/daemon.ts`.
 * Throws if a socket can be created neither in the state folder nor outside.
 */
export async function openControl(options: ControlOptions) {
  const { operations, version, requestMs = REQUEST_MS } = options;
  const stopping = new AbortController();
  let routing: Promise<RequestListener> | undefined;
  // Loads the framework for the first client, because many daemons have none.
  const load = async (): Promise<RequestListener> =>
    (await import("./routes.ts")).openRouting(operations, stopping.signal);

  const times = { requestTimeout: requestMs, headersTimeout: requestMs };
  const server = createServer({ ...times, connectionsCheckingInterval: requestMs / 5 });
  server.maxConnections = CLIENTS_MAX;
  server.on("request", (request, response) => {
    showLife(response);
    response.setHeader("server", `kbsync/${version}`);
    response.setHeader("cache-control", "no-store");
    routing ??= load();
    routing.then(
      (route) => route(request, response),
      (cause: unknown) => refuse(response, replacedProgram(cause)),
    );
  });
  const fresh = await listen(server, options);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    fresh.remove();
    const closed = once(server, "close");
    server.close();
    stopping.abort(new KbsyncError("the daemon is stopping", { code: "daemon_stopping", retryable: true }));
    const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    await closed;
    clearTimeout(cut);
  };
  return {
    /** Path of the socket. */
    path: fresh.published,
    /** Accepts no more requests, ends those in flight with `daemon_stopping`, and removes the socket. May be called again. */
    close: async (): Promise<void> => {
      closing ??= close();
      await closing;
    },
  };
}

/** Shows a client again and again that the daemon is alive, however long its answer takes. */
function showLife(response: ServerResponse): void {
  response.writeProcessing();
  const timer = setInterval(() => {
    if (!response.headersSent) response.writeProcessing();
    else if (response.getHeader("content-type") === LINES_TYPE && !response.writableNeedDrain)
      response.write("\n");
  }, LIFE_MS);
  response.once("close", () => clearInterval(timer));
}

/** Answers a request without the framework, and closes its connection. */
function refuse(response: ServerResponse, error: KbsyncError): void {
  const { status, body } = failureOf(error);
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify(body));
}

/** The framework's files existed when the daemon started, so the program was replaced. */
function replacedProgram(cause: unknown): KbsyncError {
  return new KbsyncError(`the daemon cannot load its API: ${messageOf(cause)}`, {
    code: "control_version",
    hint: "Its program was replaced on disk: restart the daemon.",
    cause,
  });
}

/** Listens in the state folder, or outside if that fails. */
async function listen(
  server: Server,
  { stateDir, env, onSocketOutside }: ControlOptions,
): Promise<FreshSocket & { readonly published: string }> {
  const { socket } = controlPaths(stateDir);
  let reason = `its path would be too long for a socket: ${socket}`;
  if (fitsSocket(socket)) {
    try {
      const fresh = await bind(server, socketInState(stateDir));
      return { ...fresh, published: socket };
    } catch (error) {
      reason = messageOf(error); // Some file systems do not support sockets.
    }
  }
  const fresh = await bind(server, socketOutside(stateDir, env));
  onSocketOutside(fresh.path, reason);
  return { ...fresh, published: fresh.path };
}

async function bind(server: Server, fresh: FreshSocket): Promise<FreshSocket> {
  try {
    server.listen(fresh.path);
    await once(server, "listening");
    fresh.publish();
    // A later error of the socket must not end the daemon.
    server.on("error", () => undefined);
    return fresh;
  } catch (error) {
    server.close();
    fresh.remove();
    throw error;
  }
}
