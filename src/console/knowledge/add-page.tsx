import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Strategy, Tier } from "../../wire/primitives.ts";
import { bytes, counted } from "../view/format.ts";
import { Choices, Field } from "../parts/fields.tsx";
import { ErrorNotice, State } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { place } from "../view/router.ts";
import { me } from "../client/session.ts";
import { STRATEGIES, TIER_WORDS, TIERS } from "./tiers.ts";
import { addToTray, clearDone, retryItem, tray } from "./tray.ts";
import type { NewDocument, TrayItem } from "./tray.ts";

type Method = "url" | "file" | "content";

const METHODS: readonly { readonly value: Method; readonly label: string; readonly hint: string }[] = [
  { value: "url", label: "URL", hint: "A public page, PDF or image. The service fetches it." },
  { value: "file", label: "Upload File", hint: "PDFs, images, texts, web pages, e-mails. Several at once." },
  { value: "content", label: "Content", hint: "Text or Markdown that you type or paste." },
];

/** What stands in the form. */
interface Draft {
  readonly name: string;
  readonly description: string;
  readonly method: Method;
  readonly url: string;
  readonly content: string;
  readonly files: readonly File[];
  readonly tier: Tier;
  readonly strategy: Strategy;
  readonly chunkSize: string;
  readonly chunkOverlap: string;
  readonly owner: string;
  readonly metadata: readonly { readonly name: string; readonly value: string }[];
}

type Problems = Partial<Record<keyof Draft, string>>;

const EMPTY: Draft = {
  name: "",
  description: "",
  method: "url",
  url: "",
  content: "",
  files: [],
  tier: "moderate",
  strategy: "recursive",
  chunkSize: "1000",
  chunkOverlap: "100",
  owner: "",
  metadata: [],
};

