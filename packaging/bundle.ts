// Bundles the program into `dist` (`npm run build`): a few large files load faster than a thousand small ones
// (docs/adr/0021-a-bundled-program.md).
import { join } from "node:path";
import { build } from "rolldown";
import { ENTRIES } from "../src/lib/package.ts";
import { REPOSITORY } from "./program.ts";

/**
 * Packages that most commands load, bundled with what they need themselves. They stay dependencies, so that their licences are
 * installed with them. No other package is bundled: some have native code, data files or threads, and the rest is rarely loaded.
 */
const BUNDLED: ReadonlySet<string> = new Set([
  "@fastify/multipart",
  "@modelcontextprotocol/server",
  "commander",
  "fastify",
  "ignore",
  "ipaddr.js",
  "p-queue",
  "picomatch",
  "prom-client",
  "undici",
  "zod",
]);

/** Fastify needs pino too, which starts threads from files beside its own. */
const ALWAYS_EXTERNAL: ReadonlySet<string> = new Set(["pino"]);

await build({
  cwd: REPOSITORY,
  input: Object.fromEntries(ENTRIES.map((name) => [name, join("src", `${name}.ts`)])),
  tsconfig: "tsconfig.json",
  platform: "node",
  external: (specifier, importer) => {
    const [name] = /^(?:@[^/]+\/)?[^./][^/]*/.exec(specifier) ?? [];
    if (name === undefined) return false;
    const isOurs = importer?.startsWith(join(REPOSITORY, "src")) === true;
    return ALWAYS_EXTERNAL.has(name) || (isOurs && !BUNDLED.has(name));
  },
  // No chunk imports from an entry: `main.js` waits for its chunks, and workers must not start twice.
  preserveEntrySignatures: "strict",
  logLevel: "warn",
  output: {
    dir: "dist",
    cleanDir: true,
    // A program that runs while another build replaces its files fails to load a chunk, rather than mix both builds.
    // Processes and threads that it starts then are of the other build.
    chunkFileNames: "chunks/[name]-[hash].js",
    // Stack traces show the names of the sources, and comments in the code say which file each part is from.
    minifyInternalExports: false,
    comments: { legal: true, annotation: false, jsdoc: false },
  },
});
