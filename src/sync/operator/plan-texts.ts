import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import type { SourceDocument } from "../read/outcome.ts";
import type { FileTexts, InsideText } from "../read/secret-check.ts";

/** Reads the text inside the files of a plan, for a limited time. */
export interface PlanTexts {
  /** Never rejects for the file's sake. Throws the signal's reason. `root`: the source's folder. */
  of(document: SourceDocument, root: string): Promise<PlanText>;
  /** Ends the time for reading. */
  close(): void;
}

/** What a plan knows of a document's text. */
export interface PlanText {
  readonly size: PlannedSize;
  /** Why the text could not be read here. */
  readonly unread?: string;
  /** The text inside a file for the check for secrets; rejects if it cannot be read. Undefined: it is not checked. */
  inside(this: void): Promise<InsideText | undefined>;
}

/** The size of a text or file to send. */
export interface PlannedSize {
  readonly bytes: number;
  /** Characters of its text. Absent: only the service knows the text. */
  readonly chars?: number;
  /** The text is in pictures, as in a scan. */
  readonly isPicture?: true;
}

/**
 * A plan reads for so long: some hundred PDFs. Clients of MCP wait a minute for an answer, in which every other file is read
 * too.
 */
const READ_MS = 30_000;

/** Opens the reader of a plan. The time begins with the first file. */
export function openPlanTexts(
  texts: FileTexts | undefined,
  signal: AbortSignal | undefined,
  readMs = READ_MS,
): PlanTexts {
  const ending = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => ending.abort();
  signal?.addEventListener("abort", onAbort, { once: true });

  return {
    of: async (document, root) => {
      const bytes = document.sizeBytes;
      const unknown = { size: { bytes }, inside: nothing };
      // Nothing but a thread makes JSON of texts, and none reads here.
      if (document.kind === "content") return { ...unknown, size: { bytes, chars: document.content.length } };
      if (document.kind === "link") return unknown;
      if (document.mediaType.startsWith("image/")) return { ...unknown, size: { bytes, isPicture: true } };
      if (texts === undefined) return unknown;
      timer ??= setTimeout(() => ending.abort(), readMs).unref();
      const late = { ...unknown, unread: `its text is not read within the ${readMs / 1000} s of a plan` };
      if (ending.signal.aborted) return late;
      const path = document.entry.link?.real ?? join(root, document.entry.path);
      try {
        const inside = await texts.read(path, document.mediaType, ending.signal);
        // A scan has no text but in pictures.
        const chars = inside?.text.trim() === "" ? 0 : inside?.text.length;
        const found = chars === 0 ? { isPicture: true as const } : { ...(chars !== undefined && { chars }) };
        return { size: { bytes, ...found }, inside: async () => await Promise.resolve(inside) };
      } catch (error) {
        signal?.throwIfAborted();
        if (ending.signal.aborted) return late;
        if (!(error instanceof KbsyncError)) throw error;
        return { ...unknown, unread: error.message, inside: () => Promise.reject(error) };
      }
    },
    close: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    },
  };
}

async function nothing(): Promise<undefined> {
  return await Promise.resolve(undefined);
}
