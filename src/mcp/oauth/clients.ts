import { z } from "zod";
import { isLoopback } from "../../lib/loopback.ts";
import { OAuthRefusal } from "./refusal.ts";

/** Longest URL of a client or a redirect. */
const URL_CHARS_MAX = 2000;
/** Longest name that a consent page shows. */
const NAME_CHARS_MAX = 100;
/** Redirect addresses of one client. */
const REDIRECTS_MAX = 50;
/** Time for which a document is cached, so that a person can go back and forth. */
const CACHED_MS = 5 * 60_000;
/** Cached documents; one more clears the cache. */
const CLIENTS_MAX = 100;

/** A client, by its metadata document. */
export interface Client {
  readonly id: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** Reads a public document of at most some kilobytes. Rejects with the reason in words. */
export type ReadDocument = (url: URL, signal: AbortSignal) => Promise<string>;

/** The clients that people can admit. */
export interface Clients {
  /** Reads a client's metadata document. Throws an OAuthRefusal. */
  read(id: string, signal: AbortSignal): Promise<Client>;
}

/**
 * Opens the clients: those with a metadata document
 * (https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document). There is no registration.
 */
export function openClients(readDocument: ReadDocument, nowMs: () => number): Clients {
  const cache = new Map<string, { readonly client: Client; readonly untilMs: number }>();
  return {
    read: async (id, signal) => {
      const cached = cache.get(id);
      if (cached !== undefined && cached.untilMs > nowMs()) return cached.client;
      const client = clientOf(id, await documentOf(clientUrl(id), readDocument, signal));
      if (cache.size >= CLIENTS_MAX) cache.clear();
      cache.set(id, { client, untilMs: nowMs() + CACHED_MS });
      return client;
    },
  };
}

/** Whether a client may be sent to this address: exactly one of its own; a port of this machine may differ (RFC 8252, 7.3). */
export function mayRedirect({ redirectUris }: Client, uri: string): boolean {
  if (!isRedirect(uri)) return false;
  return redirectUris.some((own) => own === uri || (isLocal(own) && withoutPort(own) === withoutPort(uri)));
}

/** Whether an address leads to a program on the person's machine. */
export function isLocal(uri: string): boolean {
  const url = URL.parse(uri);
  return url !== null && url.protocol === "http:" && isLoopback(url.hostname);
}

function withoutPort(uri: string): string | undefined {
  return isLocal(uri)
    ? uri.replace(/^(http:\/\/(?:\[[^\]]*\]|[^/:?#]*)):\d{1,5}(?=[/?#]|$)/i, "$1")
    : undefined;
}

/** HTTPS, or plain HTTP to the person's machine; without credentials and fragment. */
function isRedirect(uri: string): boolean {
  const url = URL.parse(uri);
  if (url === null || uri.length > URL_CHARS_MAX || !/^[\x21-\x7e]+$/.test(uri)) return false;
  if (url.username !== "" || url.password !== "" || uri.includes("#") || uri.includes("\\")) return false;
  return url.protocol === "https:" || isLocal(uri);
}

/** Throws for an id that is not the URL of a document, in normal form. */
function clientUrl(id: string): URL {
  const url = URL.parse(id);
  const isDocument =
    url !== null &&
    id.length <= URL_CHARS_MAX &&
    url.protocol === "https:" &&
    url.pathname !== "/" &&
    url.username === "" &&
    url.password === "" &&
    !id.includes("#") &&
    url.href === id;
  if (isDocument) return url;
  throw new OAuthRefusal(
    "invalid_client",
    "client_id is not the HTTPS address of a client metadata document.",
  );
}

async function documentOf(url: URL, readDocument: ReadDocument, signal: AbortSignal): Promise<string> {
  try {
    return await readDocument(url, signal);
  } catch (error) {
    // Says no more: the reason could reveal what else listens where this server runs.
    throw new OAuthRefusal("invalid_client", "The client's metadata document cannot be read.", error);
  }
}

function clientOf(id: string, text: string): Client {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  const document = ClientDocument.safeParse(json);
  if (!document.success || document.data.client_id !== id) {
    throw new OAuthRefusal("invalid_client", "The client's metadata document is not one of this client.");
  }
  const { client_name: name, redirect_uris: redirectUris } = document.data;
  return { id, name, redirectUris };
}

const ClientDocument = z.object({
  client_id: z.string(),
  // Control and formatting characters could make the name look like another one.
  client_name: z
    .string()
    .transform((name) =>
      name
        .replace(/[\p{C}\p{Z}]+/gu, " ")
        .trim()
        .slice(0, NAME_CHARS_MAX),
    )
    .pipe(z.string().min(1)),
  redirect_uris: z.array(z.string()).min(1).max(REDIRECTS_MAX),
  // A document that everybody can read holds no secret.
  token_endpoint_auth_method: z
    .string()
    .refine((method) => !method.startsWith("client_secret"))
    .optional(),
});
