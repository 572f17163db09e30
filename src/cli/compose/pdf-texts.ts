import { openPdfPool } from "../../kb/ingest/extract/pdf-pool.ts";
import type { FileTextReader } from "../../sync/read/secret-check.ts";

/** Bounds of a PDF: those of the service, which reads it with the same code. */
const MEMORY_MB = 512;
const TIMEOUT_MS = 60_000;
/** More than any document that the service takes. */
const CHARS_MAX = 32 * 1024 * 1024;
const IDLE_MS = 10_000;

/**
 * Opens the reader of text in PDFs, for the check for secrets. It starts one process with capped memory and time when it is first asked,
 * which ends when it has nothing to do. Text in pictures, and thus in scans, is not read.
 */
export function openPdfTexts(): FileTextReader {
  const pool = openPdfPool({ processes: 1, memoryMb: MEMORY_MB, timeoutMs: TIMEOUT_MS, idleMs: IDLE_MS });
  return async (path, mediaType) => {
    if (mediaType !== "application/pdf") return undefined;
    const { texts } = await pool.extract({ path, charsMax: CHARS_MAX }, {});
    return texts.join("\n");
  };
}
