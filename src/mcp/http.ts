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

/** Where clients reach the server below its address. */
export const MCP_PATH = "/mcp";
/** Port of `kbsync mcp --http` when none is given: the one after the service's. */
export const MCP_PORT_DEFAULT = 7412;

/** A message names tools and holds a query; a larger body is no such message. */
const BODY_BYTES_MAX = 1024 * 1024;
/** Requests under way at once, each of which may hold a document. */
const REQUESTS_MAX = 64;
/** Streams kept open for news. Nothing is ever told on them, but a client may ask for one. */
const SUBSCRIPTIONS_MAX = 32;
/** Time for a request to arrive. */
const REQUEST_MS = 30_000;

/** What the HTTP side is opened with. */
export interface McpHttpOptions extends Pick<McpParts, "version" | "onDefect"> {
  /** On 127.0.0.1; 0: any free one. */
  readonly port: number;
  /** The caller of a key, as it came. */
  readonly callerOf: (key: string) => Caller;
  readonly nowMs: () => number;
}

/** A server that listens. */
export interface McpHttp {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves MCP's streamable HTTP on loopback, each request by itself, for whoever brings a key of the service. Requests
 * from pages of other sites are refused by their Origin, and by their Host where a name was rebound to this machine.
 * Throws what `listenFailure` tells.
 */
export async function openMcpHttp(options: McpHttpOptions): Promise<McpHttp> {
  const handler = createMcpHandler(
    ({ authInfo }) => {
      // fetch below is called with the key that was checked, and in no other way.
      const caller = options.callerOf(authInfo?.token ?? "");
      return makeMcpServer({ caller, version: options.version, onDefect: options.onDefect });
    },
    { maxRequestBodySize: BODY_BYTES_MAX, maxSubscriptions: SUBSCRIPTIONS_MAX },
  );
  const bearer = openBearerCheck(options.nowMs);
  let underWay = 0;

  /** `head` is the request without its body, which is read for a key that is good alone. */
  const answer = async (head: Request, incoming: IncomingMessage): Promise<Response> => {
    const foreign =
      hostHeaderValidationResponse(head, localhostAllowedHostnames()) ??
      originValidationResponse(head, localhostAllowedOrigins());
    if (foreign !== undefined) return foreign;
    if (new URL(head.url).pathname !== MCP_PATH) {
      return refusal(404, {}, "route_not_found", `There is nothing here but ${MCP_PATH}.`);
    }
    const key = bearerOf(head.headers.get("authorization") ?? undefined);
    try {
      if (key === undefined) throw noKey();
      const { service } = await options.callerOf(key).reach();
      await bearer.check(key, service, head.signal);
    } catch (error) {
      if (!(error instanceof KbsyncError)) throw error;
      const { status, headers } = keyRefusal(error);
      return refusal(status, headers, error.code, error.message, error.hint);
    }
    const request = await withBody(head, incoming);
    if (request === undefined) {
      return refusal(413, {}, "body_too_large", `The body is larger than ${BODY_BYTES_MAX} bytes.`);
    }
    return handler.fetch(request, { authInfo: { token: key, clientId: "key", scopes: ["read"] } });
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    if (underWay >= REQUESTS_MAX) {
      const words = `More than ${REQUESTS_MAX} requests are under way.`;
      await writeResponse(refusal(503, { "retry-after": "1" }, "overloaded", words), outgoing);
      return;
    }
    underWay += 1;
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    try {
      const head = headOf(incoming, gone.signal);
      const response =
        head === undefined
          ? refusal(
              400,
              {},
              "invalid_request",
              "The method or the address of the request is none that is served.",
            )
          : await answer(head, incoming);
      await writeResponse(response, outgoing);
    } finally {
      underWay -= 1;
    }
  };

  const server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS },
    (incoming, outgoing) => {
      serve(incoming, outgoing).catch((error: unknown) => {
        // A client that went away in the midst of its request or answer is no defect. Of the request this says nothing:
        // one that was read to its end is destroyed, too.
        if (outgoing.destroyed) return;
        options.onDefect(error);
        if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(500).end();
      });
    },
  );
  const port = await listen(server, options.port);
  return {
    url: `http://127.0.0.1:${port}${MCP_PATH}`,
    close: async () => {
      await handler.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The request as the SDK takes it, without its body. Undefined: it cannot be one, as `TRACE` and the address `//` cannot. */
function headOf(incoming: IncomingMessage, signal: AbortSignal): Request | undefined {
  try {
    const headers = new Headers();
    for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
      headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
    }
    const url = new URL(incoming.url ?? "/", "http://127.0.0.1");
    return new Request(url, { method: incoming.method ?? "GET", headers, signal });
  } catch (error) {
    // What each of the three throws for what it does not take.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The whole request. Undefined: its body is too long. */
async function withBody(head: Request, incoming: IncomingMessage): Promise<Request | undefined> {
  if (head.method === "GET" || head.method === "HEAD") return head;
  const bytes = await bytesOf(incoming, BODY_BYTES_MAX, Number(incoming.headers["content-length"] ?? 0));
  const { method, signal } = head;
  if (bytes !== undefined) return new Request(head, { method, body: bytes, signal });
  // Read to its end all the same: a client that is still sending would see a reset and never the answer.
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
      server.listen({ host: "127.0.0.1", port }, () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : port);
      });
    });
  } catch (error) {
    throw listenFailure(error, {
      subject: `127.0.0.1:${port}`,
      hint: "Stop the program that does, or choose another port with --port.",
    });
  }
}
