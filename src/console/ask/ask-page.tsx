import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AgentRecord } from "../../wire/agent.ts";
import type { ChatResponse, Citation } from "../../wire/chat.ts";
import { IMAGES_MAX } from "../../wire/constants.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { uploadFile } from "../knowledge/upload.ts";
import { Field } from "../parts/fields.tsx";
import { Icon } from "../parts/icons.tsx";
import { Empty, ErrorNotice, Notice, Show } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { counted } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { place, refine } from "../view/router.ts";
import { Markdown } from "./markdown.tsx";
import { askAgent } from "./stream.ts";

/** A question and what came of it. */
interface Turn {
  readonly key: string;
  readonly question: string;
  readonly images: readonly string[];
  /** What has come of the answer so far. */
  readonly text: string;
  readonly response?: ChatResponse;
  readonly error?: unknown;
  readonly isStopped?: boolean;
}

/** A conversation; it stays while a person looks at other pages. */
interface Thread {
  readonly id: string;
  readonly agent: string;
  readonly turns: readonly Turn[];
}

const thread = signal<Thread | undefined>(undefined);
const running = signal<AbortController | undefined>(undefined);

/** Questions to an agent, with the passages that its answers rest on. */
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
  const wanted = place.value.query.get("agent") ?? thread.value?.agent ?? "default";
  const agent = agents.find(({ _id }) => _id === wanted) ?? agents[0];
  if (agent === undefined) return <Empty title="There is no agent" />;
  const shown = thread.value?.agent === agent._id ? thread.value : undefined;
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
              onChange={(event) => refine({ agent: event.currentTarget.value })}
            >
              {agents.map(({ _id, name }) => (
                <option key={_id} value={_id}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <button
          type="button"
          class="button small"
          disabled={shown === undefined || running.value !== undefined}
          onClick={() => (thread.value = undefined)}
        >
          New conversation
        </button>
      </div>
      <ol class="stack turns" aria-label="Conversation">
        {(shown?.turns ?? []).map((turn) => (
          <li key={turn.key} class="stack">
            <TurnView turn={turn} />
          </li>
        ))}
      </ol>
      <QuestionForm agent={agent._id} isFirst={shown === undefined} />
    </>
  );
}

/** An image that is being attached. */
interface Attached {
  readonly name: string;
  readonly url?: string;
  readonly error?: string;
}

function QuestionForm({
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
    void send(agent, text.trim(), ready);
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
        <Field
          label="Question"
          hint="Enter asks, Shift and Enter begin a new line. Drop or paste images to ask about them."
        >
          {(attributes) => (
            <textarea
              {...attributes}
              ref={field}
              class="input"
              rows={3}
              value={text}
              placeholder={isFirst ? "What do you want to know?" : "Ask further"}
              onInput={(event) => setText(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
                event.preventDefault();
                submit();
              }}
            />
          )}
        </Field>
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

async function send(agent: string, question: string, images: readonly string[]): Promise<void> {
  const before =
    thread.peek()?.agent === agent
      ? thread.peek()
      : { id: `console-${crypto.randomUUID()}`, agent, turns: [] };
  if (before === undefined) return;
  const key = crypto.randomUUID();
  thread.value = { ...before, turns: [...before.turns, { key, question, images, text: "" }] };
  const change = (facts: (turn: Turn) => Partial<Turn>): void => {
    const { value } = thread;
    if (value === undefined) return;
    thread.value = {
      ...value,
      turns: value.turns.map((turn) => (turn.key === key ? { ...turn, ...facts(turn) } : turn)),
    };
  };
  const abort = new AbortController();
  running.value = abort;
  try {
    const response = await askAgent(
      {
        agent_id: agent,
        user: question,
        thread_id: before.id,
        user_urls: images.map((url) => ({ type: "image", url })),
      },
      (piece) => change(({ text }) => ({ text: text + piece })),
      abort.signal,
    );
    change(() => ({ text: response.data.content, response }));
  } catch (error) {
    change(() => (abort.signal.aborted ? { isStopped: true } : { error }));
  } finally {
    running.value = undefined;
  }
}

function TurnView({ turn }: { readonly turn: Turn }): JSX.Element {
  const { question, images, text, response, error, isStopped } = turn;
  const citations = citationsOf(response);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [text, response]);
  const cite = (number: number): JSX.Element | undefined => {
    const citation = citations.find((each) => each.number === number);
    return citation === undefined ? undefined : (
      <a href={linkTo(citation)} aria-label={`Source ${number}: ${citation.title}`}>
        [{number}]
      </a>
    );
  };
  const isGoing = response === undefined && error === undefined && isStopped !== true;
  return (
    <>
      <div class="question">
        <span class="hidden-visually">Question: </span>
        {question}
        {images.length === 0 ? null : <p class="small muted">with {counted(images.length, "image")}</p>}
      </div>
      <div class="card stack" aria-busy={isGoing}>
        <span class="hidden-visually">Answer: </span>
        {text === "" && isGoing ? (
          <p class="muted">Searching and thinking</p>
        ) : (
          <Markdown text={text} cite={cite} />
        )}
        {isStopped === true ? <Notice kind="wait" title="You stopped this answer." /> : null}
        {error === undefined ? null : <ErrorNotice error={error} />}
        {response === undefined ? null : <Remarks response={response} />}
        {citations.length === 0 ? null : <Sources citations={citations} />}
      </div>
      <div ref={end} />
    </>
  );
}

function Sources({ citations }: { readonly citations: readonly Citation[] }): JSX.Element {
  return (
    <section class="stack tight" aria-label="Sources">
      <h2 class="small-title">Sources</h2>
      <ol class="stack tight">
        {[...Map.groupBy(citations, ({ number }) => number).values()].map((group) => (
          <Source key={group[0]?.number} citations={group} />
        ))}
      </ol>
    </section>
  );
}

/** A passage, and what of it the answer uses. */
function Source({ citations }: { readonly citations: readonly Citation[] }): JSX.Element | null {
  const [first] = citations;
  if (first === undefined) return null;
  return (
    <li class="source" value={first.number}>
      <a href={linkTo(first)}>{first.title === "" ? first.resource_id : first.title}</a>
      <span class="small muted"> {whereOf(first)}</span>
      {citations.map(({ span }) => (
        <blockquote key={span.start} class="small">
          {span.text}
        </blockquote>
      ))}
    </li>
  );
}

/** What the answer does not say about itself: the model, what it left out, how fresh it is. */
function Remarks({ response: { data, usage, receipt } }: { readonly response: ChatResponse }): JSX.Element {
  const left = data.annotations.flatMap((each) => {
    switch (each.type) {
      case "messages_left_out":
        return [`${counted(each.count, "earlier message")} did not fit the model's window`];
      case "passages_left_out":
        return [`${counted(each.count, "passage")} did not fit the model's window`];
      case "image_left_out":
        return [`an image was left out: ${each.reason}`];
      case "missing_variable":
        return [`the prompt's variable ${each.name} has no value`];
      case "citation":
        return [];
    }
  });
  const cost = usage.cost > 0 ? `, cost ${usage.cost.toFixed(4)}` : "";
  return (
    <>
      {data.fallback ? (
        <Notice kind="wait" title={`Answered by ${data.model}, because the first model failed.`}>
          <p>{data.firstAttemptError}</p>
        </Notice>
      ) : null}
      {data.finish_reason === "completed" ? null : (
        <Notice kind="wait" title={FINISH_WORDS[data.finish_reason] ?? "The answer is not complete."} />
      )}
      {left.map((words) => (
        <p key={words} class="small muted">
          Note: {words}.
        </p>
      ))}
      {receipt === undefined || receipt.current ? null : (
        <p class="small muted">Not everything was up to date: files wait, failed or could not be read.</p>
      )}
      <p class="small muted numeric">
        {data.model}, {counted(usage.total_tokens, "token")}
        {cost}
      </p>
    </>
  );
}

const FINISH_WORDS: Readonly<Record<string, string>> = {
  truncated: "The answer ends at the model's limit.",
  content_filter: "The model's provider withheld a part of the answer.",
  error: "The answer broke off.",
};

function citationsOf(response: ChatResponse | undefined): readonly Citation[] {
  const all = (response?.data.annotations ?? []).filter((each) => each.type === "citation");
  return all.toSorted((a, b) => a.number - b.number);
}

function linkTo({ resource_id: id, chunk_id: chunk }: Citation): string {
  return addressOf(["documents", id], { chunk });
}

function whereOf({ path, title, lines, pages }: Citation): string {
  const range = (unit: string, { first, last }: { first: number; last: number }): string =>
    first === last ? `${unit} ${first}` : `${unit}s ${first}–${last}`;
  return [
    path === undefined || path === title ? "" : path,
    lines === undefined ? "" : range("line", lines),
    pages === undefined ? "" : range("page", pages),
  ]
    .filter((part) => part !== "")
    .join(", ");
}
