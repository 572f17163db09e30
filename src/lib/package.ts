import assert from "node:assert";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Modules that start as a process or a thread of their own, as paths below `src` without extension. The build
 * (`packaging/bundle.ts`) gives each a file at the same path below `dist`, and puts all other modules into shared chunks.
 */
export const ENTRIES = [
  "main",
  "formats/conversion/convert-child",
  "kb/chat/image-child",
  "kb/embed/local-worker",
  "kb/http/body/json-worker",
  "kb/ingest/chunk-worker",
  "kb/ingest/extract/ocr-child",
  "kb/ingest/extract/pdf-child",
  "kb/ingest/extract/structured-worker",
  "kb/ingest/mail/mail-child",
  "kb/ingest/page/page-child",
  "kb/store/sqlite/reader-worker",
  "kb/store/sqlite/writer-worker",
  "lib/capped/host-worker",
  "sync/watch/worker",
] as const;

/** Name of the embedding model in the package. */
export const PACKAGED_MODEL = "all-MiniLM-L6-v2";

/** Found by its package.json, because the build moves modules to other folders. */
const ROOT = packageRoot();
const isBuilt = !import.meta.url.endsWith(".ts");

/** Returns the path of a file or folder of the package; without names that of the package itself. */
export function packagePath(...names: readonly string[]): string {
  return join(ROOT, ...names);
}

/** Returns the URL of an entry: of the built one, or of its source when the sources run directly. */
export function entryUrl(name: (typeof ENTRIES)[number]): URL {
  return pathToFileURL(isBuilt ? packagePath("dist", `${name}.js`) : packagePath("src", `${name}.ts`));
}

function packageRoot(): string {
  const file = findPackageJSON(".", import.meta.url);
  assert(file !== undefined, "the program is in no package");
  return dirname(file);
}
