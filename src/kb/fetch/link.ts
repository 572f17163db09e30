import { KbsyncError } from "../../lib/failure.ts";
import { linkFailure } from "./link-failure.ts";

/**
 * Parses an address to fetch, relative to `base` if given. Accepts any port. Throws `link_refused` for a scheme other than
 * http and https and for an address with credentials, and `link_failed` for an invalid one.
 */
export function readLink(given: string, base?: URL): URL {
  const url = URL.parse(given, base?.href);
  if (url === null) throw linkFailure("the server redirects to an invalid address", base?.host ?? "");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`expected an http or https address, got ${url.protocol}`, url.protocol);
  }
  // Credentials would be stored and returned in the clear.
  if (url.username !== "" || url.password !== "") {
    throw refused("an address with a user name or password is not fetched", url.host);
  }
  return url;
}

function refused(why: string, subject: string): KbsyncError {
  return new KbsyncError(why, {
    code: "link_refused",
    subject,
    hint: "Fetch it yourself and upload the file, or send its text as content.",
  });
}
