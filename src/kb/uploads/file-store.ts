import type { StoredFile } from "../store/files.ts";

/** A complete file that no row refers to yet, on the local disk. */
export interface Received {
  readonly token: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/** Identifies a file and its content. */
export type FileKey = Pick<StoredFile, "token" | "sizeBytes" | "sha256">;

/** Age at which what an unfinished upload or removal left is removed: no upload, and no reading of a file, takes as long. */
export const LEFTOVER_MS = 24 * 60 * 60 * 1000;

/**
 * The store of uploaded files. A file is received, saved, recorded by a row of the database, and then published:
 *
 *     receive → save → the row is committed → publish
 *
 * Whatever a crash interrupts leaves either a file with a row, which can be read, or a leftover, which `recover` removes. A file that
 * an error prevents from being recorded is discarded. Processes may share a store.
 */
export interface FileStore {
  /** Writes a stream to the local disk. Throws `tooLarge()` once it exceeds `bytesMax`, and leaves no file if it throws. */
  receive(
    token: string,
    bytes: AsyncIterable<Uint8Array>,
    bytesMax: number,
    tooLarge: () => Error,
  ): Promise<Received>;
  /** Makes a received file survive the loss of power or of this machine, as far as the store does. Precedes the row. */
  save(token: string): Promise<void>;
  /**
   * Makes a recorded file readable. Idempotent, also if another process has done it. Throws ENOENT if the file is gone; if it throws
   * anything else, it can be repeated.
   */
  publish(token: string): Promise<void>;
  /** Removes a received file that no row refers to. Does nothing to a file that was published, or is gone. */
  discard(token: string): Promise<void>;
  /** Leaves a saved file to `recover`, because nobody knows whether its row was committed. */
  abandon(token: string): void;
  /** Runs work that needs a file to stay. This process does not remove it meanwhile. */
  hold<T>(token: string, work: () => Promise<T>): Promise<T>;
  /**
   * Runs work that reads a published file at a path of the local disk, which is valid until the work ends; an open handle stays valid. This
   * call or the work fails with the code ENOENT if the file is gone.
   */
  use<T>(file: FileKey, work: (path: string) => Promise<T>): Promise<T>;
  /**
   * Removes a file that this process does not hold, if `forget` removes its row; reports whether it did. Readers find the file for as
   * long as its row exists.
   */
  remove(token: string, forget: () => Promise<boolean>): Promise<boolean>;
  /** Reports whether a published file exists. */
  holds(token: string): Promise<boolean>;
  /**
   * Finishes what crashes left: publishes files that were recorded, and removes others once nothing can be at work on them. Returns how
   * many there were. May run at any time, in several processes.
   */
  recover(isRecorded: (token: string) => Promise<boolean>): Promise<number>;
  /** Ends what waits for other machines, with the error `files_unavailable`. Nothing begins any more. */
  close(): void;
}
