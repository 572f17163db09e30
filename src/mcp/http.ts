import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
} from "@modelcontextprotocol/server";
import { bytesOf } from "../lib/byte-block.ts";
import { KbsyncError } from "../lib/failure.ts";
import { listenFailure } from "../lib/listen-failure.ts";
import { bearerOf, keyRefusal, openBearerCheck } from "./bearer.ts";
import type { Caller } from "./caller.ts";
import { makeMcpServer, type McpParts } from "./server.ts";

/** Keys cross the network in the clear, so only this machine is served: others through a proxy with TLS. */
const HOST = "127.0.0.1";
/** Path of the MCP endpoint. */
const MCP_PATH = "/mcp";
/** Default port of `kbsync mcp --http`: the one after the service's. */
export const MCP_PORT_DEFAULT = 7412;

/** Largest request body; messages hold a tool name and a query. */
const BODY_BYTES_MAX = 1024 * 1024;
/** Concurrent requests, each of which may hold a document in memory. */
const REQUESTS_MAX = 64;
/** Longest time to receive a request. */
const REQUEST_MS = 30_000;

/** Options of the HTTP server. */
export interface McpHttpOptions extends Pick<McpParts, "version" | "onDefect"> {
  /** 0: any free one. */
  readonly port: number;
  /** Returns the caller with a key. */
  readonly callerOf: (key: string) => Caller;
  readonly nowMs: () => number;
}

/** A listening server. */
export interface McpHttp {
  readonly url: string;
  close(): Promise<void>;
}

/** Answers a request. `head` is the request without its body, which is read only for a valid key. */
type AnswerRequest = (head: Request, incoming: IncomingMessage) => Promise<Response>;

/**
 * Serves MCP over streamable HTTP on loopback, statelessly, for holders of a key of the service. Refuses requests from pages of
 * other sites by their Origin, and DNS rebinding by the Host header. Throws the errors of `listenFailure`.
 */
export async function openMcpHttp(options: McpHttpOptions): Promise<McpHttp> {
  const { version, onDefect } = options;
  const handler = createMcpHandler(
    // `fetch` below is only called with a checked key.
    ({ authInfo }) => makeMcpServer({ caller: options.callerOf(authInfo?.token ?? ""), version, onDefect }),
    { maxRequestBodySize: BODY_BYTES_MAX },
  );
  const server = serveRequests(openAnswering(options, handler), onDefect);
  const port = await listen(server, options.port);
  return {
    url: `http://${HOST}:${port}${MCP_PATH}`,
    close: async () => {
      await handler.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Returns the function that answers requests that carry a key. */
function openAnswering(
  { nowMs, callerOf }: McpHttpOptions,
  handler: ReturnType<typeof createMcpHandler>,
): AnswerRequest {
  const bearer = openBearerCheck(nowMs);
  const refuse = (error: KbsyncError): Response => {
    const { status, headers } = keyRefusal(error);
    return refusal(status, headers, error.code, error.message, error.hint);
  };
  return async (head, incoming) => {
    const foreign =
      hostHeaderValidationResponse(head, localhostAllowedHostnames()) ??
      originValidationResponse(head, localhostAllowedOrigins());
    if (foreign !== undefined) return foreign;
    if (new URL(head.url).pathname !== MCP_PATH)
      return refusal(404, {}, "route_not_found", `There is nothing here but ${MCP_PATH}.`);
    const key = bearerOf(head.headers.get("authorization") ?? undefined);
    if (key === undefined) return refuse(noKey());
    try {
      const { service } = await callerOf(key).reach();
      await bearer.check(key, service, head.signal);
    } catch (error) {
      if (!(error instanceof KbsyncError)) throw error;
      return refuse(error);
    }
    const request = await withBody(head, incoming);
    if (request === undefined) {
      return refusal(413, {}, "body_too_large", `The body is larger than ${BODY_BYTES_MAX} bytes.`);
    }
    return handler.fetch(request, { authInfo: { token: key, clientId: "key", scopes: ["read"] } });
  };
}

/** Creates a server that answers a bounded number of requests at once. */
function serveRequests(answer: AnswerRequest, onDefect: (error: unknown) => void): Server {
  let underWay = 0;

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    if (underWay >= REQUESTS_MAX) {
      await writeResponse(overloaded(`More than ${REQUESTS_MAX} requests are in flight.`), outgoing);
      return;
    }
    underWay += 1;
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    try {
      const head = headOf(incoming, gone.signal);
      const response =
        head === undefined
          ? refusal(400, {}, "invalid_request", "The method or the URL of the request is not supported.")
          : await answer(head, incoming);
      await writeResponse(response, outgoing);
    } finally {
      underWay -= 1;
    }
  };

  return createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (incoming, outgoing) => {
    serve(incoming, outgoing).catch((error: unknown) => {
      // A client that disconnects during its request or answer is no defect. `incoming.destroyed` would not show that: a
      // fully read request is destroyed, too.
      if (outgoing.destroyed) return;
      onDefect(error);
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    });
  });
}

/** Converts the request, without its body, for the SDK. Undefined if fetch does not allow it, such as `TRACE` or `//`. */
function headOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  try {
    const headers = new Headers();
    for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
      headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
    }
    const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
    return new Request(url, { method: incoming.method ?? "GET", headers, signal });
  } catch (error) {
    // Headers, URL and Request throw this for invalid input.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Returns the request with its body. Undefined if the body is too large. */
async function withBody(head: Request, incoming: IncomingMessage): Promise<Request | undefined> {
  if (head.method === "GET" || head.method === "HEAD") return head;
  const bytes = await bytesOf(incoming, BODY_BYTES_MAX, Number(incoming.headers["content-length"] ?? 0));
  const { method, signal } = head;
  if (bytes !== undefined) return new Request(head, { method, body: bytes, signal });
  // Reads to the end anyway: a client that is still sending would see a reset instead of the answer.
  if (!incoming.readableEnded) await finished(incoming, { writable: false });
  return undefined;
}

async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  await pipeline(Readable.fromWeb(response.body), outgoing);
}

function noKey(): KbsyncError {
  return new KbsyncError("The request carries no key.", {
    code: "key_missing",
    hint: "Send a key of the service with scope read: Authorization: Bearer kb_…",
  });
}

function overloaded(message: string): Response {
  return refusal(503, { "retry-after": "1" }, "overloaded", message);
}

function refusal(
  status: number,
  headers: Readonly<Record<string, string>>,
  code: string,
  message: string,
  hint?: string,
): Response {
  const body = { success: false, message, error: { code, ...(hint !== undefined && { hint }) } };
  return Response.json(body, { status, headers });
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    return await new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: HOST, port }, () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  } catch (error) {
    throw listenFailure(error, {
      subject: `${HOST}:${port}`,
      hint: "Choose another port with --port.",
    });
  }
}
