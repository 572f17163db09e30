import type { JSX } from "preact";
import type { SearchResult } from "../../wire/search.ts";
import { addressOf } from "../view/address.ts";
import { markWords } from "./words.ts";

/** Characters of a chunk that are shown at first. */
const SHOWN_CHARS = 420;

/** A chunk that a search found. Its title opens the document there. */
export function Result({
  result,
  question,
  rank,
}: {
  readonly result: SearchResult;
  readonly question: string;
  readonly rank: number;
}): JSX.Element {
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
      <p class="passage">
        {markWords(isCut ? beginningOf(content) : content, question).map(({ text, isMatch }, at) =>
          isMatch ? <mark key={at}>{text}</mark> : text,
        )}
        {isCut ? "…" : ""}
      </p>
      <p class="small muted">
        {[
          lines === undefined ? "" : rangeWords("Line", lines),
          pages === undefined ? "" : rangeWords("Page", pages),
          `Version ${version}.`,
        ].join(" ")}
      </p>
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
