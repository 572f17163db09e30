/** A folder that was synced, as the ledger of this machine knows it. */
export interface KnownSource {
  /** Absolute path. */
  readonly folder: string;
  readonly ownerId: string;
  /** Undefined until the service told it. */
  readonly collectionId: string | undefined;
}

/** What leads from files of this machine to documents and back. Holds nothing that the service would have to guard: only ids. */
export interface KnownFiles {
  readonly sources: readonly KnownSource[];
  /** The file of a document. Undefined: it came from elsewhere. */
  fileOf(documentId: string): { readonly folder: string; readonly path: string } | undefined;
  /** Documents of a path, absolute or as results name it: below a source. */
  documentsOf(path: string): readonly string[];
  close(): void;
}

/** Where no folder was ever synced on this machine. */
export const NO_FILES: KnownFiles = {
  sources: [],
  fileOf: () => undefined,
  documentsOf: () => [],
  close: () => undefined,
};
