import { OAuthRefusal, singleParams } from "./refusal.ts";

/** Reads a body as text; undefined if it is too large. */
export type ReadBody = () => Promise<string | undefined>;

/** Returns the fields of a form. Throws an OAuthRefusal. */
export async function readForm(request: Request, body: ReadBody): Promise<ReadonlyMap<string, string>> {
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded")
    throw new OAuthRefusal("invalid_request", "The body must be a form.");
  const text = await body();
  if (text === undefined) throw new OAuthRefusal("invalid_request", "The form is too large.");
  return singleParams(new URLSearchParams(text));
}
