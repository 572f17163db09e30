import { readFile, stat } from "node:fs/promises";
import { endFailure, endWords, isTemporary } from "../../../lib/capped/end-failure.ts";
import { type AskOptions, openCappedPool } from "../../../lib/capped/pool.ts";
import type { CappedEnd } from "../../../lib/capped/process.ts";
import { KbsyncError, messageOf } from "../../../lib/failure.ts";
import { entryUrl } from "../../../lib/package.ts";
import type { PageRequest } from "./page-child.ts";
import { pageFailureOf, type PageFailure } from "./page-failure.ts";
import { pageText } from "./page-text.ts";

/**
 * Pages up to this size are read in place in a few milliseconds, faster than in another process. 64 KB of nested lists would block
 * the event loop for half a second.
 */
const INLINE_BYTES_MAX = 8 * 1024;

const LIMITS = {
  /** One suffices: most pages have less than a few hundred kilobytes. */
  processes: 1,
  /** The tree of a page takes about ten times its bytes. */
  memoryMb: 512,
  /** A megabyte takes about 30 ms. */
  cpuMs: 20_000,
  idleMs: 10_000,
};

/** Turns pages of HTML into text. Large ones are read in a child process with capped memory and time. */
export interface PageReader {
  /**
   * Returns the Markdown of the readable part; empty if there is none. Rejects with `page_unreadable`, `extraction_failed`,
   * `extractor_busy`, or the signal's reason.
   */
  read(page: PageRequest, options: Omit<AskOptions, "onUsed">): Promise<string>;
  /** Terminates the child process. A page in flight fails. */
  close(): void;
}

/** Opens the reader. The first large page starts the child process. */
export function openPageReader(): PageReader {
  const pool = openCappedPool<PageRequest, string, PageFailure>(
    { module: entryUrl("kb/ingest/page/page-child"), failure: pageError },
    { ...LIMITS, guests: 1 },
  );
  return {
    read: async (page, options) => {
      const { size } = await stat(page.path);
      if (size > INLINE_BYTES_MAX) return (await pool.ask(page, options)).join("");
      try {
        return pageText(await readFile(page.path), page.encoding, page.url);
      } catch (error) {
        throw pageError(pageFailureOf(error), page, messageOf(error));
      }
    },
    close: () => pool.close(),
  };
}

function pageError(code: PageFailure | CappedEnd, { url: subject }: PageRequest, detail: string): Error {
  const facts = { subject, cause: new Error(detail) };
  if (isTemporary(code)) return endFailure(code, endWords("reading the page", LIMITS, detail), facts);
  const words = {
    ...endWords("reading it", LIMITS, detail),
    deep: "its elements are nested too deeply",
    broken: "it could not be read",
  }[code];
  return new KbsyncError(`the page is not taken: ${words}`, { ...facts, code: "page_unreadable" });
}
