import { fileURLToPath } from "node:url";

/**
 * Has the tests' processes and threads keep what Node compiles of each module. The sources are TypeScript: without it every
 * store that a test opens has Node strip and compile them again in its threads, which is a quarter of such a test. A module
 * that has changed is compiled again (https://nodejs.org/api/module.html#module-compile-cache). To be called before the
 * tests' processes start.
 */
export function keepCompiled(): void {
  process.env["NODE_COMPILE_CACHE"] ??= fileURLToPath(
    new URL("../node_modules/.cache/kbsync-compiled", import.meta.url),
  );
}
