/**
 * A service that answers at once and does nothing else, in a process of its own: what the daemon costs can then be measured
 * from what a service costs. With `keep` it remembers resources, so that a list shows them; without it does not even
 * read what it is sent.
 */
import { fork } from "node:child_process";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { ROUTES } from "../src/wire/routes.ts";

/** Requests so far. */
export interface Counts {
  readonly creates: number;
  readonly updates: number;
  readonly deletes: number;
  readonly lists: number;
  /** Bytes of all bodies. */
  readonly bytes: number;
}

export interface PlainService {
  readonly url: string;
  readonly pid: number;
  counts(): Promise<Counts>;
  close(): void;
}

export const OWNER = "bench";
const COLLECTION = "c".repeat(24);

/** Starts it. */
export async function openPlainService({ keep = false } = {}): Promise<PlainService> {
  const child = fork(fileURLToPath(import.meta.url), ["serve", keep ? "keep" : ""]);
  const port = await new Promise<number>((resolve) => {
    child.once("message", (message) => resolve(Number(message)));
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    pid: child.pid ?? 0,
    counts: async () => (await (await fetch(`${url}/counts`)).json()) as Counts, // what `serve` answers below
    close: () => void child.kill(),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === "serve")
  serve(process.argv[3] === "keep");

interface Kept {
  readonly _id: string;
  readonly title: string;
  readonly description: string;
  readonly content: string;
  readonly createdAt: string;
}

function serve(keep: boolean): void {
  const counts = { creates: 0, updates: 0, deletes: 0, lists: 0, bytes: 0 };
  const kept = new Map<string, Kept>();

  const dataOf = (method: string, path: string, body: string): unknown => {
    const id = path.split("/")[4] ?? "";
    if (path === "/api/rag/collections") {
      return { collections: [{ _id: COLLECTION, details: "fastest", resources: kept.size, chunks: 0 }] };
    }
    if (path === "/counts") return undefined;
    if (method === "GET") {
      counts.lists += 1;
      return { resources: [...kept.values()].map(recordOf), created: 0 };
    }
    if (method === "DELETE") {
      counts.deletes += 1;
      kept.delete(id);
      return { _id: id };
    }
    if (path.endsWith(ROUTES.query)) return undefined;
    if (method === "PUT") counts.updates += 1;
    else counts.creates += 1;
    const at = new Date().toISOString();
    const before = kept.get(id) ?? {
      _id: method === "PUT" ? id : counts.creates.toString(16).padStart(24, "0"),
      title: "",
      description: "",
      content: "",
      createdAt: at,
    };
    if (!keep) return recordOf(before);
    const now = { ...before, ...(JSON.parse(body) as Partial<Kept>) };
    const { _id, title, description, content, createdAt } = now;
    kept.set(_id, { _id, title, description, content, createdAt });
    return recordOf({ _id, title, description, content: "", createdAt });
  };

  const server = createServer((request, response) => {
    read(request, keep, (body, bytes) => {
      counts.bytes += bytes;
      const { method = "GET", url = "/" } = request;
      const data = dataOf(method, url.split("?")[0] ?? "/", body);
      response.setHeader("content-type", "application/json");
      response.statusCode = method === "POST" ? 201 : 200;
      const isSearch = url.endsWith(ROUTES.query);
      const answer = isSearch
        ? { success: true, text: "", results: [] }
        : { success: true, message: "done", data };
      response.end(JSON.stringify(url === "/counts" ? counts : answer));
    });
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
}

/** Hands over the body, or its length alone. */
function read(request: IncomingMessage, keep: boolean, done: (body: string, bytes: number) => void): void {
  let body = "";
  let bytes = 0;
  if (keep) request.setEncoding("utf8");
  request.on("data", (piece: string | Buffer) => {
    bytes += piece.length;
    if (typeof piece === "string") body += piece;
  });
  request.on("end", () => done(body, bytes));
}

function recordOf({ _id, title, description, content, createdAt }: Kept): object {
  return {
    _id,
    title,
    description,
    ...(content !== "" && { content }),
    collectionId: COLLECTION,
    ownerId: OWNER,
    refreshedAt: null,
    isDeleted: false,
    settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
    createdAt,
    updatedAt: createdAt,
  };
}
