import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { CONSOLE_HEADER, ROUTES } from "../../../wire/routes.ts";
import { LinkAnswer, LinkBody, MeAnswer, SessionBody, SignedOutAnswer } from "../../../wire/session.ts";
import type { Me } from "../../../wire/session.ts";
import { readSessionCookie, refuseForeign, sessionCookie } from "../../console/site.ts";
import { hashKey } from "../../keys/keys.ts";
import { invalidField } from "../../resources/refusal.ts";
import type { KeyRecord } from "../../store/accounts.ts";
import { addOperation, answer, callerOf, routeConfig, sendJson } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Console";
const HEADERS_DOC = {
  [CONSOLE_HEADER]: "1. Browsers add Sec-Fetch-Site and Origin, which must be of the console itself.",
};

/** Adds the routes that sign in to the console and out again, and the one that says who the caller is (additions). */
export function addSessionRoutes(server: FastifyInstance, parts: HttpParts): void {
  addOperation(server, parts, {
    method: "GET",
    url: ROUTES.me,
    scope: "any",
    doc: { summary: "Returns the caller's key and account.", tag: "Keys", answers: { 200: MeAnswer } },
    handle: async (request) => answer(200, "Key fetched successfully", shownCaller(parts, callerOf(request))),
  });

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.consoleLinks,
    scope: "any",
    doc: {
      summary: "Creates a link that signs in to the console once, with the caller's key.",
      tag: TAG,
      body: LinkBody,
      answers: { 201: LinkAnswer },
    },
    handle: async (request) => {
      const { lifeSeconds } = readBody(LinkBody, request.body ?? {});
      const { token, expiresMs } = await parts.sessions.issueLink(
        callerOf(request).sha256,
        lifeSeconds * 1000,
      );
      return answer(201, "Link created successfully", {
        token,
        expiresAt: new Date(expiresMs).toISOString(),
      });
    },
  });

  server.post(
    ROUTES.consoleSession,
    {
      onRequest: async (request) => void originOf(parts, request),
      config: routeConfig("none", {
        summary: "Signs in to the console: exchanges a key or a link for a session cookie.",
        tag: TAG,
        body: SessionBody,
        headers: HEADERS_DOC,
        answers: { 200: MeAnswer },
      }),
    },
    async (request, reply) => {
      const record = await signedIn(parts, readBody(SessionBody, request.body));
      const { token } = await parts.sessions.open(record.sha256);
      setCookie(reply, originOf(parts, request), token);
      const { body } = answer(200, "Signed in successfully", shownCaller(parts, record));
      return sendJson(reply, 200, JSON.stringify(body));
    },
  );

  server.delete(
    ROUTES.consoleSession,
    {
      onRequest: async (request) => void originOf(parts, request),
      config: routeConfig("none", {
        summary: "Signs out of the console.",
        tag: TAG,
        headers: HEADERS_DOC,
        answers: { 200: SignedOutAnswer },
      }),
    },
    async (request, reply) => {
      const token = readSessionCookie(request.headers, refuseForeign(request, parts.publicUrl));
      if (token !== undefined) await parts.sessions.end(token);
      setCookie(reply, originOf(parts, request), "");
      return sendJson(reply, 200, JSON.stringify(answer(200, "Signed out successfully", {}).body));
    },
  );
}

/** Returns the origin of the console that sent a write. Throws `host_refused` and `cross_site`. */
function originOf({ publicUrl }: HttpParts, request: FastifyRequest): string {
  refuseForeign(request, publicUrl);
  return request.headers.origin ?? ""; // a write has one
}

function setCookie(reply: FastifyReply, origin: string, token: string): void {
  reply.header("set-cookie", sessionCookie(origin, token)).header("cache-control", "no-store");
}

/** Returns the record of the key, or of the link's key. Throws as `Keyring.check`, and `sign_in_link_ended`. */
async function signedIn({ keyring, sessions }: HttpParts, { key, link }: SessionBody): Promise<KeyRecord> {
  if ((key === undefined) === (link === undefined)) throw invalidField("key", "expected either key or link");
  return keyring.checkHash(link === undefined ? hashKey(key ?? "") : await sessions.redeemLink(link), "any");
}

function shownCaller({ daemonAccountId }: HttpParts, record: KeyRecord): Me {
  const { id, name, hint, scopes, expiresAt, accountId } = record;
  return {
    accountId,
    key: { _id: id, name, hint, scopes: [...scopes], expiresAt },
    daemon: accountId === daemonAccountId && scopes.includes("admin"),
  };
}
