// Builds the console into `dist/console` (`npm run build`): one page, its script and its style, each also compressed, so that the
// service compresses nothing.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";
import { REPOSITORY } from "./program.ts";

const outDir = join(REPOSITORY, "dist/console");

await build({
  configFile: false,
  root: join(REPOSITORY, "src/console"),
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2024",
    // Its hints on slow plugins are for those who work on the build, and everyone who installs a clone would read them.
    rolldownOptions: { checks: { pluginTimings: false } },
    // The console's policy allows no data: addresses and no inline scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});

for (const name of readdirSync(outDir, { recursive: true, encoding: "utf8" })) {
  if (!/\.(?:html|js|css|svg)$/.test(name)) continue;
  const file = join(outDir, name);
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}
