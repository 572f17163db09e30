import type { RequestKind } from "../limits/admission.ts";
import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import type { KeyNeed } from "./keyring.ts";

/** The description of a route in the API document, with schemas of the wire. */
export interface RouteDoc {
  /** One sentence. */
  readonly summary: string;
  /** Chapter of the document. */
  readonly tag: string;
  readonly query?: z.ZodType;
  /** The JSON body. */
  readonly body?: z.ZodType;
  /** A multipart form instead of a JSON body. */
  readonly form?: z.ZodType;
  /** Set if a success may be answered in lines of JSON (`application/x-ndjson`): the schema of those before the answer. */
  readonly line?: z.ZodType;
  /** Set if a success may be answered as server-sent events: the schema of each event's data, by name. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  /** Request headers besides the key, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A form of refusals beside the service's own. */
  readonly failure?: z.ZodType;
  /** The body of each success status; `file`: bytes of any type; `empty`: none. */
  readonly answers: Readonly<Record<number, z.ZodType | "file" | "empty">>;
}

/** Description of the Idempotency-Key header in the API document. */
export const IDEMPOTENCY_DOC =
  "1 to 255 visible ASCII characters: within 24 h the same key and request get the first answer again.";

declare module "fastify" {
  interface FastifyInstance {
    /** All routes added after `watchRoutes`. */
    routeTable: RouteTable;
  }
  interface FastifyContextConfig {
    /** The scope that the key needs; `none`: no key is needed. */
    scope?: KeyNeed | "none";
    doc?: RouteDoc;
    /** Set if the kind does not follow from scope, method and body limit. */
    requestKind?: RequestKind;
  }
}

/** A registered route. */
export interface Route {
  readonly method: string;
  /** With parameters as `:name`. */
  readonly url: string;
  readonly scope: KeyNeed | "none" | undefined;
  readonly doc: RouteDoc | undefined;
}

/** All routes of a server. */
export interface RouteTable {
  /** In the order of registration, without the HEAD routes that Fastify adds to GET routes. */
  readonly routes: readonly Route[];
  /** Methods of the routes that match this path, sorted; empty for an unknown path. */
  methodsOf(path: string): readonly string[];
}

/** Collects the routes added to this server from now on, including those of plugins. */
export function watchRoutes(server: FastifyInstance): RouteTable {
  const patterns: { readonly pattern: RegExp; readonly method: string }[] = [];
  const routes: Route[] = [];
  server.addHook("onRoute", ({ url, method, config }) => {
    // Patterns consist of literal and `:name` segments.
    const pattern = new RegExp(`^${url.replaceAll(/[.]/g, "\\.").replaceAll(/:[^/]+/g, "[^/]+")}$`);
    for (const one of [method].flat()) {
      patterns.push({ pattern, method: one });
      if (one !== "HEAD") routes.push({ method: one, url, scope: config?.scope, doc: config?.doc });
    }
  });
  return {
    routes,
    methodsOf: (path) => {
      const found = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
      return [...new Set(found)].toSorted();
    },
  };
}
