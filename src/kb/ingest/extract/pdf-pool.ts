import {
  openCappedPool,
  type AskOptions,
  type CappedPool,
  type CappedPoolOptions,
} from "../../../lib/capped/pool.ts";
import { siblingModule } from "../../../lib/sibling.ts";
import { bytesOfFile, pdfCpuMs } from "./pdf-budget.ts";
import type { PdfFailure, PdfPart, PdfRequest } from "./pdf-child.ts";
import { pdfError } from "./pdf-error.ts";

/** Processes that read PDFs, started when needed. */
export interface PdfPool {
  /** The text of each page. Rejects with what `pdfError` makes, `extractor_busy`, or the signal's reason. */
  extract(request: Omit<PdfRequest, "bytes">, options: AskOptions): Promise<readonly string[]>;
  /** Ends all processes; what is under way fails. */
  close(): void;
}

/** Starts nothing until the first document. */
export function openPdfPool(options: CappedPoolOptions): PdfPool {
  const pool: CappedPool<PdfRequest, PdfPart> = openCappedPool<PdfRequest, PdfPart, PdfFailure>(
    {
      module: siblingModule(import.meta.url, "pdf-child"),
      cpuMs: ({ bytes }) => pdfCpuMs(bytes),
      failure: (code, request, detail) => pdfError(code, request, options, detail),
    },
    { ...options, busyCode: "extractor_busy" },
  );
  return {
    extract: async (request, ask) => {
      const bytes = await bytesOfFile(request.path);
      return (await pool.ask({ ...request, bytes }, ask)).flat();
    },
    close: () => pool.close(),
  };
}
