import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Annotation, ChatResponse, Citation } from "../../wire/chat.ts";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { addressOf } from "../view/address.ts";
import { counted, moment } from "../view/format.ts";
import type { Turn } from "./conversation.ts";
import { Markdown } from "./markdown.tsx";

/** A question with its answer so far, and the passages that support it. */
export function TurnView({ turn }: { readonly turn: Turn }): JSX.Element {
  const { question, images, text, response, stored, error, isStopped } = turn;
  const citations = citationsOf(stored?.annotations ?? response?.data.annotations ?? []);
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
  const isGoing = response === undefined && stored === undefined && error === undefined && isStopped !== true;
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
        {stored === undefined ? null : (
          <p class="small muted numeric">
            {moment(Date.parse(stored.createdAt))}, {stored.model}
          </p>
        )}
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

/** Facts beside the answer: the model, what it left out. */
function Remarks({ response: { data, usage } }: { readonly response: ChatResponse }): JSX.Element {
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

function citationsOf(annotations: readonly Annotation[]): readonly Citation[] {
  const all = annotations.filter((each) => each.type === "citation");
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
