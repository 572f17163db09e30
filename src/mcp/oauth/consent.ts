import { KbsyncError } from "../../lib/failure.ts";
import { KEY_NAME_CHARS_MAX } from "../../wire/key.ts";
import { type AuthorizationRequest, readAuthorization, redirectWith } from "./authorize.ts";
import type { Clients } from "./clients.ts";
import { openFailures, openSignatures } from "./consent-guard.ts";
import { consentPage, pageHeaders, refusalPage } from "./consent-page.ts";
import { type ReadBody, readForm } from "./form.ts";
import type { Grant } from "./grants.ts";
import { OAuthRefusal } from "./refusal.ts";

/** Longest key of a person. */
const KEY_CHARS_MAX = 4096;

/** Dependencies of the consent. */
export interface ConsentParts {
  readonly issuer: string;
  readonly resource: string;
  /** Path of the page and of its form. */
  readonly path: string;
  readonly clients: Clients;
  readonly nowMs: () => number;
  /** Derives a key from a person's. Throws the service's refusals. */
  readonly createGrant: (personKey: string, name: string, signal: AbortSignal) => Promise<Grant>;
  /** Returns a code for a grant that a person has allowed. */
  readonly issueCode: (request: AuthorizationRequest, grant: Grant) => Promise<string>;
}

/** Opens the authorization endpoint: shows people what a client asks for, and sends the client what they decide. */
export function openConsent(parts: ConsentParts): (request: Request, body: ReadBody) => Promise<Response> {
  const { issuer } = parts;
  const signatures = openSignatures(parts.nowMs);
  const failures = openFailures(parts.nowMs);

  const show = (request: AuthorizationRequest, status: number, problem?: string): Response => {
    const signed = signatures.sign(request);
    const facts = { signed, action: parts.path, ...(problem !== undefined && { problem }) };
    return new Response(consentPage(request, facts), { status, headers: pageHeaders(request.redirectUri) });
  };
  const tooMany = (request: AuthorizationRequest): Response => {
    const answer = show(request, 429, "There were too many failed attempts. Try again in a minute.");
    answer.headers.set("retry-after", "60");
    return answer;
  };
  const allow = async (
    asked: AuthorizationRequest,
    key: string,
    signal: AbortSignal,
  ): Promise<Grant | Response> => {
    if (key.length > KEY_CHARS_MAX || !/^[\x21-\x7e]+$/.test(key))
      return show(asked, 400, "Enter a key of the service.");
    if (!failures.begin()) return tooMany(asked);
    try {
      const name = `${asked.clientName} (${new URL(asked.clientId).host}, MCP)`;
      const grant = await parts.createGrant(key, name.slice(0, KEY_NAME_CHARS_MAX), signal);
      failures.succeed();
      return grant;
    } catch (error) {
      if (!(error instanceof KbsyncError)) throw error;
      return show(asked, error.retryable ? 503 : 403, problemOf(error));
    }
  };
  const decide = async (request: Request, body: ReadBody): Promise<Response> => {
    // The page's form alone has this origin; another site could send a person's browser here.
    if (request.headers.get("origin") !== issuer)
      throw new OAuthRefusal("invalid_request", "The form was not sent by the page of this server.");
    const form = await readForm(request, body);
    const asked = signatures.verify(form.get("request") ?? "");
    if (asked === undefined) throw new OAuthRefusal("invalid_request", "The page has expired.");
    const answer = (result: Readonly<Record<string, string>>): Response => {
      const location = redirectWith(asked, { ...result, iss: issuer });
      return new Response(null, { status: 303, headers: { ...pageHeaders(), location } });
    };
    if (form.get("decision") !== "allow") return answer({ error: "access_denied" });
    const grant = await allow(asked, (form.get("key") ?? "").trim(), request.signal);
    if (grant instanceof Response) return grant;
    return answer({ code: await parts.issueCode(asked, grant) });
  };

  return async (request, body) => {
    try {
      if (request.method !== "GET") return await decide(request, body);
      const { searchParams } = new URL(request.url);
      return show(await readAuthorization(searchParams, parts.resource, parts.clients, request.signal), 200);
    } catch (error) {
      if (!(error instanceof OAuthRefusal)) throw error;
      // Never a redirect: until a person has agreed, the address is only what somebody sent.
      return new Response(refusalPage(error.message), { status: 400, headers: pageHeaders() });
    }
  };
}

/** Describes a refusal of the service to the person with the key. */
function problemOf(error: KbsyncError): string {
  switch (error.code) {
    case "key_unknown":
      return "The service does not know this key.";
    case "key_expired":
      return "This key has expired.";
    case "scope_missing":
      return "This key may not read, or is one of a client.";
    case "service_unreachable":
      // Its message names what runs where.
      return "The knowledge base cannot be reached. Try again later.";
    default:
      return `The service refused the key: ${error.message}`;
  }
}
