import type { PageMemory } from "../ingest/extract/ocr.ts";
import { leaseLost } from "../queue/leases.ts";
import type { LeasedJob, Queue } from "../queue/queue.ts";

/**
 * Most characters of pages that one job keeps: those of three hundred full pages. The next try reads later pages again. The queue bounds
 * those of all jobs (`Queue.keepPages`).
 */
const KEPT_CHARS_MAX = 1024 * 1024;
/** Pages are written when there is a new one for so many that were written before, so that many pages are not written many times. */
const WRITTEN_PER_NEW = 8;

/** Pages that were read for a queued document, kept in its job: for its next try, and for a change that leaves its file as it is. */
export interface KeptPages {
  memoryOf(this: void, sha256: string): Promise<PageMemory>;
  /** Writes the pages that are not written yet. False: the lease was lost. */
  save(): Promise<boolean>;
}

type PageEnd = NonNullable<ReturnType<PageMemory["get"]>>;

type Files = Record<string, Record<string, PageEnd>>;

/** Opens the pages that a leased job keeps. */
export function openKeptPages(queue: Pick<Queue, "keepPages" | "pagesOf">, job: LeasedJob): KeptPages {
  let files: Files | undefined;
  let chars = 0;
  let written = 0;
  let added = 0;
  const load = async (): Promise<Files> => {
    const pages = await queue.pagesOf(job);
    if (pages === undefined) return {};
    chars = pages.length;
    const loaded = JSON.parse(pages) as Files; // written by save
    written = Object.values(loaded).reduce((sum, of) => sum + Object.keys(of).length, 0);
    return loaded;
  };
  const save = async (): Promise<boolean> => {
    if (added === 0) return true;
    written += added;
    added = 0;
    return queue.keepPages(job, JSON.stringify(files));
  };
  return {
    save,
    memoryOf: async (sha256) => {
      const known = (files ??= await load());
      return {
        get: (page) => known[sha256]?.[page],
        put: async (page, end) => {
          const kept = jsonOf(end);
          chars += JSON.stringify(kept).length;
          if (chars > KEPT_CHARS_MAX) return;
          known[sha256] = { ...known[sha256], [page]: kept };
          added += 1;
          if (added * WRITTEN_PER_NEW >= written && !(await save())) throw leaseLost();
        },
      };
    },
  };
}

/** Returns an end without what JSON loses of an error. */
function jsonOf(end: PageEnd): PageEnd {
  if ("read" in end) return end;
  const { code, message, hint } = end.failure;
  return { cpuMs: end.cpuMs, failure: { code, message, hint } };
}
