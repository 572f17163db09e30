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
import { codeOf } from "../../../lib/failure.ts";
import { IDEMPOTENCY_HEADER, KEY_HEADER } from "../../../wire/routes.ts";
import type { RequestContext } from "../../resources/request-context.ts";
import type { KnowledgeBase } from "../../resources/knowledge-base.ts";
import type { StoredAnswer } from "../../store/request-note.ts";
import { hasSessionCookie, readSessionCookie, refuseForeign } from "../../console/site.ts";
import { sessionEnded } from "../../console/sessions.ts";
import type { Sessions } from "../../console/sessions.ts";
import type { KeyRecord } from "../../store/accounts.ts";
import type { Admission, RequestKind } from "../limits/admission.ts";
import type { ResponseMemory, ResponseShare } from "../limits/response-memory.ts";
import { isKnown } from "../body/conditions.ts";
import { disconnectSignal } from "../limits/disconnect.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { Idempotency, SentAnswer } from "./idempotency.ts";
import type { Keyring, KeyNeed } from "./keyring.ts";
import type { RouteDoc } from "./route-table.ts";
import type { Urgent } from "../limits/urgent.ts";

/** The parts that every route uses. */
export interface HttpParts {
  readonly kb: KnowledgeBase;
  readonly keyring: Keyring;
  readonly sessions: Sessions;
  /** The address at which other machines reach the service, if there is one. */
  readonly publicUrl: string | undefined;
  /** The account whose keys may use the daemon's operations; undefined: there is no daemon. */
  readonly daemonAccountId: string | undefined;
  readonly idempotency: Idempotency;
  readonly admission: Admission;
  readonly responseMemory: ResponseMemory;
  readonly urgent: Urgent;
  readonly log: Logger;
  /** Whether uploaded files are served only to keys of their account. */
  readonly filesNeedKey: boolean;
  /** Maximum open connections from one address; see `limitConnections`. */
  readonly connectionsPerAddress: number;
  /** Maximum time for a request to arrive. */
  readonly requestMs: number;
  /** Maximum time that an answer waits for its client to read. */
  readonly answerIdleMs: number;
  /** Called at the end of each request; see `ServiceObserver`. */
  readonly onAnswered?: (operation: string, status: number | undefined, seconds: number) => void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** The key's record on routes that need a key; set before the body is read. */
    caller: KeyRecord | null;
    /** SHA-256 of a JSON body that came with an Idempotency-Key. */
    bodySha256: string | null;
  }
}

/** The answer of an operation: a JSON body, or a stream of JSON text. */
type Answer = (AnswerHead & { readonly status: number; readonly body: unknown }) | StreamedAnswer;

/** An answer as a stream of JSON text, whose contents the types do not check. */
export interface StreamedAnswer extends AnswerHead {
  readonly status: number;
  readonly stream: Readable;
}

