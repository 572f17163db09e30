import type { Readable } from "node:stream";
import { hash } from "node:crypto";
import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
} from "fastify";
import type { Logger } from "pino";
import type { z } from "zod";
import { IDEMPOTENCY_HEADER, KEY_HEADER } from "../../wire/routes.ts";
import type { RequestContext } from "../resources/request-context.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import type { StoredAnswer } from "../store/request-note.ts";
import type { KeyRecord, KeyScope } from "../store/records.ts";
import type { Admission, RequestKind } from "./admission.ts";
import type { ResponseMemory, ResponseShare } from "./response-memory.ts";
import { isKnown } from "./conditions.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { Idempotency, SentAnswer } from "./idempotency.ts";
import type { Keyring } from "./keyring.ts";
import type { RouteDoc } from "./route-table.ts";
import type { Urgent } from "./urgent.ts";

/** What every route works with. */
export interface HttpParts {
  readonly kb: KnowledgeBase;
  readonly keyring: Keyring;
  readonly idempotency: Idempotency;
  readonly admission: Admission;
  readonly responseMemory: ResponseMemory;
  readonly urgent: Urgent;
  readonly log: Logger;
  /** Whether uploaded files are served only to keys of their account. */
  readonly filesNeedKey: boolean;
  /** Connections open at once from one address; see `limitConnections`. */
  readonly connectionsPerAddress: number;
  /** How long a request may take to arrive; a bulk create, between two of its bytes. */
  readonly requestMs: number;
  /** How long a bulk create may take in all. */
  readonly bulkMs: number;
  /** How long an answer may wait for its client to read on. */
  readonly answerIdleMs: number;
  /** Notified of each request that is over; see `ServiceObserver`. */
  readonly onAnswered?: (operation: string, status: number | undefined, seconds: number) => void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** The key's record on routes that need a key; set before the body is read. */
    caller: KeyRecord | null;
    /** SHA-256 of the body's bytes, where an Idempotency-Key came with a JSON body. */
    bodySha256: string | null;
  }
}

/** What an operation answers: a JSON body, or a stream of JSON text. */
type Answer = (AnswerHead & { readonly status: number; readonly body: unknown }) | StreamedAnswer;

/** Of what its stream says, nothing is checked by its type. */
export interface StreamedAnswer extends AnswerHead {
  readonly status: number;
  readonly stream: Readable;
}

