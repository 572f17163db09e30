import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Choices, TextField } from "../parts/fields.tsx";
import type { Draft, PartProps } from "./draft.ts";
import { STRATEGIES } from "./tiers.ts";

/** Chunking, owner and metadata of new documents. */
export function Advanced({ draft, problems, set }: PartProps): JSX.Element {
  const isProblem = ["chunkSize", "chunkOverlap", "metadata"].some((name) => name in problems);
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details open={isProblem || isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
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
          <TextField
            label="Chunk size"
            problem={problems.chunkSize}
            hint="Characters, at most 4000. Larger chunks keep more context but may slow retrieval."
            class="input number"
            inputMode="numeric"
            value={draft.chunkSize}
            onText={(value) => set({ chunkSize: value })}
          />
          <TextField
            label="Overlap"
            problem={problems.chunkOverlap}
            hint="Characters that a chunk repeats of the one before. Suits long or flowing paragraphs."
            class="input number"
            inputMode="numeric"
            value={draft.chunkOverlap}
            onText={(value) => set({ chunkOverlap: value })}
          />
        </div>
        <TextField
          label="Owner"
          hint="Separates documents of users or projects. A search must name the owner to find them. Empty: no owner."
          value={draft.owner}
          onText={(value) => set({ owner: value })}
        />
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
