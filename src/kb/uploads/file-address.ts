import { randomBytes } from "node:crypto";
import { isLoopback } from "../../lib/loopback.ts";
import { ROUTES } from "../../wire/routes.ts";

/** Longest name of an uploaded file in characters. A longer name keeps its start and its extension. */
export const FILE_NAME_CHARS_MAX = 120;

/** Builds the addresses of uploaded files, and recognises them. */
export interface FileAddresses {
  /** The `file_url` of a file. */
  urlOf(file: { readonly token: string; readonly name: string }): string;
  /**
   * Classifies an address: `token` is a file's address (the store knows whether it was issued), `inside` is below the resources
   * address but no file's, `elsewhere` is foreign. A service that listens only on this machine recognises a file's address
   * under any port that it ever had.
   */
  classify(url: URL): AddressKind;
  /** Returns a file's address under the current host and port; any other address unchanged. */
  reachable(url: string): string;
}

export type AddressKind =
  | { readonly kind: "elsewhere" }
  | { readonly kind: "inside" }
  | { readonly kind: "token"; readonly token: string };

/**
 * Opens the addresses of a service. Calls `resourcesUrl` each time, because with port 0 it is known only after listening; its
 * result has no trailing slash. `loopback`: the service listens only on this machine, or once did, so its files may have
 * addresses under any loopback address and port.
 */
export function fileAddresses(resourcesUrl: () => string, loopback = false): FileAddresses {
  const classify = (url: URL): AddressKind => {
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
    classify,
    reachable: (given) => {
      const url = URL.parse(given);
      const kind = url === null ? undefined : classify(url);
      if (url === null || kind?.kind !== "token") return given;
      return `${resourcesUrl()}${ROUTES.files}/${kind.token}/${lastSegment(url)}`;
    },
  };
}

/** Returns the part of an address after its last slash, still escaped. */
export function lastSegment(url: URL): string {
  return url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
}

const FILE_PATH = new RegExp(`^${ROUTES.files}/([A-Za-z0-9_-]{43})/[^/]+$`);

/** Returns 256 random bits in base64url, 43 characters: nobody can guess a file's address. */
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
