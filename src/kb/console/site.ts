import type { IncomingHttpHeaders } from "node:http";
import { isLoopback } from "../../lib/loopback.ts";
import { CONSOLE_HEADER } from "../../wire/routes.ts";
import { Refusal, shown } from "../resources/refusal.ts";

/** The part of a request that says which page sent it. */
export interface SentRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Returns the origins at which a browser may see the console, by the Host that it sent: this machine, and the public address.
 * Another name that leads here belongs to a page that wants to act for its visitor (DNS rebinding).
 * Throws `host_refused`.
 */
export function consoleOrigins(
  { host }: IncomingHttpHeaders,
  publicUrl: string | undefined,
): readonly string[] {
  const sent = host === undefined ? null : URL.parse(`http://${host}`);
  const ours = publicUrl === undefined ? null : URL.parse(publicUrl);
  const isPlain = sent !== null && sent.pathname === "/" && sent.username === "" && sent.search === "";
  // A proxy on this machine may replace the Host; the browser's Origin is still checked.
  if (isPlain && isLoopback(sent.hostname)) return [sent.origin, ...(ours === null ? [] : [ours.origin])];
  if (ours !== null && URL.parse(`${ours.protocol}//${host}`)?.origin === ours.origin) return [ours.origin];
  throw new Refusal("host_refused", `The console is not served at ${shown(host ?? "")}.`, {
    hint: "Open it at localhost, or at the address in service.publicUrl.",
  });
}

/**
 * Checks that the console itself sent a request: a page elsewhere cannot send these headers with the browser's cookie. Returns
 * the origins as `consoleOrigins` does. Throws `host_refused` and `cross_site`.
 */
export function refuseForeign(
  { method, headers }: SentRequest,
  publicUrl: string | undefined,
): readonly string[] {
  const origins = consoleOrigins(headers, publicUrl);
  const { origin } = headers;
  const isRead = method === "GET" || method === "HEAD";
  const site = headers["sec-fetch-site"];
  if (site === undefined) {
    throw crossSite("has no Sec-Fetch-Site header", "Browsers send it by HTTPS, and on this machine.");
  }
  if (site !== "same-origin") throw crossSite(`comes from another page (Sec-Fetch-Site: ${shown(site)})`);
  // Browsers send no Origin with a read of the same origin.
  if (origin === undefined ? !isRead : !origins.includes(origin)) {
    throw crossSite(`comes from ${origin === undefined ? "an unknown origin" : shown(origin)}`);
  }
  if (!isRead && headers[CONSOLE_HEADER] !== "1") throw crossSite(`has no ${CONSOLE_HEADER} header`);
  return origins;
}

/** The cookie of a session, by the origin of the console. The prefix binds it to that host; plain HTTP cannot have it. */
function cookieName(origin: string): string {
  // Cookies do not distinguish ports: services on one machine would end each other's sessions.
  return origin.startsWith("https:") ? "__Host-kbsync" : `kbsync-${new URL(origin).port || "80"}`;
}

/** Formats a session's cookie. An empty token removes it. */
export function sessionCookie(origin: string, token: string): string {
  const secure = origin.startsWith("https:") ? "; Secure" : "";
  const age = token === "" ? "; Max-Age=0" : "";
  return `${cookieName(origin)}=${token}; Path=/; HttpOnly; SameSite=Strict${secure}${age}`;
}

/** Reports whether a request carries the cookie of a console. Does not check who sent it. */
export function hasSessionCookie({ cookie }: IncomingHttpHeaders): boolean {
  return cookie !== undefined && /(?:^|;\s*)(?:__Host-kbsync|kbsync-\d+)=./.test(cookie);
}

/** Returns the token of the session's cookie; undefined: there is none. */
export function readSessionCookie(
  { cookie = "" }: IncomingHttpHeaders,
  origins: readonly string[],
): string | undefined {
  const pairs = cookie.split(";").map((pair) => pair.trim().split("="));
  for (const origin of origins) {
    const token = pairs.find(([name]) => name === cookieName(origin))?.[1];
    if (token !== undefined && token !== "") return token;
  }
  return undefined;
}

function crossSite(what: string, hint?: string): Refusal {
  return new Refusal("cross_site", `The request ${what}.`, hint === undefined ? {} : { hint });
}
