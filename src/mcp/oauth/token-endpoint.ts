import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { refuseOtherResource } from "./authorize.ts";
import { boundToken, secretOf } from "./bound-token.ts";
import { type Codes, isVerifierOf } from "./codes.ts";
import { type ReadBody, readForm } from "./form.ts";
import type { Grant } from "./grants.ts";
import { OAuthRefusal } from "./refusal.ts";

/** What the endpoint needs. */
export interface TokenParts {
  readonly resource: string;
  /** What a token allows. */
  readonly scope: string;
  readonly codes: Codes;
  readonly nowMs: () => number;
  /** Throws the service's refusals. */
  readonly refreshGrant: (refreshToken: string, signal: AbortSignal) => Promise<Grant>;
  readonly endGrant: (grant: Grant, signal: AbortSignal) => Promise<void>;
}

/** Opens the token endpoint, which gives tokens for codes and for refresh tokens. */
export function openTokenEndpoint(
  parts: TokenParts,
): (request: Request, body: ReadBody) => Promise<Response> {
  const { resource, codes } = parts;

  const grantFor = async (form: ReadonlyMap<string, string>, signal: AbortSignal): Promise<Grant> => {
    const clientId = form.get("client_id") ?? "";
    switch (form.get("grant_type")) {
      case "authorization_code": {
        const taken = codes.take(form.get("code") ?? "");
        if (taken === undefined)
          throw new OAuthRefusal("invalid_grant", "The code is not known, or has expired.");
        const { request, grant } = taken.issued;
        const isMeant =
          !taken.replayed &&
          clientId === request.clientId &&
          form.get("redirect_uri") === request.redirectUri &&
          isVerifierOf(form.get("code_verifier") ?? "", request.challenge);
        if (isMeant) return grant;
        // Somebody else has the code: whoever got tokens for it loses them.
        await parts.endGrant(grant, signal);
        throw new OAuthRefusal("invalid_grant", "The code was used before, or belongs to another request.");
      }
      case "refresh_token": {
        const secret = secretOf(form.get("refresh_token") ?? "", [resource, clientId]);
        if (secret !== undefined) return parts.refreshGrant(secret, signal);
        throw new OAuthRefusal("invalid_grant", "The refresh token is none of this client and server.");
      }
      case undefined:
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
      const { key, keyExpiresAt, refreshToken } = await grantFor(form, request.signal);
      const tokens = {
        access_token: boundToken(key, [resource]),
        token_type: "Bearer",
        expires_in: Math.max(0, Math.floor((Date.parse(keyExpiresAt) - parts.nowMs()) / 1000)),
        refresh_token: boundToken(refreshToken, [resource, form.get("client_id") ?? ""]),
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

function failureOf(error: unknown): Pick<OAuthRefusal, "code" | "message"> {
  if (error instanceof OAuthRefusal) return error;
  if (!(error instanceof KbsyncError)) throw error;
  if (codeOf(error) === "key_unknown") return { code: "invalid_grant", message: "The grant has ended." };
  return { code: "temporarily_unavailable", message: error.message };
}
