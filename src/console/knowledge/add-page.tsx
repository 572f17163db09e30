import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { bytes, counted } from "../view/format.ts";
import { Choices, Field, TextArea, TextField } from "../parts/fields.tsx";
import { Page } from "../parts/page.tsx";
import { route } from "../view/router.ts";
import { me } from "../client/session.ts";
import { Advanced } from "./advanced.tsx";
import { documentsOf, EMPTY, METHODS, problemsOf, titleOf } from "./draft.ts";
import type { Draft, PartProps, Problems } from "./draft.ts";
import { TIER_WORDS, TIERS } from "./tiers.ts";
import { Tray } from "./tray-list.tsx";
import { addToTray } from "./tray.ts";

/** Adds documents by an address, by files or by text. */
export function AddPage(): JSX.Element {
  const owner = route.value.query.get("owner") ?? "";
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, owner: owner === me.value?.accountId ? "" : owner });
  const [problems, setProblems] = useState<Problems>({});
  const form = useRef<HTMLFormElement>(null);
  const set = (change: Partial<Draft>): void => {
    setDraft({ ...draft, ...change });
    setProblems(Object.fromEntries(Object.entries(problems).filter(([name]) => !(name in change))));
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    const found = problemsOf(draft);
    setProblems(found);
    if (Object.keys(found).length > 0) {
      // After the problems are drawn.
      setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    addToTray(documentsOf(draft));
    setDraft({ ...draft, name: "", description: "", url: "", content: "", files: [] });
  };
  return (
    <Page title="Add documents" width="narrow" intro="What you add is searchable as soon as it is read.">
      <form ref={form} class="stack" noValidate onSubmit={submit}>
        <div class="card stack">
          <Basics draft={draft} problems={problems} set={set} />
          <Choices
            legend="Upload method"
            needed
            name="method"
            value={draft.method}
            options={METHODS}
            onChange={(method) => set({ method })}
          />
          <Source draft={draft} problems={problems} set={set} />
        </div>
        <div class="card stack">
          <Choices
            legend="Retrieval preference"
            name="tier"
            value={draft.tier}
            options={TIERS.map((value) => ({ value, ...TIER_WORDS[value] }))}
            onChange={(tier) => set({ tier })}
          />
          <Advanced draft={draft} problems={problems} set={set} />
        </div>
        <div>
          <button type="submit" class="button primary">
            {draft.method === "file" && draft.files.length > 1
              ? `Add ${counted(draft.files.length, "document")}`
              : "Add document"}
          </button>
        </div>
      </form>
      <Tray />
    </Page>
  );
}

function Basics({ draft, problems, set }: PartProps): JSX.Element {
  const isMany = draft.method === "file" && draft.files.length > 1;
  return (
    <>
      <TextField
        label="Name"
        needed={!isMany}
        problem={problems.name}
        hint={
          isMany
            ? "Each document gets the name of its file."
            : "The title of the document. Its words find it."
        }
        disabled={isMany}
        value={isMany ? "" : draft.name}
        onText={(value) => set({ name: value })}
      />
      <TextField
        label="Description"
        needed
        problem={problems.description}
        hint="What it is about, in a sentence."
        value={draft.description}
        onText={(value) => set({ description: value })}
      />
    </>
  );
}

function Source({ draft, problems, set }: PartProps): JSX.Element {
  switch (draft.method) {
    case "url":
      return (
        <Field
          label="Address"
          needed
          problem={problems.url}
          hint="It must be reachable without signing in. Addresses of private networks are refused."
        >
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              type="url"
              placeholder="https://"
              value={draft.url}
              onInput={(event) => set({ url: event.currentTarget.value })}
            />
          )}
        </Field>
      );
    case "file":
      return <Files draft={draft} problems={problems} set={set} />;
    case "content":
      return (
        <TextArea
          label="Text"
          needed
          problem={problems.content}
          hint="Markdown headings are kept with their sections."
          value={draft.content}
          onText={(value) => set({ content: value })}
        />
      );
  }
}

function Files({ draft, problems, set }: PartProps): JSX.Element {
  const [isOver, setIsOver] = useState(false);
  const choose = (list: FileList | null | undefined): void => {
    const files = [...(list ?? [])];
    if (files.length === 0) return;
    const [first] = files;
    const name = draft.name === "" && files.length === 1 && first !== undefined ? titleOf(first) : draft.name;
    set({ files, name });
  };
  return (
    <Field label="Files" needed problem={problems.files} hint="Up to 32 MB each.">
      {(attributes) => (
        <div
          class={`drop ${isOver ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setIsOver(true);
          }}
          onDragLeave={() => setIsOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setIsOver(false);
            choose(event.dataTransfer?.files);
          }}
        >
          <div class="row">
            <label class="button small">
              Choose files
              <input
                {...attributes}
                class="hidden-visually"
                type="file"
                multiple
                onChange={(event) => {
                  choose(event.currentTarget.files);
                  // The files are listed below; the same ones may be chosen again.
                  event.currentTarget.value = "";
                }}
              />
            </label>
            <span class="hint">or drop them here</span>
          </div>
          {draft.files.length === 0 ? null : (
            <ul class="small">
              {draft.files.map((file) => (
                <li key={`${file.name} ${file.size}`}>
                  {file.name} <span class="muted">{bytes(file.size)}</span>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Field>
  );
}
