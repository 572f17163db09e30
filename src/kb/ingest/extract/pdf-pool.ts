import PQueue from "p-queue";
import { KbsyncError } from "../../../lib/failure.ts";
import type { PdfRequest } from "./pdf-child.ts";
import { measureBaseKb, startPdfProcess } from "./pdf-process.ts";
import type { PdfLimits, PdfPages, PdfProcess } from "./pdf-process.ts";

/** Bounds of the pool. */
export interface PdfPoolOptions extends PdfLimits {
  /** Most documents read at once, each in a process of its own. */
  readonly processes: number;
  /** Idle processes end after this time. */
  readonly idleMs: number;
}

/** Processes that read PDFs, started when needed. */
export interface PdfPool {
  /** Waits for a free process. See `PdfProcess.extract` for what it rejects with. */
  extract(request: PdfRequest, signal: AbortSignal | undefined): Promise<PdfPages>;
  /** Ends all processes; what is under way fails. */
  close(): void;
}

/** Documents that may wait; callers have bounds of their own, this one only keeps a mistake from growing. */
const WAITING_MAX = 1000;

/** Starts nothing until the first document. */
export function openPdfPool(options: PdfPoolOptions): PdfPool {
  const queue = new PQueue({ concurrency: options.processes });
  const idle = new Map<PdfProcess, NodeJS.Timeout>();
  const busy = new Set<PdfProcess>();
  let baseKb: Promise<number | undefined> | undefined;
  let closed = false;

  const take = async (): Promise<PdfProcess> => {
    baseKb ??= measureBaseKb();
    const base = await baseKb;
    assertOpen(closed);
    for (const [process, timer] of idle) {
      clearTimeout(timer);
      idle.delete(process);
      if (process.fit()) return process;
    }
    return startPdfProcess(base, options);
  };

  const giveBack = (process: PdfProcess): void => {
    if (closed || !process.fit()) {
      process.kill();
      return;
    }
    const end = (): void => {
      idle.delete(process);
      process.kill();
    };
    idle.set(process, setTimeout(end, options.idleMs).unref());
  };

  return {
    extract: async (request, signal) => {
      assertOpen(closed);
      if (queue.size >= WAITING_MAX) {
        throw new KbsyncError(`${queue.size} PDFs are waiting to be read`, {
          code: "extractor_busy",
          retryable: true,
        });
      }
      const work = async (): Promise<PdfPages> => {
        const process = await take();
        busy.add(process);
        try {
          return await process.extract(request, signal);
        } finally {
          busy.delete(process);
          giveBack(process);
        }
      };
      return await queue.add(work, signal === undefined ? {} : { signal });
    },
    close: () => {
      closed = true;
      for (const [process, timer] of idle) {
        clearTimeout(timer);
        process.kill();
      }
      idle.clear();
      for (const process of busy) process.kill(closedError());
    },
  };
}

function assertOpen(closed: boolean): void {
  if (closed) throw closedError();
}

function closedError(): KbsyncError {
  return new KbsyncError("the extractor is closed", { code: "closed" });
}
