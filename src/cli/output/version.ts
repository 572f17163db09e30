import { readFileSync } from "node:fs";

/** Returns the version in package.json, which has the same relative path from `src` and from `dist`. */
export function programVersion(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string }; // our own file, checked by npm
  return version;
}
