import { randomBytes } from "node:crypto";
import { isLoopback } from "../../lib/loopback.ts";
import { ROUTES } from "../../wire/routes.ts";

/** Longest name of an uploaded file in characters; what is longer keeps its beginning and its extension. */
export const FILE_NAME_CHARS_MAX = 120;

/** Says where uploaded files are, and which addresses are ours. */
export interface FileAddresses {
  /** The `file_url` of a file. */
  urlOf(file: { readonly token: string; readonly name: string }): string;
  /**
   * What an address means here: `token` is a file's address (whether it was issued is for the store to say), `inside`
   * is below the resources address and no file's, `elsewhere` is none of ours. A file keeps its addresses under every
   * port that a service on this machine alone ever had.
   */
  place(url: URL): Place;
  /** A file's address as it is reachable now; any other address as it is. */
  reachable(url: string): string;
}

export type Place =
  | { readonly kind: "elsewhere" }
  | { readonly kind: "inside" }
  | { readonly kind: "token"; readonly token: string };

/**
 * `resourcesUrl` is asked each time: with port 0 it is known only after listening. It ends without a slash. `loopback`:
 * the service listens for this machine alone, or did once, so its files had addresses under whatever loopback address and
 * port.
 */
export function fileAddresses(resourcesUrl: () => string, loopback = false): FileAddresses {
  const place = (url: URL): Place => {
    const base = new URL(resourcesUrl());
    const folder = base.pathname.replace(/\/$/, "");
    if (url.origin === base.origin && `${url.pathname}/`.startsWith(`${folder}/`)) {
      const token = FILE_PATH.exec(url.pathname.slice(folder.length))?.[1];
      return token === undefined ? { kind: "inside" } : { kind: "token", token };
    }
    const token = loopback && isLoopback(url.hostname) ? FILE_PATH.exec(url.pathname)?.[1] : undefined;
    return token === undefined ? { kind: "elsewhere" } : { kind: "token", token };
  };
  return {
    urlOf: ({ token, name }) => `${resourcesUrl()}${ROUTES.files}/${token}/${encodeURIComponent(name)}`,
    place,
    reachable: (given) => {
      const url = URL.parse(given);
      const found = url === null ? undefined : place(url);
      if (url === null || found?.kind !== "token") return given;
      return `${resourcesUrl()}${ROUTES.files}/${found.token}/${lastSegment(url)}`;
    },
  };
}

/** The part of an address behind its last slash, escapes and all. */
export function lastSegment(url: URL): string {
  return url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
}

const FILE_PATH = new RegExp(`^${ROUTES.files}/([A-Za-z0-9_-]{43})/[^/]+$`);

/** 256 random bits in base64url, 43 characters: nobody guesses a file's address. */
export function newFileToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Makes a client's file name safe for a header, a path segment and a log line. Never empty, never a path. */
export function safeFileName(given: string): string {
  const last = given.toWellFormed().split(/[/\\]/).at(-1) ?? "";
  const clean = last
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}"<>|:*?]/gu, "_")
    .trim()
    .replace(/^\.+$/, "");
  if (clean === "") return "file";
  if (clean.length <= FILE_NAME_CHARS_MAX) return clean;
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(clean)?.[0] ?? "";
  return (clean.slice(0, FILE_NAME_CHARS_MAX - extension.length) + extension).toWellFormed();
}
