import type { PageMemory } from "../ingest/extract/ocr.ts";
import { leaseLost } from "../queue/leases.ts";
import type { LeasedJob, Queue } from "../queue/queue.ts";
import type { JobBody } from "../store/rows/job-body.ts";

/**
 * Most characters of pages that one job keeps: those of three hundred full pages. The next try reads later pages again. All documents that
 * are read at the same time keep less than the queue holds.
 */
const KEPT_CHARS_MAX = 1024 * 1024;
/** Pages are written when there is a new one for so many that were written before, so that many pages are not written many times. */
const WRITTEN_PER_NEW = 8;

/** Pages that were read for a queued document, kept in its job: for its next try, and for a change that leaves its file as it is. */
export interface KeptPages {
  memoryOf(this: void, sha256: string): PageMemory;
  /** Writes the pages that are not written yet. False: the lease was lost. */
  save(): Promise<boolean>;
}

type PageEnd = NonNullable<ReturnType<PageMemory["get"]>>;

/** Opens the pages that a leased job keeps. `body` is its body. */
export function openKeptPages(queue: Pick<Queue, "replaceBody">, job: LeasedJob, body: JobBody): KeptPages {
  const files = { ...body.pages } as Record<string, Record<string, PageEnd>>; // written below
  let chars = JSON.stringify(files).length;
  let written = Object.values(files).reduce((sum, pages) => sum + Object.keys(pages).length, 0);
  let added = 0;
  const save = async (): Promise<boolean> => {
    if (added === 0) return true;
    written += added;
    added = 0;
    return queue.replaceBody(job, JSON.stringify({ ...body, pages: files }));
  };
  return {
    save,
    memoryOf: (sha256) => ({
      get: (page) => files[sha256]?.[page],
      put: async (page, end) => {
        const kept = jsonOf(end);
        chars += JSON.stringify(kept).length;
        if (chars > KEPT_CHARS_MAX) return;
        files[sha256] = { ...files[sha256], [page]: kept };
        added += 1;
        if (added * WRITTEN_PER_NEW >= written && !(await save())) throw leaseLost();
      },
    }),
  };
}

/** Returns an end without what JSON loses of an error. */
function jsonOf(end: PageEnd): PageEnd {
  if ("read" in end) return end;
  const { code, message, hint } = end.failure;
  return { cpuMs: end.cpuMs, failure: { code, message, hint } };
}
