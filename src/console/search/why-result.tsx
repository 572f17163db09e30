import type { JSX } from "preact";
import type { Explanation } from "../../wire/search.ts";

/** The basis of a result's rank, as words and as bars. */
export function WhyResult({ explain }: { readonly explain: Explanation }): JSX.Element {
  const { wordShare, bm25Share, cosine, rerank } = explain;
  return (
    <details class="why-result">
      <summary class="small">Why this result</summary>
      <dl class="meters">
        <Meter
          name="Words"
          value={wordShare}
          hint="Weight of the matched words among all words of the question. Rare words weigh more."
        />
        <Meter name="BM25" value={bm25Share} hint="How strongly it matches, compared with the best match." />
        {cosine === null ? null : (
          <Meter name="Cosine" value={cosine} hint="Nearness in meaning. Unrelated texts reach 0.20." />
        )}
        {rerank === null ? null : (
          <Meter
            name="Rerank"
            value={rerank.value}
            hint={
              rerank.by === "model"
                ? "Judgement of the reranking model, three quarters of the score."
                : "Nearness in meaning of its nearest sentence."
            }
          />
        )}
      </dl>
    </details>
  );
}

function Meter({
  name,
  value,
  hint,
}: {
  readonly name: string;
  readonly value: number;
  readonly hint: string;
}): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="numeric">
        <span class="bar" aria-hidden="true">
          <i style={{ width: `${Math.max(0, value) * 100}%` }} />
        </span>
        {value.toFixed(2)}
      </dd>
      <dd class="hint">{hint}</dd>
    </div>
  );
}
