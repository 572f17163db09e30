import type { FastifyInstance } from "fastify";
import { GrantAnswer, GrantBody, GrantEndAnswer, GrantRefreshBody } from "../../../wire/grant.ts";
import { ROUTES } from "../../../wire/routes.ts";
import { createGrant, endGrant, type NewGrant, refreshGrant } from "../../keys/grants.ts";
import { applyKeyChange } from "./key-routes.ts";
import { addOperation, answer, callerOf, routeConfig, sendJson } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";
import { readBody } from "../body/validate.ts";

const TAG = "Keys";

/** Adds the operations on derived keys (additions): create, refresh, end. */
export function addGrantRoutes(server: FastifyInstance, parts: HttpParts): void {
  const { kb, keyring } = parts;

  addOperation(server, parts, {
    method: "POST",
    url: ROUTES.grants,
    scope: "read",
    doc: {
      summary: "Derives a short-lived key with the scope read from the caller's key, for one client.",
      tag: TAG,
      body: GrantBody,
      answers: { 201: GrantAnswer },
    },
    handle: async (request) => {
      const made = await createGrant(kb, callerOf(request), readBody(GrantBody, request.body));
      // The new one may have removed others.
      keyring.clear();
      return answer(201, "Grant created successfully", shown(made));
    },
  });

  const refresh = {
    summary:
      "Replaces key and refresh token of a grant. A refresh token that was used before ends its grant.",
    tag: TAG,
    body: GrantRefreshBody,
    answers: { 200: GrantAnswer },
  };
  // The refresh token authenticates: the key has usually expired.
  server.post(
    `${ROUTES.grants}/refresh`,
    { config: routeConfig("none", refresh) },
    async (request, reply) => {
      const { refreshToken } = readBody(GrantRefreshBody, request.body);
      const made = await refreshGrant(kb, refreshToken, () => keyring.clear());
      const { body } = answer(200, "Grant refreshed successfully", shown(made));
      return sendJson(reply, 200, JSON.stringify(body));
    },
  );

  addOperation(server, parts, {
    method: "DELETE",
    url: ROUTES.grants,
    scope: "read",
    doc: {
      summary: "Ends the grant whose key is in the request.",
      tag: TAG,
      answers: { 200: GrantEndAnswer },
    },
    handle: async (request) => {
      const caller = callerOf(request);
      await endGrant(kb, caller);
      applyKeyChange(parts, caller.accountId);
      return answer(200, "Grant ended successfully", { _id: caller.id });
    },
  });
}

function shown({ key, refreshToken, record }: NewGrant) {
  const { id, grant, expiresAt } = record;
  // A grant has both times.
  return {
    _id: id,
    key,
    keyExpiresAt: earlier(grant?.accessUntil ?? "", expiresAt ?? ""),
    refreshToken,
    expiresAt: expiresAt ?? "",
  };
}

/** Returns the earlier of two times. */
function earlier(one: string, other: string): string {
  return Date.parse(one) < Date.parse(other) ? one : other;
}
