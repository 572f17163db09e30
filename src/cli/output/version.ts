import { readFileSync } from "node:fs";

/** The version in package.json, which stands two folders above this file in both `src` and `dist`. */
export function programVersion(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { version: string }; // our own file, checked by npm
  return version;
}
