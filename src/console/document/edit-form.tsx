import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { splitMarker, withMarker } from "../../wire/marker.ts";
import type { Strategy } from "../../wire/primitives.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { useSubmit } from "../view/submit.ts";
import { ask } from "../client/api.ts";
import { STRATEGIES } from "../knowledge/tiers.ts";
import { Choices, TextArea, TextField } from "../parts/fields.tsx";
import { ErrorNotice } from "../parts/notice.tsx";

/**
 * Changes title, description, text and chunking of a document. Sends only what differs. Hides the marker of the description,
 * and leaves it at its end: a daemon recognises the document by it.
 */
export function EditForm({
  record,
  onClose,
  onSaved,
}: {
  readonly record: ResourceRecord;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}): JSX.Element {
  const isText = record.url === undefined || record.url === null;
  const { text: description, marker } = splitMarker(record.description);
  const before = {
    title: record.title,
    description,
    content: record.content ?? "",
    strategy: (record.settings?.strategy ?? "recursive") as Strategy, // the service sends no other
    chunkSize: String(record.settings?.chunkSize ?? 1000),
    chunkOverlap: String(record.settings?.chunkOverlap ?? 100),
  };
  const [draft, setDraft] = useState(before);
  const set = (change: Partial<typeof draft>): void => setDraft({ ...draft, ...change });
  const body = changeOf(before, draft, marker);
  const { error, isBusy, submit } = useSubmit(async () => {
    await ask(`${ROUTES.resource}/${record._id}`, { method: "PUT", body });
    onSaved();
  });
  const text = (name: "title" | "description", label: string, needed: boolean): JSX.Element => (
    <TextField label={label} needed={needed} value={draft[name]} onText={(value) => set({ [name]: value })} />
  );
  const number = (name: "chunkSize" | "chunkOverlap", label: string): JSX.Element => (
    <TextField
      label={label}
      hint="Characters"
      class="input number"
      inputMode="numeric"
      value={draft[name]}
      onText={(value) => set({ [name]: value })}
    />
  );
  return (
    <form class="card stack" noValidate onSubmit={submit}>
      {text("title", "Name", true)}
      {text("description", "Description", false)}
      {isText ? (
        <TextArea label="Text" needed value={draft.content} onText={(value) => set({ content: value })} />
      ) : null}
      <Choices
        legend="Chunking type"
        name="edit-strategy"
        value={draft.strategy}
        options={STRATEGIES}
        onChange={(strategy) => set({ strategy })}
      />
      <div class="columns">
        {number("chunkSize", "Chunk size")}
        {number("chunkOverlap", "Overlap")}
      </div>
      {error === undefined ? null : <ErrorNotice error={error} />}
      <div class="row">
        <button
          type="submit"
          class="button primary"
          disabled={isBusy || Object.keys(body).length === 0 || draft.title.trim() === ""}
        >
          {isBusy ? "Saving" : "Save"}
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

interface Draft {
  readonly title: string;
  readonly description: string;
  readonly content: string;
  readonly strategy: string;
  readonly chunkSize: string;
  readonly chunkOverlap: string;
}

/** Returns the body of an update with what differs. A changed description keeps its marker. */
function changeOf(before: Draft, after: Draft, marker: string): Readonly<Record<string, unknown>> {
  const texts = (["title", "description", "content"] as const)
    .filter((name) => before[name] !== after[name])
    .map((name) => [name, name === "description" ? withMarker(after[name], marker) : after[name]] as const);
  const isSplitAnew = (["strategy", "chunkSize", "chunkOverlap"] as const).some(
    (name) => before[name] !== after[name],
  );
  const { strategy, chunkSize, chunkOverlap } = after;
  return {
    ...Object.fromEntries(texts),
    ...(isSplitAnew && {
      settings: { strategy, chunkSize: Number(chunkSize), chunkOverlap: Number(chunkOverlap) },
    }),
  };
}
