import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Found } from "./result-text.ts";
import { registryOf } from "../state/instances.ts";

type Env = Parameters<typeof registryOf>[0];

const LastResults = z
  .array(z.object({ path: z.string().nullable(), line: z.int().min(1).nullable() }))
  .max(1000);

/** The files of the results of the last search, in their order. `path` is absolute; null: a document of no file here. */
export type LastResults = z.infer<typeof LastResults>;

/** Stores the results of a search for `kbsync open`. If nothing can be written, that command has none. */
export function rememberResults(env: Env, found: readonly Found[]): void {
  const file = fileIn(env);
  if (file === undefined) return;
  const results = found.map(({ source, path, position: { lines } }) => ({
    path: source === null || path === null ? null : join(source, path),
    line: lines?.first ?? null,
  }));
  try {
    mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(results), { mode: 0o600 });
  } catch {
    // A unit may have no such folder; the search itself succeeds without it.
  }
}

/** Returns the results of the last search; undefined: there was none, or it was not stored. */
export function lastResults(env: Env): LastResults | undefined {
  const file = fileIn(env);
  if (file === undefined) return undefined;
  try {
    return LastResults.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}

function fileIn(env: Env): string | undefined {
  const folder = registryOf(env);
  return folder === undefined ? undefined : join(folder, "last-search.json");
}
