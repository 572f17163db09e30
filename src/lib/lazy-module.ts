import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

/**
 * A package that is loaded when it is first asked for, at once and once: a program that starts often should not read
 * what it will rarely need. `take` says what the package is, for only its name is known here:
 * `lazyModule((load) => load("yaml") as typeof import("yaml"))`.
 */
export function lazyModule<T>(take: (load: (name: string) => unknown) => T): () => T {
  let loaded: { readonly value: T } | undefined;
  return () => (loaded ??= { value: take(load) }).value;
}

/** Found as `import` finds it: some packages tell `require` nothing. */
function load(name: string): unknown {
  return require(fileURLToPath(import.meta.resolve(name)));
}
