import type { JSX } from "preact";
import { ROUTES } from "../../wire/routes.ts";
import type { SearchAnswer, SearchResult } from "../../wire/search.ts";
import { ask } from "../client/api.ts";
import { Show } from "../parts/notice.tsx";
import { useLoad } from "../view/load.ts";
import { markWords } from "./words.ts";

/** Chunks on each side of the hit, and the tokens that they may have. */
const SIDES = 3;
const TOKENS_MAX = 8000;
/** Hits of the document among which the result is found again. */
const HITS_MAX = 100;

/** The text around a result. */
export function Section({
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
