import { openForReading, openForWriting } from "../database/connection.ts";

/** A store's record of an uploaded file. */
export interface KnownUpload {
  readonly token: string;
  readonly name: string;
  readonly sizeBytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/** Returns all uploaded files that a store file records. Throws what opening throws. */
export function knownUploads(path: string): readonly KnownUpload[] {
  const db = openForReading(path);
  try {
    return db
      .prepare<[], KnownUpload>(
        "SELECT token, name, size_bytes AS sizeBytes, sha256 FROM stored_file ORDER BY token",
      )
      .all();
  } finally {
    db.close();
  }
}

/** Upgrades a store file that nothing else uses to the schema of this program. Throws what opening throws. */
export function upgradeStore(path: string): void {
  openForWriting(path).close();
}
