import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";

/** What a request asks of the service. */
export type Operation =
  | "upload"
  | "create"
  | "update"
  | "delete"
  | "list"
  | "collections"
  | "search"
  | "other";

/** A request as it came through. */
export interface ProxiedRequest {
  readonly number: number;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** Title in the body of a create or update. */
  readonly title: string | undefined;
  /** The resource it is about; of a create the one that the service made, whether or not its answer came through. */
  docId: string | undefined;
  /** What the service answered, if it was asked. */
  status: number | undefined;
  readonly atMs: number;
  /** What was done to it. */
  fault: Fault["kind"] | undefined;
}

/** What happens to one request between daemon and service. */
export type Fault =
  /** The connection ends before the request is forwarded. */
  | { readonly kind: "drop" }
  /** The service acts; its answer is lost with the connection. */
  | { readonly kind: "swallow" }
  /** The request waits; it is not forwarded if the daemon has gone meanwhile. */
  | { readonly kind: "delay"; readonly ms: number }
  /** The service acts; the connection is reset in the middle of its answer. */
  | { readonly kind: "reset-midway" }
  /** The service acts; half of its JSON comes, as if that were all. */
  | { readonly kind: "truncate" }
  /** The service acts; the answer is a page of some gateway with this status. */
  | { readonly kind: "page"; readonly status: number }
  /** The service does not act; a gateway answers this. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The service acts; the answer comes some time later. */
  | { readonly kind: "answer-late"; readonly ms: number }
  /** The connection ends at once; the request is forwarded some time later. */
  | { readonly kind: "act-late"; readonly ms: number }
  /** The service acts; this is answered in place of its answer. */
  | { readonly kind: "acted"; readonly status: number; readonly body: string }
  /** The request is forwarded twice; the second answer is given. */
  | { readonly kind: "duplicate" }
  /** Nothing is forwarded and nothing answered; the connection breaks after `hangMs`, as at a gateway. */
  | { readonly kind: "hang" };

export interface FaultProxyOptions {
  /** Base address of the service. */
  readonly target: string;
  /** Shows the service as the bare specification has it: no idempotency keys, no pages, no list of collections. */
  readonly bare?: boolean;
  /** How long a request hangs. Default: longer than a test. */
  readonly hangMs?: number;
}

/** A proxy on loopback that applies the chosen fault to each request. Of an answer's headers it forwards only those it knows. */
export interface FaultProxy {
  readonly url: string;
  readonly requests: ProxiedRequest[];
  /** Connections that were ever taken. */
  connections: number;
  /** Asked for each request, in order of arrival. */
  fault: (request: ProxiedRequest) => Fault | undefined;
  /** What came since the nth request and would change something at the service. */
  writesSince(number: number): ProxiedRequest[];
  close(): Promise<void>;
}

/** Headers that belong to one connection, and those that the bare specification does not know. */
const NOT_FORWARDED = new Set(["host", "connection", "keep-alive", "transfer-encoding", "content-length"]);
const NOT_BARE = new Set(["idempotency-key", "prefer"]);