interface AnswerHead {
  /** Tag of the resource that was read or written. A read with a known tag is answered 304. */
  readonly etag?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answers that a route's documentation allows: for each status the declared body, or a stream. */
export type DeclaredAnswer<A extends RouteDoc["answers"]> =
  | StreamedAnswer
  | {
      [S in keyof A & number]: A[S] extends z.ZodType
        ? AnswerHead & { readonly status: S; readonly body: DeepReadonly<z.infer<A[S]>> }
        : never;
    }[keyof A & number];

/** A type whose properties are readonly at all levels. */
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** Builds an answer in the form of the specification. */
export function answer<const S extends number, T extends object>(status: S, message: string, data: T) {
  return { status, body: { success: true, message, data } } as const;
}

/** Returns the id in the path of a route with the parameter `id`. */
export function idOf({ params }: FastifyRequest): string {
  return (params as { id: string }).id; // the callers' routes have this parameter
}

/** An operation of the specification, bound to a path. Its answers match its `doc`. */
export interface Operation<A extends RouteDoc["answers"] = RouteDoc["answers"]> {
  readonly method: HTTPMethods;
  readonly url: string;
  readonly scope: KeyNeed;
  /** Its description in the API document. */
  readonly doc: RouteDoc & { readonly answers: A };
  /** Maximum bytes of a JSON body. */
  readonly bodyBytesMax?: number;
  /**
   * Answers a repeated request from its note; the operation then supports `Idempotency-Key`. Requires a JSON body, and that
   * `handle` passes `context.request` to its write.
   */
  replay?(accountId: string, noted: StoredAnswer, share: ResponseShare): Promise<DeclaredAnswer<A>>;
  /**
   * Must count a long text of a stream in `share`; a body is counted automatically. `disconnected` returns a signal that aborts
   * if the client disconnects.
   */
  handle(
    request: FastifyRequest,
    accountId: string,
    context: RequestContext,
    share: ResponseShare,
    disconnected: () => AbortSignal,
  ): Promise<DeclaredAnswer<A>>;
}

/** The content-type of JSON answers. */
export const JSON_TYPE = "application/json; charset=utf-8";

/** Adds an operation. The key is checked before the body is read; an error of `handle` becomes the error answer. */
export function addOperation<const A extends RouteDoc["answers"]>(
  server: FastifyInstance,
  parts: HttpParts,
  operation: Operation<A>,
): void {
  server.route({
    method: operation.method,
    url: operation.url,
    ...(operation.bodyBytesMax === undefined ? {} : { bodyLimit: operation.bodyBytesMax }),
    onRequest: requireKey(parts, operation.scope),
    config: routeConfig(operation.scope, operation.doc),
    handler: async (request, reply) => {
      const accountId = callerOf(request).accountId;
      const share = openShare(parts, accountId, reply);
      const disconnected = (): AbortSignal => disconnectSignal(request, reply);
      const handle = async (context: RequestContext): Promise<SentAnswer> => {
        const answered = await operation.handle(request, accountId, context, share, disconnected);
        const sent = sentAnswer(request, answered);
        // A read changes nothing, so it can be refused and repeated.
        const isRead = operation.scope === "read" || operation.method === "GET";
        if (isRead && typeof sent.body === "string") {
          share.take(Buffer.byteLength(sent.body));
        }
        return sent;
      };
      const key =
        operation.replay === undefined ? undefined : readIdempotencyKey(request.headers[IDEMPOTENCY_HEADER]);
      if (key === undefined) return send(reply, await handle({}));
      const sha256 = requestSha256(request);
      const replay = async (noted: StoredAnswer): Promise<SentAnswer> => {
        if (operation.replay === undefined) throw new Error("the operation does not support replay");
        return sentAnswer(request, await operation.replay(accountId, noted, share));
      };
      const work = () => handle({ request: { key, bodySha256: sha256 } });
      return send(reply, await parts.idempotency.once({ accountId, key, sha256 }, work, replay));
    },
  });
}

/** Hashes a request with a JSON body, to distinguish requests with the same Idempotency-Key. */
export function requestSha256({ method, url, bodySha256 }: FastifyRequest): string {
  return hash("sha256", `${method} ${url} ${bodySha256}`, "hex");
}

/** Opens a share of the response memory, which is released at the end of the answer. */
function openShare({ responseMemory }: HttpParts, accountId: string, { raw }: FastifyReply): ResponseShare {
  const share = responseMemory.open(accountId);
  raw.once("close", () => share.release());
  // The event has passed if the client disconnected while the request was read and checked.
  if (raw.destroyed) share.release();
  return share;
}

/** Builds the config of a route for the route table. `requestKind`: by default derived from scope, method and body limit. */
export function routeConfig(
  scope: KeyNeed | "none",
  doc: RouteDoc | undefined,
  requestKind?: RequestKind,
): FastifyContextConfig {
  return {
    scope,
    ...(doc === undefined ? {} : { doc }),
    ...(requestKind === undefined ? {} : { requestKind }),
  };
}

/** The parts that check a caller. */
export type CallerParts = Pick<HttpParts, "keyring" | "sessions" | "publicUrl">;

/** Returns a hook that admits only keys with the scope, and the console's sessions of such keys. Sets `request.caller`. */
export function requireKey(parts: CallerParts, scope: KeyNeed) {
  return async (request: FastifyRequest): Promise<void> => {
    const header = request.headers[KEY_HEADER];
    const isSession = header === undefined && hasSessionCookie(request.headers);
    const found = isSession ? callerOfSession(parts, request, scope) : parts.keyring.check(header, scope);
    request.caller = found instanceof Promise ? await found : found;
  };
}

/** Throws `host_refused`, `cross_site`, `session_ended`, and what `Keyring.check` throws for a valid key. */
async function callerOfSession(
  { keyring, sessions, publicUrl }: CallerParts,
  { method, headers }: FastifyRequest,
  scope: KeyNeed,
): Promise<KeyRecord> {
  const token = readSessionCookie(headers, refuseForeign({ method, headers }, publicUrl));
  if (token === undefined) throw sessionEnded();
  try {
    return await keyring.checkHash(await sessions.keyOf(token), scope);
  } catch (error) {
    // The session ends with its key.
    const code = codeOf(error);
    throw code === "key_unknown" || code === "key_expired" ? sessionEnded(error) : error;
  }
}

/** Returns the key's record, on a route with `requireKey`. */
export function callerOf(request: FastifyRequest): KeyRecord {
  if (request.caller === null) throw new Error("the route has no requireKey hook");
  return request.caller;
}

/** Sends a body of JSON text. */
export function sendJson(reply: FastifyReply, status: number, body: string | Readable): FastifyReply {
  return reply.code(status).header("content-type", JSON_TYPE).send(body);
}

/** Sends an answer, first or replayed. */
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
