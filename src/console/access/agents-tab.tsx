import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AgentRecord } from "../../wire/agent.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { TIER_WORDS, TIERS } from "../knowledge/tiers.ts";
import { Confirm, Dialog } from "../parts/dialog.tsx";
import { TextArea, TextField } from "../parts/fields.tsx";
import { ErrorNotice, Show } from "../parts/notice.tsx";
import { toast } from "../parts/toast.tsx";
import { addressOf } from "../view/address.ts";
import { useLoad } from "../view/load.ts";
import { useSubmit } from "../view/submit.ts";

type Part = AgentRecord["knowledge"][number];

/** The agents that answer questions. */
export function AgentsTab(): JSX.Element {
  const [edited, setEdited] = useState<AgentRecord | "new">();
  const [removed, setRemoved] = useState<AgentRecord>();
  const loaded = useLoad("agents", async (signal) => {
    type Answer = { readonly data: { readonly agents: readonly AgentRecord[] } };
    return (await ask<Answer>(ROUTES.agents, { signal })).data.agents;
  });
  return (
    <>
      <div class="row">
        <button type="button" class="button primary" onClick={() => setEdited("new")}>
          New agent
        </button>
      </div>
      <Show loaded={loaded}>
        {(agents) => (
          <ul class="stack">
            {agents.map((agent) => (
              <li key={agent._id}>
                <AgentCard agent={agent} onEdit={() => setEdited(agent)} onRemove={() => setRemoved(agent)} />
              </li>
            ))}
          </ul>
        )}
      </Show>
      {edited === undefined ? null : (
        <AgentDialog
          agent={edited === "new" ? undefined : edited}
          onDone={() => {
            setEdited(undefined);
            loaded.reload();
          }}
          onClose={() => setEdited(undefined)}
        />
      )}
      {removed === undefined ? null : (
        <Confirm
          title={`Delete “${removed.name}”?`}
          effect={<p>Its conversations are deleted with it. Questions to it are refused from now on.</p>}
          number={1}
          action="Delete the agent"
          onConfirm={async () => {
            await ask(`${ROUTES.agents}/${removed._id}`, { method: "DELETE" });
            toast(`The agent “${removed.name}” is deleted.`);
            loaded.reload();
          }}
          onClose={() => setRemoved(undefined)}
        />
      )}
    </>
  );
}

function AgentCard({
  agent,
  onEdit,
  onRemove,
}: {
  readonly agent: AgentRecord;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}): JSX.Element {
  const { _id, name, model, fallbackModel, knowledge, systemPrompt, origin } = agent;
  return (
    <article class="card stack tight">
      <div class="row spread">
        <h2>{name}</h2>
        <code class="small">{_id}</code>
      </div>
      <p class="small muted">
        {model ?? "the configured model"}
        {fallbackModel === null ? "" : `, else ${fallbackModel}`} ·{" "}
        {knowledge.length === 0 ? "reads no documents" : `reads ${knowledge.map(partWords).join(", ")}`}
      </p>
      {systemPrompt === "" ? null : <p class="clip">{systemPrompt}</p>}
      <div class="row">
        <a class="button small" href={addressOf(["ask"], { agent: _id })}>
          Try
        </a>
        {origin === "configuration" ? (
          <span class="small muted">Defined in the configuration: change it in kb.agents.</span>
        ) : (
          <button type="button" class="button small" onClick={onEdit}>
            Edit<span class="hidden-visually"> {name}</span>
          </button>
        )}
        {origin === "api" ? (
          <button type="button" class="button small danger" onClick={onRemove}>
            Delete<span class="hidden-visually"> {name}</span>
          </button>
        ) : null}
      </div>
    </article>
  );
}

function partWords({ owner, tier }: Part): string {
  return `${owner ?? "the account's own documents"} (${TIER_WORDS[tier].label})`;
}

/** The fields of an agent's form. */
interface Draft {
  readonly name: string;
  readonly systemPrompt: string;
  readonly model: string;
  readonly fallbackModel: string;
  readonly temperature: string;
  readonly knowledge: readonly Part[];
}

