import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AgentRecord } from "../../wire/agent.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { Field } from "../parts/fields.tsx";
import { Bones, Empty, ErrorNotice, Show } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { useLoad } from "../view/load.ts";
import { route, refine } from "../view/router.ts";
import { useSubmit } from "../view/submit.ts";
import { loadOlder, openThread, running, thread } from "./conversation.ts";
import type { Thread } from "./conversation.ts";
import { QuestionForm } from "./question-form.tsx";
import { ThreadsList } from "./threads-list.tsx";
import { TurnView } from "./turn-view.tsx";

/** Questions to an agent, with the passages that support its answers. */
export function AskPage(): JSX.Element {
  const agents = useLoad("agents", async (abort) => {
    const { data } = await ask<{ readonly data: { readonly agents: readonly AgentRecord[] } }>(
      ROUTES.agents,
      {
        signal: abort,
      },
    );
    return data.agents;
  });
  return (
    <Page
      title="Ask"
      intro="An agent answers from the knowledge base, and names the passages it used."
      width="narrow"
    >
      <Show loaded={agents}>{(list) => <Conversation agents={list} />}</Show>
    </Page>
  );
}

function Conversation({ agents }: { readonly agents: readonly AgentRecord[] }): JSX.Element {
  const wanted = route.value.query.get("agent") ?? thread.value?.agent ?? "default";
  const agent = agents.find(({ _id }) => _id === wanted) ?? agents[0];
  const current = thread.value?.agent === agent?._id ? thread.value : undefined;
  const id = route.value.query.get("thread");
  const shown = id === null || current?.id === id ? current : undefined;
  const remembered = shown?.turns.some(({ response, stored }) => response ?? stored) ? shown.id : undefined;
  useEffect(() => {
    // The address opens the conversation again, from when the service remembers it.
    if (id === null && remembered !== undefined) refine({ agent: agent?._id, thread: remembered });
  }, [id, remembered]);
  if (agent === undefined) return <Empty title="There is no agent" />;
  return (
    <>
      <div class="row spread end">
        <Field label="Agent">
          {(attributes) => (
            <select
              {...attributes}
              class="input"
              value={agent._id}
              disabled={running.value !== undefined}
              onChange={(event) => refine({ agent: event.currentTarget.value, thread: undefined })}
            >
              {agents.map(({ _id }) => (
                <option key={_id} value={_id}>
                  {_id}
                </option>
              ))}
            </select>
          )}
        </Field>
        <button
          type="button"
          class="button small"
          disabled={(shown === undefined && id === null) || running.value !== undefined}
          onClick={() => {
            thread.value = undefined;
            refine({ thread: undefined });
          }}
        >
          New conversation
        </button>
      </div>
      <ThreadsList agent={agent._id} />
      {shown === undefined && id !== null ? (
        <Opening key={id} agent={agent._id} id={id} />
      ) : (
        <>
          {shown === undefined ? null : <Older thread={shown} />}
          <ol class="stack turns" aria-label="Conversation">
            {(shown?.turns ?? []).map((turn) => (
              <li key={turn.key} class="stack">
                <TurnView turn={turn} />
              </li>
            ))}
          </ol>
          <QuestionForm agent={agent._id} isFirst={shown === undefined} />
        </>
      )}
    </>
  );
}

/** Loads the conversation of the address. */
function Opening({ agent, id }: { readonly agent: string; readonly id: string }): JSX.Element {
  const [error, setError] = useState<unknown>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setError(undefined);
    openThread(agent, id, abort.signal).catch((failure: unknown) => {
      if (!abort.signal.aborted) setError(failure);
    });
    return () => abort.abort();
  }, [agent, id, tries]);
  return error === undefined ? (
    <Bones lines={6} />
  ) : (
    <ErrorNotice error={error} retry={() => setTries(tries + 1)} />
  );
}

/** The button that loads the turns before the first one shown. */
function Older({ thread: shown }: { readonly thread: Thread }): JSX.Element | null {
  const { isBusy, error, submit } = useSubmit(() => loadOlder(shown));
  if (shown.older === null) return null;
  return (
    <>
      {error === undefined ? null : <ErrorNotice error={error} />}
      <button type="button" class="button small" disabled={isBusy} onClick={submit}>
        Show earlier questions
      </button>
    </>
  );
}
