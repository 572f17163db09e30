import { oauthMetadataResponse } from "@modelcontextprotocol/server";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { openClients, type ReadDocument } from "./clients.ts";
import { openCodes } from "./codes.ts";
import { openConsent } from "./consent.ts";
import type { ReadBody } from "./form.ts";
import type { Grant, Grants } from "./grants.ts";
import { isSealed, openTokenSeal } from "./sealed-token.ts";
import { openTokenEndpoint } from "./token-endpoint.ts";

const AUTHORIZE_PATH = "/oauth/authorize";
const TOKEN_PATH = "/oauth/token";
const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";
/** The rights of a token, as a scope of the service's keys. */
const SCOPE = "read";
/** Time to end a grant. The request that causes it may be over before. */
const END_MS = 10_000;

/** Options of the authorization server. */
export interface OAuthOptions {
  /** Origin by which clients reach the server: `https://kb.example`. */
  readonly publicUrl: string;
  /** Path of the MCP endpoint. */
  readonly mcpPath: string;
  /** Hides the service's secrets in tokens. Must outlive restarts, or they end all tokens. */
  readonly secret: string;
  readonly grants: Grants;
  /** Reads metadata documents of clients. Must refuse private addresses and bound size and time. */
  readonly readDocument: ReadDocument;
  readonly nowMs: () => number;
  /** Called with unexpected failures. */
  readonly onDefect: (error: unknown) => void;
}

/** The authorization server of one MCP endpoint. */
export interface OAuthServer {
  /** Address of the protected-resource metadata, for `WWW-Authenticate`. */
  readonly metadataUrl: string;
  /** Answers a request to a path of the server; undefined: the path is none. `body` reads the form. */
  answer(request: Request, body: ReadBody): Promise<Response | undefined>;
  /** Returns the service's key for a bearer token; undefined for a token of another resource. */
  keyOf(token: string): string | undefined;
}

/**
 * Opens the authorization server: the authorization code with PKCE, for public clients with a metadata document, per the MCP
 * specification (https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization). A person signs in with a key of
 * the service, from which the service derives the client's.
 */
export function openOAuthServer(options: OAuthOptions): OAuthServer {
  const { grants, nowMs } = options;
  const issuer = new URL(options.publicUrl).origin;
  const resource = issuer + options.mcpPath;
  const codes = openCodes(nowMs);
  const seal = openTokenSeal(options.secret);
  const accessAudience = ["access", resource];
  const metadata = {
    resourceServerUrl: new URL(resource),
    scopesSupported: [SCOPE],
    resourceName: "kbsync knowledge base",
    oauthMetadata: {
      issuer,
      authorization_endpoint: issuer + AUTHORIZE_PATH,
      token_endpoint: issuer + TOKEN_PATH,
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      scopes_supported: [SCOPE],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
    },
  };

  const endGrant = async ({ refreshToken }: Grant): Promise<void> => {
    const signal = AbortSignal.timeout(END_MS);
    try {
      // The key may have been replaced since. If so, this refresh is the token's second use, which ends the grant.
      const { key } = await grants.refresh(refreshToken, signal);
      await grants.end(key, signal);
    } catch (error) {
      if (codeOf(error) !== "key_unknown") throw error;
    }
  };
  const endUnused = async (): Promise<void> => {
    for (const { grant } of codes.sweep()) {
      try {
        await endGrant(grant);
      } catch (error) {
        // Nobody knows its tokens, so it ends by its time.
        if (!(error instanceof KbsyncError)) options.onDefect(error);
      }
    }
  };
  const authorize = openConsent({
    issuer,
    resource,
    path: AUTHORIZE_PATH,
    clients: openClients(options.readDocument, nowMs),
    nowMs,
    createGrant: grants.create,
    issueCode: async (request, grant) => {
      await endUnused();
      return codes.issue({ request, grant });
    },
  });
  const exchange = openTokenEndpoint({
    resource,
    scope: SCOPE,
    codes,
    nowMs,
    tokensOf: ({ key, refreshToken }, clientId) => ({
      access_token: seal.seal(key, accessAudience),
      refresh_token: seal.seal(refreshToken, ["refresh", resource, clientId]),
    }),
    openRefreshToken: (token, clientId) => seal.open(token, ["refresh", resource, clientId]),
    refreshGrant: grants.refresh,
    endGrant,
  });

  return {
    metadataUrl: `${issuer}${RESOURCE_METADATA_PATH}${options.mcpPath}`,
    answer: async (request, body) => {
      const url = new URL(request.url);
      // Clients that ignore `resource_metadata` look here as well.
      if (url.pathname === RESOURCE_METADATA_PATH) url.pathname += options.mcpPath;
      const { method, headers } = request;
      if (url.pathname.startsWith("/.well-known/"))
        return oauthMetadataResponse(new Request(url, { method, headers }), metadata);
      const answerOf = { [AUTHORIZE_PATH]: authorize, [TOKEN_PATH]: exchange }[url.pathname];
      if (answerOf === undefined) return undefined;
      const isAllowed = method === "POST" || (method === "GET" && url.pathname === AUTHORIZE_PATH);
      return isAllowed ? answerOf(request, body) : new Response(null, { status: 405 });
    },
    keyOf: (token) => (isSealed(token) ? seal.open(token, accessAudience) : token),
  };
}
