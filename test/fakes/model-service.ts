import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hashedEmbedder } from "./hashed-embedder.ts";

/** A request as the service got it. */
export interface ModelRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  // Tests look at it field by field; what is not there shows as undefined.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any;
}

/** An answer in place of the honest one; `hang`: none at all. */
export type Misbehaviour =
  | "hang"
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: unknown };

/** A service of models on a free port of this machine. */
export interface ModelService {
  /** Up to the version. */
  readonly baseUrl: string;
  readonly requests: ModelRequest[];
  /** Asked before each answer; undefined answers honestly. */
  misbehave: (request: ModelRequest) => Misbehaviour | undefined;
  close(): Promise<void>;
}

/**
 * `POST /v1/embeddings` in OpenAI's form, answered by the hashed embedder, not of unit length and in backward order, as the form
 * allows; `POST /v1/rerank` in Jina's form, by the share of the query's words in a document, best first. Both want the
 * key.
 */
export async function openModelService(key: string): Promise<ModelService> {
  const embedder = hashedEmbedder();
  const requests: ModelRequest[] = [];

  const embeddings = async (input: readonly string[]): Promise<unknown> => {
    const vectors = await embedder.embed(input);
    const data = vectors.map((vector, index) => ({
      index,
      embedding: [...vector].map((value) => value * 3),
    }));
    return { data: data.toReversed(), usage: { total_tokens: 10 * input.length } };
  };
  const rerank = (query: string, documents: readonly string[]): unknown => {
    const asked = wordsOf(query);
    const results = documents.map((text, index) => {
      const there = wordsOf(text);
      return { index, relevance_score: asked.filter((word) => there.includes(word)).length / asked.length };
    });
    return { results: results.toSorted((a, b) => b.relevance_score - a.relevance_score) };
  };
  const honest = async ({ path, headers, json }: ModelRequest): Promise<Misbehaviour> => {
    if (headers["authorization"] !== `Bearer ${key}`) {
      const message = `Incorrect key: ${headers["authorization"] ?? "none"}`;
      return { status: 401, body: { error: { message } } };
    }
    if (path === "/v1/embeddings") return { body: await embeddings(json.input) };
    if (path === "/v1/rerank") return { body: rerank(json.query, json.documents) };
    return { status: 404, body: { detail: "Not Found" } };
  };

  const service: ModelService = {
    baseUrl: "",
    requests,
    misbehave: () => undefined,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const answer = async (request: ModelRequest, response: ServerResponse): Promise<void> => {
    const given = service.misbehave(request) ?? (await honest(request));
    if (given === "hang") return;
    const { status = 200, headers = {}, body = {} } = given;
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  const server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const request: ModelRequest = {
        path: incoming.url ?? "",
        headers: { authorization: incoming.headers.authorization },
        json: JSON.parse(Buffer.concat(parts).toString("utf8")),
      };
      requests.push(request);
      void answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return Object.assign(service, { baseUrl: `http://127.0.0.1:${port}/v1` });
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}