/** Starts the proxy on a free port. */
export async function openFaultProxy({
  target,
  bare = false,
  hangMs = 600_000,
}: FaultProxyOptions): Promise<FaultProxy> {
  const pool = new Pool(new URL(target).origin, { connections: 64 });
  const sockets = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    // The daemon is killed at any moment: that its connection broke is what is wanted here.
    serve(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  server.on("connection", (socket) => {
    proxy.connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
  });

  const forward = async (incoming: IncomingMessage, body: Buffer): Promise<Forwarded> => {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (NOT_FORWARDED.has(name) || (bare && NOT_BARE.has(name)) || typeof value !== "string") continue;
      headers[name] = value;
    }
    const method = (incoming.method ?? "GET") as "GET"; // whatever was sent goes on as it is
    const answer = await pool.request({
      path: bare ? barePath(incoming.url ?? "/") : (incoming.url ?? "/"),
      method,
      headers,
      body: body.length === 0 ? null : body,
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    const { "content-type": type = "application/json", date, "retry-after": wait } = answer.headers;
    const passed = { "content-type": type, ...(date && { date }), ...(wait && { "retry-after": wait }) };
    return { status: answer.statusCode, headers: passed, bytes };
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const request = describeRequest(proxy.requests.length, incoming, body);
    proxy.requests.push(request);
    const fault = proxy.fault(request);
    request.fault = fault?.kind;
    if (fault?.kind === "drop") {
      incoming.socket.destroy();
      return;
    }
    if (fault?.kind === "hang") {
      const timer = setTimeout(() => incoming.socket.destroy(), hangMs);
      incoming.socket.once("close", () => clearTimeout(timer));
      return;
    }
    if (fault?.kind === "answer") {
      outgoing.writeHead(fault.status, { "content-type": "text/html", ...fault.headers });
      outgoing.end(fault.body);
      return;
    }
    if (fault?.kind === "delay") await sleep(fault.ms);
    if (fault?.kind === "act-late") {
      incoming.socket.destroy();
      await sleep(fault.ms);
    } else if (incoming.socket.destroyed) return;
    if (bare && request.operation === "collections") {
      outgoing.writeHead(404, { "content-type": "text/html" });
      outgoing.end("<html><body>Cannot GET</body></html>");
      return;
    }
    if (fault?.kind === "duplicate") await forward(incoming, body);
    const { status, headers, bytes } = await forward(incoming, body);
    request.status = status;
    if (request.operation === "create") request.docId = madeBy(bytes);
    if (fault?.kind === "act-late") return;
    if (fault?.kind === "answer-late") await sleep(fault.ms);
    if (fault?.kind === "acted") {
      outgoing.writeHead(fault.status, { "content-type": "application/json" });
      outgoing.end(fault.body);
    } else if (fault?.kind === "swallow") {
      incoming.socket.destroy();
    } else if (fault?.kind === "reset-midway") {
      outgoing.writeHead(status, { ...headers, "content-length": bytes.length });
      outgoing.write(bytes.subarray(0, bytes.length / 2), () => incoming.socket.resetAndDestroy());
    } else if (fault?.kind === "page") {
      outgoing.writeHead(fault.status, { "content-type": "text/html" });
      outgoing.end("<html><body><h1>Bad gateway</h1></body></html>");
    } else {
      outgoing.writeHead(status, headers);
      outgoing.end(fault?.kind === "truncate" ? bytes.subarray(0, bytes.length / 2) : bytes);
    }
  };

  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    connections: 0,
    fault: () => undefined,
    writesSince: (number) => proxy.requests.slice(number).filter(({ operation }) => WRITES.has(operation)),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
      await pool.destroy();
    },
  };
  return proxy;
}

const WRITES: ReadonlySet<Operation> = new Set(["upload", "create", "update", "delete"]);

interface Forwarded {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly bytes: Buffer;
}

function barePath(path: string): string {
  const url = new URL(path, "http://service");
  url.searchParams.delete("limit");
  url.searchParams.delete("cursor");
  return `${url.pathname}${url.search}`;
}

function describeRequest(number: number, incoming: IncomingMessage, body: Buffer): ProxiedRequest {
  const { method = "GET", url: path = "/" } = incoming;
  const isJson = incoming.headers["content-type"] === "application/json" && body.length > 0;
  const title = isJson ? (JSON.parse(body.toString("utf8")) as { title?: string }).title : undefined;
  return {
    number,
    operation: operationOf(method, new URL(path, "http://service").pathname),
    method,
    path,
    title,
    docId: /^\/api\/rag\/resource\/([0-9a-f]{24})$/.exec(path)?.[1],
    status: undefined,
    atMs: Date.now(),
    fault: undefined,
  };
}

/** The id in the answer to a create; undefined when it was refused. */
function madeBy(bytes: Buffer): string | undefined {
  const answer = JSON.parse(bytes.toString("utf8")) as { data?: { _id?: string } };
  return answer.data?._id;
}

function operationOf(method: string, path: string): Operation {
  const name = `${method} ${path}`;
  if (name === "POST /image/processing/upload") return "upload";
  if (name === "POST /api/rag/resource") return "create";
  if (name === "GET /api/rag/resource/by-collection") return "list";
  if (name === "GET /api/rag/collections") return "collections";
  if (name === "POST /rag/query") return "search";
  if (path.startsWith("/api/rag/resource/")) {
    if (method === "PUT") return "update";
    if (method === "DELETE") return "delete";
  }
  return "other";
}
