import { stat } from "node:fs/promises";

/**
 * CPU time and pages allowed for a PDF by its size: a small file that needs more is hostile. Ordinary PDFs take 1 to 3 s of CPU
 * time per megabyte and at least 300 bytes per page.
 */

const CPU_MS = 10_000;
const CPU_MS_PER_MB = 10_000;
/** Pages of a file however small. */
const PAGES = 1000;
const BYTES_PER_PAGE = 100;

/** Returns the size of a file; 0 if it cannot be opened, which the child process reports. */
export function bytesOfFile(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** Processor time, in milliseconds, for all text of a PDF of so many bytes, or for drawing one page of it. */
export function pdfCpuMs(bytes: number): number {
  return CPU_MS + (bytes / (1024 * 1024)) * CPU_MS_PER_MB;
}

/** Most pages of a PDF of so many bytes. A page may be referred to any number of times, and each reference is read again. */
export function pdfPagesMax(bytes: number): number {
  return PAGES + Math.floor(bytes / BYTES_PER_PAGE);
}
