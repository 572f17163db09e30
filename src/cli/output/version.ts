import { readFileSync } from "node:fs";
import { packagePath } from "../../lib/package.ts";

/** Returns the version in package.json. */
export function programVersion(): string {
  const text = readFileSync(packagePath("package.json"), "utf8");
  const { version } = JSON.parse(text) as { version: string }; // our own file, checked by npm
  return version;
}