function AgentDialog({
  agent,
  onDone,
  onClose,
}: {
  readonly agent: AgentRecord | undefined;
  readonly onDone: () => void;
  readonly onClose: () => void;
}): JSX.Element {
  const [draft, setDraft] = useState<Draft>({
    name: agent?.name ?? "",
    systemPrompt: agent?.systemPrompt ?? "",
    model: agent?.model ?? "",
    fallbackModel: agent?.fallbackModel ?? "",
    temperature: agent?.temperature?.toString() ?? "",
    knowledge: agent?.knowledge ?? [],
  });
  const set = (facts: Partial<Draft>): void => setDraft((before) => ({ ...before, ...facts }));
  const { error, isBusy, submit } = useSubmit(async () => {
    const body = bodyOf(draft);
    if (agent === undefined) await ask(ROUTES.agents, { method: "POST", body });
    else await ask(`${ROUTES.agents}/${agent._id}`, { method: "PUT", body });
    onDone();
  });
  const text = (label: string, name: "name" | "model" | "fallbackModel" | "temperature", hint?: string) => (
    <TextField
      label={label}
      needed={name === "name"}
      hint={hint}
      value={draft[name]}
      onText={(value) => set({ [name]: value })}
    />
  );
  return (
    <Dialog title={agent === undefined ? "New agent" : `Edit “${agent.name}”`} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        {text("Name", "name")}
        <TextArea
          label="Instructions"
          hint="The first message to the model; {{name}} stands for a variable of the request."
          rows={5}
          value={draft.systemPrompt}
          onText={(value) => set({ systemPrompt: value })}
        />
        <div class="columns">
          {text("Model", "model", "Empty: the configured one. builtin/ocr needs none.")}
          {text("Fallback model", "fallbackModel", "Answers when the first one fails.")}
          {text("Temperature", "temperature", "0 to 2; empty: the model's own.")}
        </div>
        <Parts knowledge={draft.knowledge} onChange={(knowledge) => set({ knowledge })} />
        {error === undefined ? null : <ErrorNotice error={error} />}
        <div class="row">
          <button type="submit" class="button primary" disabled={draft.name.trim() === "" || isBusy}>
            Save
          </button>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Empty fields mean the default, which null restores. */
function bodyOf({ name, systemPrompt, model, fallbackModel, temperature, knowledge }: Draft): object {
  const orNull = (value: string): string | null => (value.trim() === "" ? null : value.trim());
  return {
    name: name.trim(),
    systemPrompt,
    model: orNull(model),
    fallbackModel: orNull(fallbackModel),
    temperature: temperature.trim() === "" ? null : Number(temperature),
    knowledge: knowledge.map(({ tier, owner, top_k, score }) => ({
      tier,
      top_k,
      ...(owner !== null && owner !== "" && { owner }),
      ...(score !== null && { score }),
    })),
  };
}

function Parts({
  knowledge,
  onChange,
}: {
  readonly knowledge: readonly Part[];
  readonly onChange: (knowledge: readonly Part[]) => void;
}): JSX.Element {
  const change = (at: number, facts: Partial<Part>): void =>
    onChange(knowledge.map((part, each) => (each === at ? { ...part, ...facts } : part)));
  return (
    <fieldset class="stack tight">
      <legend class="label">Documents that it reads</legend>
      {knowledge.map((part, at) => (
        <div key={at} class="pairs">
          <select
            class="input"
            aria-label={`Collection ${at + 1}`}
            value={part.tier}
            onChange={(event) => change(at, { tier: event.currentTarget.value as Part["tier"] })}
          >
            {TIERS.map((tier) => (
              <option key={tier} value={tier}>
                {TIER_WORDS[tier].label}
              </option>
            ))}
          </select>
          <input
            class="input"
            aria-label={`Owner ${at + 1}`}
            placeholder="owner (empty: the account's own)"
            value={part.owner ?? ""}
            onInput={(event) => change(at, { owner: event.currentTarget.value })}
          />
          <button
            type="button"
            class="button small"
            onClick={() => onChange(knowledge.filter((_, each) => each !== at))}
          >
            Remove<span class="hidden-visually"> part {at + 1}</span>
          </button>
        </div>
      ))}
      <div class="row">
        <button
          type="button"
          class="button small"
          onClick={() => onChange([...knowledge, { tier: "fastest", owner: null, top_k: 5, score: null }])}
        >
          Add documents
        </button>
      </div>
    </fieldset>
  );
}
