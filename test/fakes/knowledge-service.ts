import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A resource as the fake keeps it. */
export interface FakeResource {
  _id: string;
  title: string;
  description: string;
  settings: unknown;
  url?: string;
  content?: string;
  collectionId: string;
  ownerId: string;
  refreshedAt: string | null;
  isDeleted: boolean;
  createdAt: string;
  updatedAt: string;
  metadata?: Record<string, unknown>;
  /** How far the service is with its text. Default: \`chunked\`. */
  status?: "queued" | "error";
}

/** A request as the fake saw it. */
export interface FakeRequest {
  readonly number: number;
  readonly operation:
    | "upload"
    | "create"
    | "update"
    | "delete"
    | "read"
    | "list"
    | "collections"
    | "search"
    | "download"
    | "other";
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly docId: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown> | undefined;
}

/** What goes wrong with one request. */
export type Fault =
  /** The connection ends before the service acts. */
  | { readonly kind: "lose-request" }
  /** The service acts; its answer never comes. */
  | { readonly kind: "lose-answer" }
  /** The service does not act and answers this. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: string;
      readonly headers?: Record<string, string>;
    }
  /** The service acts; half of its answer comes. */
  | { readonly kind: "cut-answer" }
  /** The service acts; the answer is a proxy's page. */
  | { readonly kind: "html" }
  /** The service acts when the promise is done, and answers then. */
  | { readonly kind: "wait"; readonly until: Promise<void> }
  /** The service acts at once, and answers when the promise is done. */
  | { readonly kind: "answer-late"; readonly until: Promise<void> }
  /** The service acts when the promise is done; the connection ends at once. */
  | { readonly kind: "act-late"; readonly until: Promise<void> };

export interface FakeOptions {
  /** Additions of our own service: list of collections, pages, records by their id. A bare service has none. */
  readonly collections?: boolean;
  readonly paged?: boolean;
  /** Honours `Idempotency-Key` on create and update: the first answer again, and 409 while the first request is being worked on. */
  readonly keys?: boolean;
  readonly reads?: boolean;
  /** Answers searches of a collection by the words that text and title have in common with the query. */
  readonly searches?: boolean;
  readonly port?: number;
  /** What the service makes of a text before it keeps it. Default: nothing. */
  readonly normalise?: (field: "title" | "description" | "content", text: string) => string;
  /** The service's clock minus ours, in its timestamps and Date headers. Default: 0. */
  readonly skewMs?: number;
  /** Notified of each resource that was made, changed or deleted, as it then is. */
  readonly onWrite?: (resource: Readonly<FakeResource>) => void;
  /** A create with the title of a resource that is not deleted changes that one, and answers with its `_id`. */
  readonly upserts?: boolean;
  /** What an answer or a list shows of a resource in place of its record. Default: this. */
  readonly shown?: (record: Record<string, unknown>) => unknown;
  /** What a list shows in place of all resources. Default: these. */
  readonly listed?: () => readonly FakeResource[];
}

/** A small in-memory service that obeys the bare specification and fails on request. */
export interface FakeService {
  readonly url: string;
  readonly key: string;
  /** Every resource ever made, deleted ones too. */
  readonly resources: Map<string, FakeResource>;
  readonly uploads: Map<string, { bytes: number; hash: string; content: Buffer }>;
  readonly requests: FakeRequest[];
  /** Asked for every request, in order of arrival. */
  fault: (request: FakeRequest) => Fault | undefined;
  /** Media types that the list of collections names as read. Default: none. */
  reads: readonly string[];
  /** Whether the list of collections says that locations are taken. Default: false. */
  locations: boolean;
  /** Whether the list of collections says that it takes metadata. Default: no. */
  takesMetadata: boolean;
  /** From now on every collection has another id, as after a reset; the old ones are unknown. */
  renameCollections(): void;
  /** Resources that are not deleted, by title. */
  live(): FakeResource[];
  count(operation: FakeRequest["operation"]): number;
  close(): Promise<void>;
}

