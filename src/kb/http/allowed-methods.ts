import type { FastifyInstance } from "fastify";

/** Remembers the routes of a server, to tell an unknown path from a known one asked with the wrong method. */
export interface AllowedMethods {
  /** Methods of the routes that match this path, sorted; empty for an unknown path. */
  of(path: string): readonly string[];
}

/** Watches the routes added to this server from now on. */
export function watchRoutes(server: FastifyInstance): AllowedMethods {
  const routes: { readonly pattern: RegExp; readonly method: string }[] = [];
  server.addHook("onRoute", ({ url, method }) => {
    // Our patterns are literal segments and `:name` segments.
    const pattern = new RegExp(`^${url.replaceAll(/[.]/g, "\\.").replaceAll(/:[^/]+/g, "[^/]+")}$`);
    for (const one of [method].flat()) routes.push({ pattern, method: one });
  });
  return {
    of: (path) => {
      const found = routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
      return [...new Set(found)].toSorted();
    },
  };
}
