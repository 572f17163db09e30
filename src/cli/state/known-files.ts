import { resolve } from "node:path";
import { type KnownFiles, NO_FILES } from "../../mcp/known-files.ts";
import { openResourceLookup } from "../../sync/operator/resource-lookup.ts";

/** The ledger of a state folder as MCP's tools use it. Throws if there is one and it cannot be read. */
export function openKnownFiles(stateDir: string): KnownFiles {
  const lookup = openResourceLookup(stateDir);
  if (lookup === undefined) return NO_FILES;
  return {
    sources: lookup.sources.map(({ path, ownerId, collectionId }) => ({
      folder: path,
      ownerId,
      collectionId,
    })),
    fileOf: (documentId) => {
      const file = lookup.fileOf(documentId);
      return file && { folder: file.source, path: file.path };
    },
    documentsOf: (path) => {
      const absolute = lookup.docOf(resolve("/", path));
      const below = lookup.sources.map((source) => lookup.docOf(resolve(source.path, path)));
      const found = [absolute, ...below].filter((documentId) => documentId !== undefined);
      return [...new Set(found)];
    },
    close: () => lookup.close(),
  };
}
