import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { PREVIEW_CHARS_MAX } from "../../wire/constants.ts";
import type { PreviewAnswer } from "../../wire/preview.ts";
import type { Strategy } from "../../wire/primitives.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { Bones, ErrorNotice, Notice } from "../parts/notice.tsx";
import { count, counted } from "../view/format.ts";
import { ChunkedText } from "./chunked-text.tsx";

/** What to split: a text, a document, or the address of a file or page. */
export type PreviewedSource =
  | { readonly content: string }
  | { readonly doc_id: string }
  | { readonly url: string };

export interface PreviewedSettings {
  readonly strategy: Strategy;
  readonly chunkSize: number;
  readonly chunkOverlap: number;
}

type Preview = PreviewAnswer["data"];

/** Time after the last change before it is sent, so that typing sends little. */
const PAUSE_MS = 350;
/** Characters that are shown at first: enough to compare settings by. */
const SHOWN_CHARS = 6000;

/** Whether these are settings that the service takes. */
export function isSplittable({ chunkSize, chunkOverlap }: PreviewedSettings): boolean {
  const isSize = Number.isInteger(chunkSize) && chunkSize >= 1 && chunkSize <= 4000;
  return isSize && Number.isInteger(chunkOverlap) && chunkOverlap >= 0 && chunkOverlap < chunkSize;
}

/** The chunks into which settings split a text, which follow every change of either. The last ones stay until the next arrive. */
export function ChunkPreview({
  source,
  settings,
  isPart = false,
}: {
  readonly source: PreviewedSource;
  /** Whether the source is only the beginning of a longer text. */
  readonly isPart?: boolean;
  readonly settings: PreviewedSettings;
}): JSX.Element {
  const [preview, setPreview] = useState<Preview>();
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  const body = { ...sent(source), settings };
  const key = JSON.stringify(body);
  // A language model costs time and perhaps money: it is asked on demand, not with every key that is pressed.
  const [askedKey, setAskedKey] = useState("");
  const isWaiting = settings.strategy === "agentic" && askedKey !== key;
  useEffect(() => {
    if (isWaiting || !isSplittable(settings)) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      ask<PreviewAnswer>(ROUTES.preview, { method: "POST", body, signal: abort.signal })
        .then(({ data }) => {
          setPreview(data);
          setError(undefined);
        })
        .catch((failure: unknown) => {
          if (!abort.signal.aborted) setError(failure);
        });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, turn, isWaiting]);
  if (isWaiting)
    return (
      <div class="row">
        <button type="button" class="button" onClick={() => setAskedKey(key)}>
          Preview the chunks
        </button>
        <span class="hint">Asks the language model, which may take a while.</span>
      </div>
    );
  if (error !== undefined) return <ErrorNotice error={error} retry={() => setTurn(turn + 1)} />;
  if (preview === undefined) return <Bones lines={4} />;
  const { content, chunks, isCut, strategyUsed, warning } = preview;
  return (
    <section class="stack tight preview" aria-label="Preview of the chunks">
      <p role="status">
        <strong>{counted(chunks.length, "chunk")}</strong>
        <span class="muted"> {sizesOf(chunks)}</span>
      </p>
      {strategyUsed === settings.strategy ? null : (
        <Notice kind="wait" title={`Split as ${strategyUsed}: ${settings.strategy} is not available now.`} />
      )}
      {warning === undefined ? null : <Notice kind="wait" title={warning} />}
      {/* It scrolls by the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div class="preview-text" tabIndex={0} role="group" aria-label="Text with its chunks">
        <ChunkedText content={content} chunks={chunks} shownChars={SHOWN_CHARS} />
      </div>
      {isCut || isPart ? (
        <p class="hint">This is how the first {count(content.length)} characters are split.</p>
      ) : null}
    </section>
  );
}

/** Sends no more of a text than is split. One more character shows that the text is longer. */
function sent(source: PreviewedSource): PreviewedSource {
  return "content" in source ? { content: source.content.slice(0, PREVIEW_CHARS_MAX + 1) } : source;
}

/** `of 340 to 1,000 characters`. */
function sizesOf(chunks: Preview["chunks"]): string {
  const sizes = chunks.map(
    ({ start, end, before = "", after = "" }) => end - start + before.length + after.length,
  );
  if (sizes.length === 0) return "";
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  return least === most ? `of ${count(most)} characters` : `of ${count(least)} to ${count(most)} characters`;
}
