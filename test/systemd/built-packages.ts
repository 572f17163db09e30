import { existsSync, readFileSync } from "node:fs";
import { inject } from "vitest";
import { until } from "./container.ts";
import type { BuiltPackages } from "./packages.ts";

/** The files of both packages, the older one first, as soon as they are built. Throws why they were not. */
export async function builtPackages(): Promise<readonly string[]> {
  const reported = inject("packages");
  await until("the packages to be built", () => (existsSync(reported) ? true : undefined));
  // What packages.ts wrote.
  const { files, problem } = JSON.parse(readFileSync(reported, "utf8")) as BuiltPackages;
  if (problem !== undefined) throw new Error(`no package was built: ${problem}`);
  return files;
}
