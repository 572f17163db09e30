import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PreviewAnswer } from "../../wire/preview.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ChunkPreview, isSplittable } from "../chunks/chunk-preview.tsx";
import { ask } from "../client/api.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import type { Draft } from "./draft.ts";
import { uploadFile } from "./upload.ts";

/** The chunks of what stands in the form. A file or a page is read once, when a person asks for it. */
export function DraftPreview({ draft }: { readonly draft: Draft }): JSX.Element {
  const settings = {
    strategy: draft.strategy,
    chunkSize: Number(draft.chunkSize),
    chunkOverlap: Number(draft.chunkOverlap),
  };
  if (draft.method === "content") {
    return draft.content.trim() === "" ? (
      <p class="hint">Enter a text to see its chunks here.</p>
    ) : (
      <ChunkPreview source={{ content: draft.content }} settings={settings} />
    );
  }
  const [file] = draft.files;
  const source = draft.method === "url" ? draft.url.trim() : file;
  const isReady = source instanceof File || (source !== undefined && URL.canParse(source));
  if (!isReady) {
    const what = draft.method === "url" ? "Enter an address" : "Choose a file";
    return <p class="hint">{what} to see its chunks here.</p>;
  }
  const key = source instanceof File ? `${source.name} ${source.size} ${source.lastModified}` : source;
  return <ReadPreview key={key} source={source} settings={settings} />;
}

type Text = Pick<PreviewAnswer["data"], "content" | "isCut">;

function ReadPreview({
  source,
  settings,
}: {
  readonly source: File | string;
  readonly settings: Parameters<typeof ChunkPreview>[0]["settings"];
}): JSX.Element {
  const [text, setText] = useState<Text>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const read = async (): Promise<void> => {
    setIsBusy(true);
    setError(undefined);
    try {
      const url =
        source instanceof File ? await uploadFile(source, crypto.randomUUID(), () => undefined) : source;
      setText((await ask<PreviewAnswer>(ROUTES.preview, { method: "POST", body: { url } })).data);
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  if (text !== undefined)
    return <ChunkPreview source={{ content: text.content }} isPart={text.isCut} settings={settings} />;
  if (error !== undefined) return <ErrorNotice error={error} retry={() => void read()} />;
  return (
    <div class="row">
      <button
        type="button"
        class="button"
        disabled={isBusy || !isSplittable(settings)}
        onClick={() => void read()}
      >
        {isBusy ? "Reading" : "Preview the chunks"}
      </button>
      <span class="hint">{source instanceof File ? source.name : "Fetches the address."}</span>
    </div>
  );
}
