/**
 * Returns the URL of a module in the caller's folder, to start as a worker or child process: `.ts` when the sources run
 * directly, `.js` in the built package. `name` has no extension.
 */
export function siblingModule(importMetaUrl: string, name: string): URL {
  const extension = importMetaUrl.endsWith(".ts") ? ".ts" : ".js";
  return new URL(`./${name}${extension}`, importMetaUrl);
}
