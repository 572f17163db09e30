import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ConsoleFile } from "../../console/pages.ts";
import { consoleOrigins } from "../../console/site.ts";
import { routeConfig } from "../operation/operation.ts";
import type { HttpParts } from "../operation/operation.ts";

/** Scripts, styles, images and requests of the console's own origin, and nothing else. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  vary: "accept-encoding",
} as const;

/** Names of the other files contain a hash of their bytes. */
const FOREVER = "public, max-age=31536000, immutable";

/** Serves the built console at `/`, where this machine and the public address reach it. */
export function addConsoleRoutes(
  server: FastifyInstance,
  { publicUrl }: Pick<HttpParts, "publicUrl">,
  files: readonly ConsoleFile[],
): void {
  for (const file of files) {
    const doc = {
      summary: file.path === "/" ? "The console, for a browser." : "A file of the console.",
      tag: "Console",
      answers: { 200: "file", 304: "empty" },
    } as const;
    server.get(file.path, { config: routeConfig("none", doc) }, (request, reply) => {
      consoleOrigins(request.headers, publicUrl);
      return sendFile(request, reply, file);
    });
  }
}

function sendFile({ headers }: FastifyRequest, reply: FastifyReply, file: ConsoleFile): FastifyReply {
  const isPage = file.path === "/";
  reply.headers({ ...HEADERS, etag: file.etag, "cache-control": isPage ? "no-cache" : FOREVER });
  if (headers["if-none-match"] === file.etag) return reply.code(304).send();
  const coding = codingOf(headers["accept-encoding"]);
  if (coding !== "identity") reply.header("content-encoding", coding);
  return reply.header("content-type", file.contentType).send(file.codings[coding]);
}

/** Chooses the best coding that the client lists. One that it excludes (`q=0`) is none of a browser. */
function codingOf(header: string | string[] | undefined): keyof ConsoleFile["codings"] {
  const listed = String(header ?? "");
  if (/\bbr\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(listed)) return "br";
  if (/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(listed)) return "gzip";
  return "identity";
}
