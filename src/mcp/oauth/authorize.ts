import { z } from "zod";
import { type Clients, mayRedirect } from "./clients.ts";
import { OAuthRefusal, singleParams } from "./refusal.ts";

/** Longest state of a client. */
const STATE_CHARS_MAX = 2000;

/** A request for access that was checked. */
export const AuthorizationRequest = z.object({
  clientId: z.string(),
  clientName: z.string(),
  redirectUri: z.string(),
  /** SHA-256 of the verifier, in base64url (PKCE, RFC 7636). */
  challenge: z.string(),
  state: z.string().nullable(),
});
export type AuthorizationRequest = z.infer<typeof AuthorizationRequest>;

/** Checks a request for access to a resource. Throws an OAuthRefusal. */
export async function readAuthorization(
  query: URLSearchParams,
  resource: string,
  clients: Clients,
  signal: AbortSignal,
): Promise<AuthorizationRequest> {
  const params = singleParams(query);
  const value = (name: string): string => {
    const given = params.get(name);
    if (given === undefined || given === "") throw new OAuthRefusal("invalid_request", `${name} is missing.`);
    return given;
  };
  const client = await clients.read(value("client_id"), signal);
  const redirectUri = value("redirect_uri");
  if (!mayRedirect(client, redirectUri))
    throw new OAuthRefusal("invalid_request", "redirect_uri is not one of the client's.");
  if (value("response_type") !== "code")
    throw new OAuthRefusal("unsupported_response_type", "response_type must be code.");
  // Without a method, RFC 7636 means plain, which protects nothing from anyone who sees this request.
  if (params.get("code_challenge_method") !== "S256")
    throw new OAuthRefusal("invalid_request", "code_challenge_method must be S256.");
  const challenge = value("code_challenge");
  if (!/^[\w-]{43}$/.test(challenge))
    throw new OAuthRefusal("invalid_request", "code_challenge is not a SHA-256 in base64url.");
  refuseOtherResource(value("resource"), resource);
  const state = params.get("state") ?? null;
  if (state !== null && state.length > STATE_CHARS_MAX)
    throw new OAuthRefusal("invalid_request", `state is longer than ${STATE_CHARS_MAX} characters.`);
  return { clientId: client.id, clientName: client.name, redirectUri, challenge, state };
}

/** Throws for a resource that is not this server. Upper case in scheme and host is accepted. */
export function refuseOtherResource(given: string, resource: string): void {
  if (URL.parse(given)?.href === resource) return;
  throw new OAuthRefusal("invalid_target", `This server gives access to ${resource} alone.`);
}

/** Returns the address to which a decision is sent. */
export function redirectWith(
  { redirectUri, state }: AuthorizationRequest,
  answer: Readonly<Record<string, string>>,
): string {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(answer)) url.searchParams.append(name, value);
  if (state !== null) url.searchParams.append("state", state);
  return url.href;
}
