import { registerHooks } from "node:module";
import { installGlobals } from "./virtual/globals.ts";
import { replacedModules } from "./virtual/modules.ts";
import { TUNING, type Patch } from "./tuning.ts";

const SOURCES = new URL("../../src/", import.meta.url).href;
const SCHEME = "simulated:";
const REGISTRY = Symbol.for("kbsync.simulated");

/**
 * From here on everything that is imported from `src` runs on the simulation's clock, disk and chance, with the bounds of
 * `TUNING` and with `patches` in its text. A patch that does not fit exactly once fails the import.
 */
export function installHooks(patches: readonly Patch[] = []): void {
  const modules = replacedModules();
  Reflect.set(globalThis, REGISTRY, modules);
  installGlobals();
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      modules.has(specifier) && context.parentURL?.startsWith(SOURCES) === true
        ? { url: SCHEME + specifier, shortCircuit: true }
        : nextResolve(specifier, context),
    load: (url, context, nextLoad) => {
      if (url.startsWith(SCHEME)) {
        const source = sourceOf(url.slice(SCHEME.length), modules);
        return { format: "module", shortCircuit: true, source };
      }
      const loaded = nextLoad(url, context);
      const fitting = [...TUNING, ...patches].filter(({ file }) => url === SOURCES + file);
      if (fitting.length === 0) return loaded;
      const text = Buffer.from(loaded.source as Uint8Array).toString("utf8");
      return { ...loaded, source: fitting.reduce(patched, text) };
    },
  });
}

/** A module whose exports are taken from the registry, so that they are bound by name as Node's own are. */
function sourceOf(specifier: string, modules: ReadonlyMap<string, Record<string, unknown>>): string {
  const names = Object.keys(modules.get(specifier) ?? {}).filter((name) => name !== "default");
  return [
    `const all = globalThis[Symbol.for(${JSON.stringify(REGISTRY.description)})].get(${JSON.stringify(specifier)});`,
    ...names.map((name) => `export const ${name} = all.${name};`),
    `export default all.default;`,
  ].join("\n");
}

function patched(text: string, { file, find, replace }: Patch): string {
  const parts = typeof find === "string" ? text.split(find) : text.split(new RegExp(find.source, find.flags));
  if (parts.length !== 2) {
    throw new Error(`the patch of ${file} fits ${parts.length - 1} times, not once: ${String(find)}`);
  }
  return parts.join(replace);
}
