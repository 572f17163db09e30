import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

/**
 * Loads a package synchronously on first use, so that frequent short runs do not read what they rarely need. `take` names
 * and types the package: `lazyModule((load) => load("yaml") as typeof import("yaml"))`.
 */
export function lazyModule<T>(take: (load: (name: string) => unknown) => T): () => T {
  let loaded: { readonly value: T } | undefined;
  return () => (loaded ??= { value: take(load) }).value;
}

/** Resolves as `import` does: some packages export nothing to `require`. */
function load(name: string): unknown {
  return require(fileURLToPath(import.meta.resolve(name)));
}