/** Adds documents by an address, by files or by text. */
export function AddPage(): JSX.Element {
  const owner = place.value.query.get("owner") ?? "";
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

interface PartProps {
  readonly draft: Draft;
  readonly problems: Problems;
  readonly set: (change: Partial<Draft>) => void;
}

function Basics({ draft, problems, set }: PartProps): JSX.Element {
  const isMany = draft.method === "file" && draft.files.length > 1;
  return (
    <>
      <Field
        label="Name"
        needed={!isMany}
        problem={problems.name}
        hint={
          isMany
            ? "Each document gets the name of its file."
            : "The title of the document. Its words find it."
        }
      >
        {(attributes) => (
          <input
            {...attributes}
            class="input"
            disabled={isMany}
            value={isMany ? "" : draft.name}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field
        label="Description"
        needed
        problem={problems.description}
        hint="What it is about, in a sentence."
      >
        {(attributes) => (
          <input
            {...attributes}
            class="input"
            value={draft.description}
            onInput={(event) => set({ description: event.currentTarget.value })}
          />
        )}
      </Field>
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
        <Field
          label="Text"
          needed
          problem={problems.content}
          hint="Markdown headings are kept with their sections."
        >
          {(attributes) => (
            <textarea
              {...attributes}
              class="input"
              value={draft.content}
              onInput={(event) => set({ content: event.currentTarget.value })}
            />
          )}
        </Field>
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
          <input
            {...attributes}
            type="file"
            multiple
            onChange={(event) => choose(event.currentTarget.files)}
          />
          <span class="hint">or drop them here</span>
          {draft.files.length < 2 ? null : (
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

function Advanced({ draft, problems, set }: PartProps): JSX.Element {
  const isProblem = ["chunkSize", "chunkOverlap", "metadata"].some((name) => name in problems);
  return (
    <details open={isProblem || undefined}>
      <summary>Advanced: chunking, owner, metadata</summary>
      <div class="stack" style={{ marginTop: "16px" }}>
        <Choices
          legend="Chunking type"
          name="strategy"
          value={draft.strategy}
          options={STRATEGIES}
          onChange={(strategy) => set({ strategy })}
        />
        <div class="columns">
          <Field
            label="Chunk size"
            problem={problems.chunkSize}
            hint="Characters, at most 4000. Larger chunks keep more context but may slow retrieval."
          >
            {(attributes) => (
              <input
                {...attributes}
                class="input number"
                inputMode="numeric"
                value={draft.chunkSize}
                onInput={(event) => set({ chunkSize: event.currentTarget.value })}
              />
            )}
          </Field>
          <Field
            label="Overlap"
            problem={problems.chunkOverlap}
            hint="Characters that a chunk repeats of the one before. Suits long or flowing paragraphs."
          >
            {(attributes) => (
              <input
                {...attributes}
                class="input number"
                inputMode="numeric"
                value={draft.chunkOverlap}
                onInput={(event) => set({ chunkOverlap: event.currentTarget.value })}
              />
            )}
          </Field>
        </div>
        <Field
          label="Owner"
          hint="Separates documents of users or projects. A search must name the owner to find them. Empty: no owner."
        >
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              value={draft.owner}
              onInput={(event) => set({ owner: event.currentTarget.value })}
            />
          )}
        </Field>
        <Metadata draft={draft} problems={problems} set={set} />
      </div>
    </details>
  );
}

function Metadata({ draft: { metadata }, problems, set }: PartProps): JSX.Element {
  const change = (at: number, part: Partial<Draft["metadata"][number]>): void =>
    set({ metadata: metadata.map((pair, index) => (index === at ? { ...pair, ...part } : pair)) });
  return (
    <fieldset class="stack tight">
      <legend class="label">Metadata</legend>
      <p class="hint">Names with values, for the filters of searches.</p>
      {metadata.map((pair, at) => (
        <div class="pairs" key={at}>
          <input
            class="input"
            aria-label={`Name ${at + 1}`}
            placeholder="Name"
            value={pair.name}
            onInput={(event) => change(at, { name: event.currentTarget.value })}
          />
          <input
            class="input"
            aria-label={`Value ${at + 1}`}
            placeholder="Value"
            value={pair.value}
            onInput={(event) => change(at, { value: event.currentTarget.value })}
          />
          <button
            type="button"
            class="button small"
            aria-label={`Remove ${pair.name === "" ? `pair ${at + 1}` : pair.name}`}
            onClick={() => set({ metadata: metadata.filter((_, index) => index !== at) })}
          >
            Remove
          </button>
        </div>
      ))}
      <div class="problem" aria-live="polite">
        {problems.metadata}
      </div>
      <div>
        <button
          type="button"
          class="button small"
          onClick={() => set({ metadata: [...metadata, { name: "", value: "" }] })}
        >
          Add a value
        </button>
      </div>
    </fieldset>
  );
}

function Tray(): JSX.Element | null {
  const items = tray.value;
  if (items.length === 0) return null;
  const done = items.filter(({ state }) => state === "done").length;
  return (
    <section class="card tray" aria-label="Added documents">
      <div class="row spread">
        <div role="status">
          <h2>
            {done === items.length
              ? `${counted(done, "document")} added`
              : `${done} of ${counted(items.length, "document")} added`}
          </h2>
        </div>
        {done === 0 ? null : (
          <button type="button" class="button small plain" onClick={clearDone}>
            Clear
          </button>
        )}
      </div>
      <ul>
        {items.map((item) => (
          <TrayRow key={item.key} item={item} />
        ))}
      </ul>
    </section>
  );
}

function TrayRow({ item }: { readonly item: TrayItem }): JSX.Element {
  const { key, document, state, part, error, id, warning } = item;
  return (
    <li>
      {id === undefined ? (
        <span class="clip">{document.title}</span>
      ) : (
        <a class="clip" href={addressOf(["documents", id])}>
          {document.title}
        </a>
      )}
      <TrayState state={state} part={part} />
      {state === "uploading" ? (
        <div class="bar" aria-hidden="true">
          <i style={{ width: `${part * 100}%` }} />
        </div>
      ) : null}
      {warning === undefined ? null : <span class="hint">{warning}</span>}
      {state === "failed" ? (
        <div class="problem">
          <ErrorNotice error={error} retry={() => retryItem(key)} />
        </div>
      ) : null}
    </li>
  );
}

function TrayState({ state, part }: Pick<TrayItem, "state" | "part">): JSX.Element {
  switch (state) {
    case "waiting":
      return <State kind="none">Waiting</State>;
    case "uploading":
      return <State kind="wait">Uploading {Math.round(part * 100)} %</State>;
    case "reading":
      return <State kind="wait">Reading</State>;
    case "done":
      return <State kind="good">Searchable</State>;
    case "failed":
      return <State kind="bad">Failed</State>;
  }
}

/** What a person must correct before anything is sent. */
function problemsOf(draft: Draft): Problems {
  const { name, description, method, url, content, files, chunkSize, chunkOverlap, metadata } = draft;
  const size = Number(chunkSize);
  const overlap = Number(chunkOverlap);
  const isMany = method === "file" && files.length > 1;
  const names = metadata.map((pair) => pair.name.trim());
  return {
    ...(name.trim() === "" && !isMany && { name: "Enter a name." }),
    ...(description.trim() === "" && { description: "Enter a description." }),
    ...(method === "url" &&
      !URL.canParse(url.trim()) && { url: "Enter a whole address, such as https://example.com/page." }),
    ...(method === "content" && content.trim() === "" && { content: "Enter a text." }),
    ...(method === "file" && files.length === 0 && { files: "Choose at least one file." }),
    ...(!(Number.isInteger(size) && size >= 1 && size <= 4000) && {
      chunkSize: "Enter a number from 1 to 4000.",
    }),
    ...(!(Number.isInteger(overlap) && overlap >= 0 && overlap < size) && {
      chunkOverlap: "Enter a number from 0 to less than the chunk size.",
    }),
    ...((names.includes("") || new Set(names).size < names.length) && {
      metadata: "Give every value a name of its own.",
    }),
  };
}

function documentsOf(draft: Draft): readonly NewDocument[] {
  const { name, method, url, content, files, owner, metadata, tier, strategy } = draft;
  const body = {
    description: draft.description.trim(),
    collection_details: tier,
    settings: { strategy, chunkSize: Number(draft.chunkSize), chunkOverlap: Number(draft.chunkOverlap) },
    ...(owner.trim() !== "" && { owner_id: owner.trim() }),
    ...(metadata.length > 0 && {
      metadata: Object.fromEntries(metadata.map((pair) => [pair.name.trim(), pair.value])),
    }),
  };
  const title = name.trim();
  switch (method) {
    case "url":
      return [{ title, source: { url: url.trim() }, body }];
    case "content":
      return [{ title, source: { content }, body }];
    case "file":
      return files.map((file) => ({
        title: files.length > 1 ? titleOf(file) : title,
        source: { file },
        body,
      }));
  }
}

/** The name of a file without its extension. */
function titleOf({ name }: File): string {
  return name.replace(/(.)\.[^.]{1,8}$/, "$1");
}