/** Starts the fake on a free port of loopback. */
export async function openFakeService(options: FakeOptions = {}): Promise<FakeService> {
  const { skewMs = 0 } = options;
  const resources = new Map<string, FakeResource>();
  const uploads = new Map<string, { bytes: number; hash: string; content: Buffer }>();
  const requests: FakeRequest[] = [];
  /** By key; null while the first request is being worked on. */
  const answered = new Map<string, readonly [number, unknown] | null>();
  const collections: Record<string, string> = {
    fastest: "c".repeat(23) + "1",
    moderate: "c".repeat(23) + "2",
    high_accuracy: "c".repeat(23) + "3",
  };
  const server = createServer((incoming, outgoing) => {
    void serve(incoming, outgoing);
  });
  await new Promise<void>((resolve) => {
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return; // The client broke off; nothing was asked.
    }
    const bytes = Buffer.concat(chunks);
    const target = new URL(incoming.url ?? "/", url);
    const request = describe(requests.length, incoming, target, bytes);
    requests.push(request);
    if (skewMs !== 0) outgoing.setHeader("date", new Date(Date.now() + skewMs).toUTCString());
    const fault = fake.fault(request);
    if (fault?.kind === "lose-request") {
      incoming.socket.destroy();
      return;
    }
    if (fault?.kind === "answer") {
      outgoing.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
      outgoing.end(fault.body);
      return;
    }
    const isKeyed = request.operation === "create" || request.operation === "update";
    const key = options.keys === true && isKeyed && headerOf(incoming);
    const before = key ? answered.get(key) : undefined;
    if (before !== undefined) {
      const [status, answer] = before ?? UNDER_WAY;
      outgoing.writeHead(status, { "content-type": "application/json", "retry-after": "0" });
      outgoing.end(JSON.stringify(answer));
      return;
    }
    if (key) answered.set(key, null);
    if (fault?.kind === "act-late") incoming.socket.destroy();
    if (fault?.kind === "wait" || fault?.kind === "act-late") await fault.until;
    if (request.operation === "download") {
      // Anyone with the address may read the file.
      const file = uploads.get(`${url}${request.path}`);
      outgoing.writeHead(file === undefined ? 404 : 200, { "content-type": "application/octet-stream" });
      outgoing.end(file?.content);
      return;
    }
    const [status, answer] =
      incoming.headers["pauthkey"] === fake.key
        ? act(request, target, bytes)
        : ([401, { success: false, message: "unknown key", error: { code: "unauthorized" } }] as const);
    if (key) answered.set(key, [status, answer]);
    if (fault?.kind === "act-late") return;
    if (fault?.kind === "answer-late") await fault.until;
    const text = JSON.stringify(answer);
    if (fault?.kind === "lose-answer") {
      incoming.socket.destroy();
      return;
    }
    const isPage = fault?.kind === "html";
    outgoing.writeHead(isPage ? 200 : status, { "content-type": isPage ? "text/html" : "application/json" });
    if (isPage) outgoing.end("<html><body>One moment, please</body></html>");
    else outgoing.end(fault?.kind === "cut-answer" ? text.slice(0, text.length / 2) : text);
  };

  const normalised = (field: "title" | "description" | "content", value: unknown): unknown =>
    typeof value === "string" ? (options.normalise?.(field, value) ?? value) : value;
  const refuse = (status: number, message: string): [number, unknown] => [
    status,
    { success: false, message, error: { code: `refused_${status}` } },
  ];
  const record = (resource: FakeResource, whole: boolean): unknown => {
    const { content, status = "chunked", metadata, ...rest } = resource;
    const shown = whole ? { ...rest, content: content ?? "", metadata: { ...metadata, status } } : rest;
    return options.shown?.(shown) ?? shown;
  };

  const act = (request: FakeRequest, target: URL, bytes: Buffer): [number, unknown] => {
    const { body = {} } = request;
    const at = new Date(Date.now() + skewMs).toISOString();
    switch (request.operation) {
      case "upload": {
        const fileUrl = `${url}/files/${randomBytes(12).toString("hex")}`;
        const content = fileOf(bytes, request.headers["content-type"] ?? "");
        if (content === undefined) return refuse(400, "no file in the form");
        uploads.set(fileUrl, {
          bytes: content.length,
          hash: createHash("sha256").update(content).digest("hex"),
          content: Buffer.from(content),
        });
        return [200, { success: true, file_url: fileUrl }];
      }
      case "create": {
        const tier = String(body["collection_details"]);
        const { settings, url: address, owner_id: owner } = body;
        const [title, description, content] = (["title", "description", "content"] as const).map((field) =>
          normalised(field, body[field]),
        );
        if (typeof title !== "string" || typeof description !== "string")
          return refuse(400, "title and description");
        if ((content === undefined) === (address === undefined)) return refuse(400, "one of content and url");
        const collectionId = collections[tier];
        if (collectionId === undefined) return refuse(400, "unknown collection_details");
        if (typeof address === "string" && address.startsWith(`${url}/files/`) && !uploads.has(address)) {
          return refuse(400, "never uploaded");
        }
        const upserted =
          options.upserts === true
            ? [...resources.values()].find((each) => !each.isDeleted && each.title === title)
            : undefined;
        const resource: FakeResource = {
          _id: upserted?._id ?? randomBytes(12).toString("hex"),
          title,
          description,
          settings,
          ...(typeof address === "string" && { url: address }),
          ...(typeof content === "string" && { content }),
          ...metadataIn(body),
          collectionId,
          ownerId: typeof owner === "string" ? owner : "account",
          refreshedAt: null,
          isDeleted: false,
          createdAt: at,
          updatedAt: at,
        };
        resources.set(resource._id, resource);
        options.onWrite?.({ ...resource });
        return [201, { success: true, message: "created", data: record(resource, false) }];
      }
      case "update":
      case "delete": {
        const resource = resources.get(request.docId ?? "");
        if (resource === undefined || resource.isDeleted) return refuse(404, "no such resource");
        if (request.operation === "update") {
          if (resource.content === undefined ? body["content"] !== undefined : body["url"] !== undefined) {
            return refuse(400, "the other kind of resource");
          }
          for (const name of ["title", "description", "content", "url"] as const) {
            const value = name === "url" ? body[name] : normalised(name, body[name]);
            if (typeof value === "string") resource[name] = value;
          }
          Object.assign(resource, metadataIn(body));
          resource.refreshedAt = at;
        } else resource.isDeleted = true;
        resource.updatedAt = at;
        options.onWrite?.({ ...resource });
        return [200, { success: true, message: request.operation, data: record(resource, true) }];
      }
      case "list": {
        const owner = target.searchParams.get("ownerId");
        const collection = target.searchParams.get("collectionId");
        const found = (options.listed?.() ?? [...resources.values()]).filter(
          ({ isDeleted, ownerId, collectionId }) =>
            !isDeleted && ownerId === owner && collectionId === collection,
        );
        if (!Object.values(collections).includes(collection ?? "")) return refuse(404, "no such collection");
        const limit = Number(target.searchParams.get("limit") ?? found.length);
        const from = Number(target.searchParams.get("cursor") ?? 0);
        const page = options.paged === true ? found.slice(from, from + limit) : found;
        const nextCursor = from + limit < found.length ? String(from + limit) : null;
        const data = { resources: page.map((each) => record(each, true)), created: 0 };
        return [
          200,
          { success: true, message: "listed", data: options.paged === true ? { ...data, nextCursor } : data },
        ];
      }
      case "collections": {
        if (options.collections !== true) return refuse(404, "no such address");
        const list = Object.entries(collections).map(([details, _id]) => ({
          _id,
          details,
          resources: 0,
          chunks: 0,
        }));
        return [
          200,
          {
            success: true,
            data: {
              collections: list,
              reads: fake.reads,
              locations: fake.locations,
              ...(fake.takesMetadata && { metadata: true }),
            },
          },
        ];
      }
      case "read": {
        const resource = resources.get(request.docId ?? "");
        if (options.reads !== true) return refuse(404, "no such address");
        if (resource === undefined) return refuse(404, "no such resource");
        return [200, { success: true, message: "read", data: record(resource, true) }];
      }
      case "search": {
        if (options.searches !== true) return refuse(404, "no such address");
        const words = new Set(String(body["query"]).split(/\s+/));
        const results = [...resources.values()]
          .filter(
            ({ isDeleted, ownerId, collectionId }) =>
              !isDeleted && ownerId === body["owner_id"] && collectionId === body["collection_id"],
          )
          .map(({ _id, title, content = "", ownerId, collectionId }) => ({
            id: `${_id}-0`,
            version: 1,
            score: `${title} ${content}`.split(/\s+/).filter((word) => words.has(word)).length / words.size,
            payload: { resourceId: _id, collectionId, ownerId, content, title },
          }))
          .filter(({ score }) => score > 0)
          .sort((a, b) => b.score - a.score)
          .slice(0, Number(body["top_k"] ?? 5));
        return [200, { success: true, text: "", results }];
      }
      case "download":
      case "other":
        return refuse(404, "no such address");
    }
  };

  const fake: FakeService = {
    url,
    key: "secret",
    resources,
    uploads,
    requests,
    fault: () => undefined,
    takesMetadata: false,
    reads: [],
    locations: false,
    renameCollections: () => {
      for (const [tier, id] of Object.entries(collections)) collections[tier] = `d${id.slice(1)}`;
    },
    live: () =>
      [...resources.values()]
        .filter(({ isDeleted }) => !isDeleted)
        .sort((a, b) => (a.title < b.title ? -1 : 1)),
    count: (operation) => requests.filter((request) => request.operation === operation).length,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return fake;
}

function describe(number: number, incoming: IncomingMessage, target: URL, bytes: Buffer): FakeRequest {
  const { method = "GET", headers } = incoming;
  const { pathname: path, searchParams: query } = target;
  const docId = /^\/api\/rag\/resource\/([^/]+)$/.exec(path)?.[1];
  const isJson = headers["content-type"] === "application/json" && bytes.length > 0;
  const body = isJson ? (JSON.parse(bytes.toString("utf8")) as Record<string, unknown>) : undefined;
  return { number, operation: operationOf(method, path, docId), method, path, query, docId, headers, body };
}

function operationOf(method: string, path: string, docId: string | undefined): FakeRequest["operation"] {
  const name = `${method} ${path}`;
  if (name === "POST /image/processing/upload") return "upload";
  if (name === "POST /api/rag/resource") return "create";
  if (name === "GET /api/rag/resource/by-collection") return "list";
  if (name === "GET /api/rag/collections") return "collections";
  if (name === "POST /rag/query") return "search";
  if (method === "GET" && path.startsWith("/files/")) return "download";
  if (method === "PUT" && docId !== undefined) return "update";
  if (method === "DELETE" && docId !== undefined) return "delete";
  if (method === "GET" && docId !== undefined && !path.endsWith("/by-collection")) return "read";
  return "other";
}

const UNDER_WAY = [
  409,
  { success: false, message: "under way", error: { code: "idempotency_in_progress" } },
] as const;

function headerOf({ headers }: IncomingMessage): string | undefined {
  const key = headers["idempotency-key"];
  return Array.isArray(key) ? key[0] : key;
}

/** The bytes of the form's one file. */
function fileOf(body: Buffer, contentType: string): Buffer | undefined {
  const boundary = /boundary=(.+)$/.exec(contentType)?.[1];
  const start = body.indexOf("\r\n\r\n");
  const end = body.lastIndexOf(`\r\n--${boundary ?? ""}--`);
  return boundary === undefined || start === -1 || end < start ? undefined : body.subarray(start + 4, end);
}

/** The metadata that a body brings, if it does. */
function metadataIn({ metadata }: Record<string, unknown>): Pick<FakeResource, "metadata"> {
  return typeof metadata === "object" && metadata !== null ? { metadata: { ...metadata } } : {};
}
