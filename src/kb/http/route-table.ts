import type { RequestKind } from "./admission.ts";
import type { FastifyInstance } from "fastify";
import type { z } from "zod";
import type { KeyScope } from "../store/records.ts";

/** What the API document says of a route, in the schemas of the wire. */
export interface RouteDoc {
  /** One sentence. */
  readonly summary: string;
  /** Chapter of the document. */
  readonly tag: string;
  readonly query?: z.ZodType;
  /** The JSON body. */
  readonly body?: z.ZodType;
  /** A multipart form in place of a JSON body. */
  readonly form?: z.ZodType;
  /** Body and answers are lines of JSON (`application/x-ndjson`), each as its schema says. */
  readonly lines?: boolean;
  /** The good answer may come as server-sent events: the data of each, by its name. */
  readonly events?: Readonly<Record<string, z.ZodType>>;
  /** Request headers besides the key, each with what it does. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body of each good status; `file`: bytes of any type; `empty`: none. */
  readonly answers: Readonly<Record<number, z.ZodType | "file" | "empty">>;
}

/** What the API document says of the Idempotency-Key header. */
export const IDEMPOTENCY_DOC =
  "1 to 255 visible ASCII characters: within 24 h the same key and request get the first answer again.";

declare module "fastify" {
  interface FastifyInstance {
    /** All routes, from `watchRoutes` on. */
    routeTable: RouteTable;
  }
  interface FastifyContextConfig {
    /** What a key must be able to do; `none`: no key is asked for. */
    scope?: KeyScope | "none";
    doc?: RouteDoc;
    /** What its requests bring, where scope, method and limit do not say it. */
    brings?: RequestKind;
  }
}

/** A route as it was registered. */
export interface Route {
  readonly method: string;
  /** With parameters as `:name`. */
  readonly url: string;
  readonly scope: KeyScope | "none" | undefined;
  readonly doc: RouteDoc | undefined;
}

/** All routes of a server. */
export interface RouteTable {
  /** In the order of registration, without the HEAD that comes with each GET. */
  readonly routes: readonly Route[];
  /** Methods of the routes that match this path, sorted; empty for an unknown path. */
  methodsOf(path: string): readonly string[];
}

/** Notes the routes added to this server from now on, in plugins too. */
export function watchRoutes(server: FastifyInstance): RouteTable {
  const patterns: { readonly pattern: RegExp; readonly method: string }[] = [];
  const routes: Route[] = [];
  server.addHook("onRoute", ({ url, method, config }) => {
    // Our patterns are literal segments and `:name` segments.
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
