import {
  openCappedPool,
  type AskOptions,
  type CappedPool,
  type CappedPoolOptions,
} from "../../../lib/capped/pool.ts";
import { entryUrl } from "../../../lib/package.ts";
import { bytesOfFile, pdfCpuMs } from "./pdf-budget.ts";
import type { PdfFailure, PdfPart, PdfRequest } from "./pdf-child.ts";
import { pdfError } from "./pdf-error.ts";

/** Child processes that read PDFs, started on demand. */
export interface PdfPool {
  /** Returns the text of each page, and the author. Rejects with an error of `pdfError`, `extractor_busy`, or the signal's reason. */
  extract(request: Omit<PdfRequest, "bytes">, options: AskOptions): Promise<PdfPart>;
  /** Terminates all processes. Documents in flight fail. */
  close(): void;
}

/** Opens the pool. The first document starts a process. */
export function openPdfPool(options: CappedPoolOptions): PdfPool {
  const pool: CappedPool<PdfRequest, PdfPart> = openCappedPool<PdfRequest, PdfPart, PdfFailure>(
    {
      module: entryUrl("kb/ingest/extract/pdf-child"),
      cpuMs: ({ bytes }) => pdfCpuMs(bytes),
      failure: (code, request, detail) => pdfError(code, request, options, detail),
    },
    options,
  );
  return {
    extract: async (request, ask) => {
      const bytes = await bytesOfFile(request.path);
      const parts = await pool.ask({ ...request, bytes }, ask);
      // The author is in the first part.
      return { ...parts[0], texts: parts.flatMap(({ texts }) => texts) };
    },
    close: () => pool.close(),
  };
}
