import type { Readable } from "node:stream";
import { hash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { Logger } from "pino";
import { IDEMPOTENCY_HEADER, KEY_HEADER } from "../../wire/routes.ts";
import type { KnowledgeBase } from "../resources/knowledge-base.ts";
import type { KeyRecord, KeyScope } from "../store/store.ts";
import type { Admission } from "./admission.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { Idempotency, SentAnswer } from "./idempotency.ts";
import type { Keyring } from "./keyring.ts";

/** What every route works with. */
export interface HttpParts {
  readonly kb: KnowledgeBase;
  readonly keyring: Keyring;
  readonly idempotency: Idempotency;
  readonly admission: Admission;
  readonly log: Logger;
  /** Whether uploaded files are served only to keys of their account. */
  readonly filesNeedKey: boolean;
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
export type Answer =
  | { readonly status: number; readonly body: object; readonly resourceId?: string }
  | { readonly status: number; readonly stream: Readable; readonly resourceId?: string };

/** An operation of the specification, bound to a path. */
export interface Operation {
  readonly method: HTTPMethods;
  readonly url: string;
  readonly scope: KeyScope;
  /** Most bytes of a JSON body. */
  readonly bodyBytesMax?: number;
  /**
   * Makes `Idempotency-Key` honoured: answers once more for a resource whose first answer was too long to be kept.
   * Needs a JSON body, and the `resourceId` in what `handle` answers.
   */
  again?(accountId: string, resourceId: string): Promise<Answer>;
  handle(request: FastifyRequest, accountId: string): Promise<Answer>;
}

/** The content-type of every answer but a file. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** Adds an operation: the key is checked before the body is read; whatever `handle` throws becomes the error answer. */
export function addOperation(server: FastifyInstance, parts: HttpParts, operation: Operation): void {
  server.route({
    method: operation.method,
    url: operation.url,
    ...(operation.bodyBytesMax === undefined ? {} : { bodyLimit: operation.bodyBytesMax }),
    onRequest: requireKey(parts.keyring, operation.scope),
    handler: async (request, reply) => {
      const accountId = callerOf(request).accountId;
      const handle = async (): Promise<SentAnswer> => sentAnswer(await operation.handle(request, accountId));
      const key =
        operation.again === undefined ? undefined : readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
      if (key === undefined) return send(reply, await handle());
      const sha256 = hash("sha256", `${request.method} ${request.url} ${request.bodySha256}`, "hex");
      const again = async (id: string): Promise<SentAnswer> => {
        if (operation.again === undefined) throw new Error("the operation cannot answer again");
        return sentAnswer(await operation.again(accountId, id));
      };
      return send(reply, await parts.idempotency.once({ accountId, key, sha256 }, handle, again));
    },
  });
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
export function send(reply: FastifyReply, { status, body }: SentAnswer): FastifyReply {
  return sendJson(reply, status, body);
}

function sentAnswer(answer: Answer): SentAnswer {
  const { status, resourceId } = answer;
  const body = "body" in answer ? JSON.stringify(answer.body) : answer.stream;
  return resourceId === undefined ? { status, body } : { status, body, resourceId };
}
