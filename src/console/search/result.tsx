import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SearchResult, SearchAnswer } from "../../wire/search.ts";
import { addressOf } from "../view/address.ts";
import { markWords } from "./words.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { Show } from "../parts/notice.tsx";
import { useLoad } from "../view/load.ts";

/** Characters of a chunk that are shown at first. */
const SHOWN_CHARS = 420;

/** A chunk that a search found, and on demand the text around it. */
export function Result({
  result,
  question,
  rank,
}: {
  readonly result: SearchResult;
  readonly question: string;
  readonly rank: number;
}): JSX.Element {
  const [isWhole, setIsWhole] = useState(false);
  const { id, score, payload, version } = result;
  const { content, title = "", headings = [], resourceId, lines, pages } = payload;
  const isCut = content.length > SHOWN_CHARS;
  return (
    <article class="card result">
      <div class="row spread">
        <h3>
          <span class="muted numeric">{rank}. </span>
          <a href={addressOf(["documents", resourceId], { chunk: id })}>
            {title === "" ? resourceId : title}
          </a>
        </h3>
        <Score score={score} />
      </div>
      {headings.length === 0 ? null : <p class="small muted">{headings.join(" › ")}</p>}
      {isWhole ? (
        <Section result={result} question={question} />
      ) : (
        <p class="passage">
          {markWords(isCut ? beginningOf(content) : content, question).map(({ text, isMatch }, at) =>
            isMatch ? <mark key={at}>{text}</mark> : text,
          )}
          {isCut ? "…" : ""}
        </p>
      )}
      <p class="small muted">
        {[
          lines === undefined ? "" : rangeWords("Line", lines),
          pages === undefined ? "" : rangeWords("Page", pages),
          `Version ${version}.`,
        ].join(" ")}
      </p>
      <div class="row">
        <button
          type="button"
          class="button small"
          aria-expanded={isWhole}
          onClick={() => setIsWhole(!isWhole)}
        >
          {isWhole ? "Show the chunk" : "Show more around it"}
        </button>
      </div>
    </article>
  );
}

/** The beginning of a text, up to a word's end. */
function beginningOf(text: string): string {
  const part = text.slice(0, SHOWN_CHARS);
  // A text without spaces is cut anywhere.
  return part.replace(/\s+\S{0,40}$/, "").replace(/[\s\p{P}]+$/u, "");
}

/** `Line 3.`, `Lines 3–9.` */
function rangeWords(
  unit: string,
  { first, last }: { readonly first: number; readonly last: number },
): string {
  return first === last ? `${unit} ${first}.` : `${unit}s ${first}–${last}.`;
}

function Score({ score }: { readonly score: number }): JSX.Element {
  return (
    <span class="score numeric">
      <span class="bar" aria-hidden="true">
        <i style={{ width: `${score * 100}%` }} />
      </span>
      <span>
        <span class="hidden-visually">Score </span>
        {score.toFixed(2)}
      </span>
    </span>
  );
}

/** Chunks on each side of the hit, and the tokens that they may have. */
const SIDES = 3;
const TOKENS_MAX = 8000;
/** Hits of the document among which the result is found again. */
const HITS_MAX = 100;

/** The text around a result. */
function Section({
  result: { id, payload },
  question,
}: {
  readonly result: SearchResult;
  readonly question: string;
}): JSX.Element {
  const loaded = useLoad(`section ${id} ${question}`, async (signal) => {
    const body = {
      query: question,
      doc_id: payload.resourceId,
      expand: SIDES,
      top_k: HITS_MAX,
      max_tokens: TOKENS_MAX,
    };
    const { results } = await ask<SearchAnswer>(ROUTES.query, { method: "POST", body, signal });
    return results.find((each) => each.payload.hits?.some((hit) => hit.id === id) === true)?.payload.content;
  });
  return (
    <Show loaded={loaded} lines={4}>
      {(text) =>
        text === undefined ? (
          <p class="hint">
            The document is too long to show it here, or it has changed. Open it by its title.
          </p>
        ) : (
          <p class="passage section">
            {markWords(text, question).map((piece, at) =>
              piece.isMatch ? <mark key={at}>{piece.text}</mark> : piece.text,
            )}
          </p>
        )
      }
    </Show>
  );
}
