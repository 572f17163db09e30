/**
 * URL of a module beside the caller's, to start as a worker or child process: `.ts` when the sources run as they
 * are, `.js` in the built package. `name` carries no extension.
 */
export function siblingModule(importMetaUrl: string, name: string): URL {
  const extension = importMetaUrl.endsWith(".ts") ? ".ts" : ".js";
  return new URL(`./${name}${extension}`, importMetaUrl);
}
