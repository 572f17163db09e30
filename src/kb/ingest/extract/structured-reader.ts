import { KbsyncError } from "../../../lib/failure.ts";
import { openGate } from "../../../lib/gate.ts";
import { lazyWorker } from "../../../lib/lazy-worker.ts";
import { siblingModule } from "../../../lib/sibling.ts";
import { structuredCharsMax, structuredText } from "./structured-text.ts";
import type { StructuredMethods } from "./structured-worker.ts";
import type { TextForm } from "./text-form.ts";

/** Texts up to this long are laid out in place: it takes less than the way to the worker and back, or little more. */
const INLINE_CHARS_MAX = 64 * 1024;
/** Texts that may wait for the worker: each holds 2 million characters at most, and takes it up to two seconds. */
const LINE_MAX = 64;
/** Of one account, so that another one finds room. */
const LINE_SHARE_MAX = 48;

/** `structuredText`, of long texts in a thread of its own: of 2 million characters it takes seconds. */
export interface StructuredReader {
  /** Throws `extractor_busy` when too many texts are waiting already. */
  layOut(this: void, text: string, form: TextForm, tenant?: readonly string[]): Promise<string>;
  /** Ends the thread; a text under way fails. */
  close(): void;
}

/** Starts nothing before the first long text. */
export function openStructuredReader(): StructuredReader {
  const worker = lazyWorker<StructuredMethods>(siblingModule(import.meta.url, "structured-worker"), "layout");
  const line = openGate({
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
        : await line.run(() => worker.call("layOut", { text, form }), { path: tenant }),
    close: () => void worker.close(),
  };
}
