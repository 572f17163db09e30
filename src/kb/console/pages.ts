import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { hash } from "node:crypto";
import { codeOf } from "../../lib/failure.ts";

/** A file of the built console, with its compressed forms. */
export interface ConsoleFile {
  /** Path in the address: `/` for the page, `/assets/…` for what it loads. */
  readonly path: string;
  readonly contentType: string;
  readonly etag: string;
  /** Bytes by content coding. */
  readonly codings: Readonly<Record<"identity" | "gzip" | "br", Buffer>>;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Reads the built console into memory: about 300 kB. Returns none if it has not been built. */
export function readConsole(folder: string): readonly ConsoleFile[] {
  return listed(folder)
    .filter((name) => extname(name) in TYPES)
    .map((name) => {
      const file = join(folder, name);
      const identity = readFileSync(file);
      return {
        path: name === "index.html" ? "/" : `/${name}`,
        contentType: TYPES[extname(name)] ?? "",
        etag: `"${hash("sha256", identity, "base64url").slice(0, 22)}"`,
        codings: { identity, gzip: readFileSync(`${file}.gz`), br: readFileSync(`${file}.br`) },
      };
    });
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}
