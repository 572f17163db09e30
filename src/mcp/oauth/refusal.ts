/** Error codes of OAuth 2.1 and RFC 8707. */
export type OAuthCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "invalid_target"
  | "unsupported_grant_type"
  | "unsupported_response_type"
  | "temporarily_unavailable";

/** Refusal of a request to the authorization server. */
export class OAuthRefusal extends Error {
  override readonly name = "OAuthRefusal";
  readonly code: OAuthCode;

  constructor(code: OAuthCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** Returns the parameters of a query or a form. Throws for one that is sent twice: readers may differ in which they take. */
export function singleParams(params: URLSearchParams): ReadonlyMap<string, string> {
  const single = new Map<string, string>();
  for (const [name, value] of params) {
    if (single.has(name)) throw new OAuthRefusal("invalid_request", `${name.slice(0, 50)} is sent twice.`);
    single.set(name, value);
  }
  return single;
}
