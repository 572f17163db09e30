import type { SameTransaction } from "./request-note.ts";

/** Uploaded files. Their bytes are in a `FileStore`. */
export interface FileRecords {
  /** Records an uploaded file whose bytes the `FileStore` has saved under `token`. */
  addFile(file: StoredFile, sameTransaction?: SameTransaction): Promise<void>;
  file(token: string): Promise<StoredFile | undefined>;
  /** Tokens of up to `limit` files that are older than `beforeIso` and unused since then. */
  unusedFiles(beforeIso: string, limit: number): Promise<readonly string[]>;
  /** Removes the record of such a file. Returns false if the file is in use again or gone. */
  removeUnusedFile(token: string, beforeIso: string): Promise<boolean>;
}

export interface StoredFile {
  /** 256 random bits in base64url. Anyone who knows it can read the file. */
  readonly token: string;
  readonly accountId: string;
  /** Name as uploaded, made safe for a header. */
  readonly name: string;
  /** Detected from the bytes. */
  readonly mediaType: string;
  /** Media type that the sender declared, in lower case; decides how text is read. Null: none declared, or an old file. */
  readonly declaredType?: string | null;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly createdAt: string;
}