interface AnswerHead {
  /** Of what was read or written: a read that knows it is answered 304. */
  readonly etag?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a route may answer by what the API document says of it: for each status the body that is declared, or a stream. */
export type DeclaredAnswer<A extends RouteDoc["answers"]> =
  | StreamedAnswer
  | {
      [S in keyof A & number]: A[S] extends z.ZodType
        ? AnswerHead & { readonly status: S; readonly body: DeepReadonly<z.infer<A[S]>> }
        : never;
    }[keyof A & number];

/** A type with everything in it readonly. */
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** An answer in the specification's form. */
export function answer<const S extends number, T extends object>(status: S, message: string, data: T) {
  return { status, body: { success: true, message, data } } as const;
}

/** The id in the path of a route with the parameter `id`. */
export function idOf({ params }: FastifyRequest): string {
  return (params as { id: string }).id; // the routes that ask have this parameter
}

/** An operation of the specification, bound to a path. It answers what its `doc` declares. */
export interface Operation<A extends RouteDoc["answers"] = RouteDoc["answers"]> {
  readonly method: HTTPMethods;
  readonly url: string;
  readonly scope: KeyScope;
  /** What the API document says of it. */
  readonly doc: RouteDoc & { readonly answers: A };
  /** Most bytes of a JSON body. */
  readonly bodyBytesMax?: number;
  /**
   * Makes `Idempotency-Key` honoured: answers once more from what was noted. Needs a JSON body, and that `handle` gives
   * the request it gets to the write it makes.
   */
  again?(accountId: string, kept: StoredAnswer, share: ResponseShare): Promise<DeclaredAnswer<A>>;
  /** `share`: where a long text of a stream is counted; a body is counted by itself. */
  handle(
    request: FastifyRequest,
    accountId: string,
    context: RequestContext,
    share: ResponseShare,
  ): Promise<DeclaredAnswer<A>>;
}

/** The content-type of every answer but a file. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** Adds an operation: the key is checked before the body is read; whatever `handle` throws becomes the error answer. */
export function addOperation<const A extends RouteDoc["answers"]>(
  server: FastifyInstance,
  parts: HttpParts,
  operation: Operation<A>,
): void {
  server.route({
    method: operation.method,
    url: operation.url,
    ...(operation.bodyBytesMax === undefined ? {} : { bodyLimit: operation.bodyBytesMax }),
    onRequest: requireKey(parts.keyring, operation.scope),
    config: routeConfig(operation.scope, operation.doc),
    handler: async (request, reply) => {
      const accountId = callerOf(request).accountId;
      const share = openShare(parts, accountId, reply);
      const handle = async (context: RequestContext): Promise<SentAnswer> => {
        const sent = sentAnswer(request, await operation.handle(request, accountId, context, share));
        // Nothing was changed by a read: it can be asked again.
        const isRead = operation.scope === "read" || operation.method === "GET";
        if (isRead && typeof sent.body === "string") {
          share.take(Buffer.byteLength(sent.body));
        }
        return sent;
      };
      const key =
        operation.again === undefined ? undefined : readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
      if (key === undefined) return send(reply, await handle({}));
      const sha256 = requestSha256(request);
      const again = async (kept: StoredAnswer): Promise<SentAnswer> => {
        if (operation.again === undefined) throw new Error("the operation cannot answer again");
        return sentAnswer(request, await operation.again(accountId, kept, share));
      };
      const work = () => handle({ request: { key, bodySha256: sha256 } });
      return send(reply, await parts.idempotency.once({ accountId, key, sha256 }, work, again));
    },
  });
}

/** Hash that distinguishes requests with the same Idempotency-Key, on a route with a JSON body. */
export function requestSha256({ method, url, bodySha256 }: FastifyRequest): string {
  return hash("sha256", `${method} ${url} ${bodySha256}`, "hex");
}

/** A share of the room for answers, until the answer is over. */
function openShare({ responseMemory }: HttpParts, accountId: string, { raw }: FastifyReply): ResponseShare {
  const share = responseMemory.open(accountId);
  raw.once("close", () => share.release());
  // Gone while the request was read and checked: that event has been.
  if (raw.destroyed) share.release();
  return share;
}

/** What a route tells the route table of itself. `brings`: what its requests bring; default: by scope, method and limit. */
export function routeConfig(
  scope: KeyScope | "none",
  doc: RouteDoc | undefined,
  brings?: RequestKind,
): FastifyContextConfig {
  return { scope, ...(doc === undefined ? {} : { doc }), ...(brings === undefined ? {} : { brings }) };
}

/** A hook that lets only keys with the scope pass, and notes whose it is. */
export function requireKey(keyring: Keyring, scope: KeyScope) {
  return async (request: FastifyRequest): Promise<void> => {
    const found = keyring.check(request.headers[KEY_HEADER], scope);
    request.caller = found instanceof Promise ? await found : found;
  };
}

/** Whose key it is, on a route behind `requireKey`. */
export function callerOf(request: FastifyRequest): KeyRecord {
  if (request.caller === null) throw new Error("the route has no requireKey hook");
  return request.caller;
}

/** Sends a body that is JSON text already. */
export function sendJson(reply: FastifyReply, status: number, body: string | Readable): FastifyReply {
  return reply.code(status).header("content-type", JSON_TYPE).send(body);
}

/** Sends what an idempotency key stands for, or would. */
export function send(reply: FastifyReply, { status, body, headers }: SentAnswer): FastifyReply {
  if (headers !== undefined) reply.headers(headers);
  return status === 304 ? reply.code(304).send() : sendJson(reply, status, body);
}

function sentAnswer(request: FastifyRequest, given: Answer): SentAnswer {
  const { status, etag } = given;
  const headers = { ...given.headers, ...(etag === undefined ? {} : { etag }) };
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (isRead && etag !== undefined && isKnown(request.headers, etag)) {
    return { status: 304, body: "", headers };
  }
  return { status, headers, body: "body" in given ? JSON.stringify(given.body) : given.stream };
}
