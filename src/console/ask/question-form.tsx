import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { IMAGES_MAX } from "../../wire/constants.ts";
import { uploadFile } from "../knowledge/upload.ts";
import { TextArea } from "../parts/fields.tsx";
import { Icon } from "../parts/icons.tsx";
import { running, sendQuestion } from "./conversation.ts";

/** An image that is being attached. */
interface Attached {
  readonly name: string;
  readonly url?: string;
  readonly error?: string;
}

/** Asks a question, with images that are chosen, dropped or pasted. */
export function QuestionForm({
  agent,
  isFirst,
}: {
  readonly agent: string;
  readonly isFirst: boolean;
}): JSX.Element {
  const [text, setText] = useState("");
  const [images, setImages] = useState<readonly Attached[]>([]);
  const [isOver, setIsOver] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const isBusy = running.value !== undefined;
  const ready = images.flatMap(({ url }) => url ?? []);
  const isUploading = images.some(({ url, error }) => url === undefined && error === undefined);
  const attach = (files: Iterable<File>): void => {
    for (const file of files) {
      if (!file.type.startsWith("image/")) continue;
      if (images.length >= IMAGES_MAX) return;
      setImages((before) => [...before, { name: file.name }]);
      const change = (facts: Partial<Attached>): void =>
        setImages((before) => before.map((each) => (each.name === file.name ? { ...each, ...facts } : each)));
      uploadFile(file, crypto.randomUUID(), () => undefined).then(
        (url) => change({ url }),
        (error: unknown) => change({ error: error instanceof Error ? error.message : String(error) }),
      );
    }
  };
  const submit = (): void => {
    if (isBusy || isUploading || (text.trim() === "" && ready.length === 0)) return;
    void sendQuestion(agent, text.trim(), ready);
    setText("");
    setImages([]);
    field.current?.focus();
  };
  return (
    <div
      class={`card ask-form ${isOver ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        attach(event.dataTransfer?.files ?? []);
      }}
      onPaste={(event) => attach(event.clipboardData?.files ?? [])}
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <TextArea
          label="Question"
          hint="Enter asks, Shift and Enter begin a new line. Drop or paste images to ask about them."
          ref={field}
          rows={3}
          value={text}
          placeholder={isFirst ? "What do you want to know?" : "Ask further"}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            submit();
          }}
          onText={setText}
        />
        {images.length === 0 ? null : (
          <ul class="row" aria-label="Images">
            {images.map(({ name, url, error }) => (
              <li key={name} class="row small">
                <Icon name="file" />
                {name}
                {error === undefined ? (url === undefined ? " (uploading)" : "") : `: ${error}`}
                <button
                  type="button"
                  class="button small plain"
                  onClick={() => setImages((before) => before.filter((each) => each.name !== name))}
                >
                  Remove<span class="hidden-visually"> {name}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
        <div class="row">
          <button type="submit" class="button primary" disabled={isBusy || isUploading}>
            Ask
          </button>
          {isBusy ? (
            <button type="button" class="button" onClick={() => running.value?.abort()}>
              Stop
            </button>
          ) : null}
          <label class="button">
            Add images
            <input
              class="hidden-visually"
              type="file"
              accept="image/*"
              multiple
              onChange={(event) => attach(event.currentTarget.files ?? [])}
            />
          </label>
        </div>
      </form>
    </div>
  );
}
