import { KbsyncError } from "../../lib/failure.ts";
import { linkFailure } from "./link-failure.ts";

/**
 * Reads an address to fetch, relative to `base` where there is one. Any port will do. Throws `link_refused` for another
 * scheme than http and https and for one with credentials, `link_failed` for what is no address.
 */
export function readLink(given: string, base?: URL): URL {
  const url = URL.parse(given, base?.href);
  if (url === null) throw linkFailure("the server redirects to what is no address", base?.host ?? "");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`expected an http or https address, got ${url.protocol}`, url.protocol);
  }
  // They would lie in our store and answers in the clear; the server that wants them is not a public one anyway.
  if (url.username !== "" || url.password !== "") {
    throw refused("an address with user name or password is not fetched", url.host);
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
