import { KbsyncError } from "../../../lib/failure.ts";
import { openGate } from "../../../lib/gate.ts";
import type { LocatedText } from "../../../formats/markup/located-text.ts";
import { lazyWorker } from "../../../lib/lazy-worker.ts";
import { entryUrl } from "../../../lib/package.ts";
import { structuredCharsMax, structuredText } from "./structured-text.ts";
import type { StructuredMethods } from "./structured-worker.ts";
import type { TextForm } from "./text-form.ts";

/** Texts up to this length are laid out in this thread, which takes about as long as a message to the worker. */
const INLINE_CHARS_MAX = 64 * 1024;
/** Most texts that wait for the worker. Each has at most 2 million characters and takes up to two seconds. */
const LINE_MAX = 64;
/** Most waiting texts of one account, so that others can still queue. */
const LINE_SHARE_MAX = 48;

/** Runs `structuredText`; for long texts in a separate thread, because 2 million characters take seconds. */
export interface StructuredReader {
  /** Throws `extractor_busy` when too many texts are waiting. */
  layOut(this: void, text: string, form: TextForm, tenant?: readonly string[]): Promise<LocatedText>;
  /** Ends the thread. A text in flight fails. */
  close(): void;
}

/** Opens the reader. The first long text starts the thread. */
export function openStructuredReader(): StructuredReader {
  const worker = lazyWorker<StructuredMethods>(entryUrl("kb/ingest/extract/structured-worker"), "layout");
  const gate = openGate({
    width: 1,
    lineMax: LINE_MAX,
    shareMax: LINE_SHARE_MAX,
    full: () =>
      new KbsyncError("too many documents are waiting to be read", {
        code: "extractor_busy",
        retryable: true,
      }),
  });
  return {
    layOut: async (text, form, tenant) =>
      text.length <= INLINE_CHARS_MAX || text.length > structuredCharsMax(form)
        ? structuredText(text, form)
        : await gate.run(() => worker.call("layOut", { text, form }), { path: tenant }),
    close: () => void worker.close(),
  };
}
