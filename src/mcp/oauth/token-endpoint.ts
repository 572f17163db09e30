import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { refuseOtherResource } from "./authorize.ts";
import { type Codes, isVerifierOf } from "./codes.ts";
import { type ReadBody, readForm } from "./form.ts";
import type { Grant } from "./grants.ts";
import { OAuthRefusal } from "./refusal.ts";

/** Dependencies of the endpoint. */
export interface TokenParts {
  readonly resource: string;
  /** The rights of a token. */
  readonly scope: string;
  readonly codes: Codes;
  readonly nowMs: () => number;
  /** Throws the service's refusals. */
  readonly refreshGrant: (refreshToken: string, signal: AbortSignal) => Promise<Grant>;
  readonly endGrant: (grant: Grant) => Promise<void>;
  readonly tokensOf: (grant: Grant, clientId: string) => Record<"access_token" | "refresh_token", string>;
  /** Returns the service's refresh token; undefined for a token of another client or server. */
  readonly openRefreshToken: (token: string, clientId: string) => string | undefined;
}

/** Opens the token endpoint, which gives tokens for codes and for refresh tokens. */
export function openTokenEndpoint(
  parts: TokenParts,
): (request: Request, body: ReadBody) => Promise<Response> {
  const { resource, codes } = parts;

  const grantFor = async (
    form: ReadonlyMap<string, string>,
    clientId: string,
    signal: AbortSignal,
  ): Promise<Grant> => {
    switch (valueOf(form, "grant_type")) {
      case "authorization_code": {
        const [code, verifier] = [valueOf(form, "code"), valueOf(form, "code_verifier")];
        const taken = codes.take(code);
        if (taken === undefined)
          throw new OAuthRefusal("invalid_grant", "The code is not known, or has expired.");
        const { request, grant } = taken.issued;
        const isMeant =
          !taken.replayed &&
          clientId === request.clientId &&
          // OAuth 2.1 no longer sends it: PKCE binds the code to who asked for it.
          [undefined, request.redirectUri].includes(form.get("redirect_uri")) &&
          isVerifierOf(verifier, request.challenge);
        if (isMeant) return grant;
        // Somebody else has the code: the tokens that were issued for it are revoked.
        await parts.endGrant(grant);
        throw new OAuthRefusal("invalid_grant", "The code was used before, or belongs to another request.");
      }
      case "refresh_token": {
        const secret = parts.openRefreshToken(valueOf(form, "refresh_token"), clientId);
        if (secret !== undefined) return parts.refreshGrant(secret, signal);
        throw new OAuthRefusal("invalid_grant", "The refresh token is none of this client and server.");
      }
      default:
        throw new OAuthRefusal(
          "unsupported_grant_type",
          "grant_type must be authorization_code or refresh_token.",
        );
    }
  };
  return async (request, body) => {
    try {
      const form = await readForm(request, body);
      const given = form.get("resource");
      if (given !== undefined) refuseOtherResource(given, resource);
      const clientId = valueOf(form, "client_id");
      const grant = await grantFor(form, clientId, request.signal);
      const tokens = {
        ...parts.tokensOf(grant, clientId),
        token_type: "Bearer",
        expires_in: Math.max(0, Math.floor((Date.parse(grant.keyExpiresAt) - parts.nowMs()) / 1000)),
        scope: parts.scope,
      };
      return Response.json(tokens, { headers: NO_STORE });
    } catch (error) {
      const { code, message } = failureOf(error);
      const status = code === "temporarily_unavailable" ? 503 : 400;
      return Response.json({ error: code, error_description: message }, { status, headers: NO_STORE });
    }
  };
}

const NO_STORE = { "cache-control": "no-store", pragma: "no-cache" };

/** Throws if the form lacks a value (RFC 6749, 3.2: an empty one counts as none). */
function valueOf(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value !== undefined && value !== "") return value;
  throw new OAuthRefusal("invalid_request", `${name} is missing.`);
}

function failureOf(error: unknown): Pick<OAuthRefusal, "code" | "message"> {
  if (error instanceof OAuthRefusal) return error;
  if (!(error instanceof KbsyncError)) throw error;
  if (codeOf(error) === "key_unknown") return { code: "invalid_grant", message: "The grant has ended." };
  // Its message could name what runs where.
  return { code: "temporarily_unavailable", message: "The knowledge base cannot be reached." };
}
