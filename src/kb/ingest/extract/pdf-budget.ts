import { stat } from "node:fs/promises";

/**
 * What reading a PDF may take, by its size: a small file that asks for more was made to. Measured on ordinary ones, a
 * megabyte takes 1 to 3 s of processor time, and a page takes 300 bytes and more.
 */

const CPU_MS = 10_000;
const CPU_MS_PER_MB = 10_000;
/** Pages of a file however small. */
const PAGES = 1000;
const BYTES_PER_PAGE = 100;

/** Bytes of a file; 0 of one that cannot be opened, which the child that reads it reports. */
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

/** Most pages of a PDF of so many bytes. A page may be referred to any number of times, and each reference is read anew. */
export function pdfPagesMax(bytes: number): number {
  return PAGES + Math.floor(bytes / BYTES_PER_PAGE);
}
