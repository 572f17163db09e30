import PQueue from "p-queue";
import { openPdfPool } from "../../kb/ingest/extract/pdf-pool.ts";
import { END_CODES } from "../../lib/capped/end-failure.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { FileTexts } from "../../sync/read/secret-check.ts";

/** Bounds of a PDF: those of the service, which reads it with the same code. */
const MEMORY_MB = 512;
const TIMEOUT_MS = 60_000;
/** More than any document that the service takes. */
const CHARS_MAX = 32 * 1024 * 1024;
const IDLE_MS = 10_000;

/**
 * Opens the reader of text in PDFs, and of their authors, for the check for secrets. It starts one process with capped memory and time when
 * it is first asked, which ends when it has nothing to do. Text in pictures, and thus in scans, is not read.
 */
export function openPdfTexts({ timeoutMs = TIMEOUT_MS } = {}): FileTexts {
  const pool = openPdfPool({ processes: 1, memoryMb: MEMORY_MB, timeoutMs, idleMs: IDLE_MS });
  // The pool refuses requests when many wait. The files that the daemon prepares at a time bound this queue.
  const queue = new PQueue({ concurrency: 1 });
  return {
    read: async (path, mediaType, signal) => {
      if (mediaType !== "application/pdf") return undefined;
      const extract = async (): Promise<string> => {
        const { texts, author = "" } = await pool.extract({ path, charsMax: CHARS_MAX }, { signal });
        return [author, ...texts].join("\n");
      };
      try {
        return await queue.add(extract, { signal });
      } catch (error) {
        throw isTimeout(error) ? laterFailure(error) : error;
      }
    },
    close: () => pool.close(),
  };
}

function isTimeout(error: unknown): error is KbsyncError {
  return error instanceof KbsyncError && error.code === END_CODES.time;
}

/** A machine under load may be the reason why a PDF takes too long, so it is read again. */
function laterFailure(cause: KbsyncError): KbsyncError {
  return new KbsyncError(cause.message, { code: cause.code, retryable: true, cause });
}
