/** A synced folder in this machine's ledger. */
export interface KnownSource {
  /** Absolute path. */
  readonly folder: string;
  readonly ownerId: string;
  /** Undefined until the service has reported it. */
  readonly collectionId: string | undefined;
}

/** Maps files of this machine to documents and back. Holds only ids, no content. */
export interface KnownFiles {
  readonly sources: readonly KnownSource[];
  /** Returns the file of a document, or undefined if it has another origin. */
  fileOf(documentId: string): { readonly folder: string; readonly path: string } | undefined;
  /** Returns the documents of a path, absolute or relative to a source as in results. */
  documentsOf(path: string): readonly string[];
  close(): void;
}

/** For a machine that never synced a folder. */
export const NO_FILES: KnownFiles = {
  sources: [],
  fileOf: () => undefined,
  documentsOf: () => [],
  close: () => undefined,
};
