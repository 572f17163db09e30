import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { besideWords, countWords, pendingWords } from "../../wire/file-state.ts";
import type { SourceStatus } from "../../wire/daemon-status.ts";
import type { OwnerEntry } from "../../wire/owners.ts";
import type { Tier } from "../../wire/primitives.ts";
import { ROUTES } from "../../wire/routes.ts";
import type { SearchAnswer, SearchBody } from "../../wire/search.ts";
import { ask } from "../client/api.ts";
import { askDaemon } from "../client/daemon.ts";
import { counted, duration } from "../view/format.ts";
import { loadOwners } from "../knowledge/documents.ts";
import { ownerWords } from "../knowledge/owner-words.ts";
import { TIER_WORDS, TIERS } from "../knowledge/tiers.ts";
import { useLoad } from "../view/load.ts";
import { Field } from "../parts/fields.tsx";
import { Empty, Notice, Show, State } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { route, refine } from "../view/router.ts";
import { may, me } from "../client/session.ts";
import { Result } from "./result.tsx";

/** Results of each tier: enough to see what a search of a program, which takes five, just misses. */
const TOP_K = 10;

/** One question to every collection in which an owner has documents. */
export function SearchPage(): JSX.Element {
  const owners = useLoad("search-owners", loadOwners);
  return (
    <Page title="Search" intro="Ask as a program does." width="wide">
      <Show loaded={owners} lines={2}>
        {(found) =>
          found.length === 0 ? (
            <Empty
              title="Nothing to search yet"
              action={
                may("write") ? (
                  <a class="button primary" href={addressOf(["add"])}>
                    Add documents
                  </a>
                ) : undefined
              }
            >
              There are no documents in this account.
            </Empty>
          ) : (
            <Search owners={found} />
          )
        }
      </Show>
    </Page>
  );
}

function Search({ owners }: { readonly owners: readonly OwnerEntry[] }): JSX.Element {
  const { query } = route.value;
  const ids = [...new Set(owners.map((each) => each.ownerId))];
  const ownerId = query.get("owner") ?? ids[0] ?? "";
  const question = query.get("q") ?? "";
  const scoreMin = Number(query.get("min") ?? 0);
  const [typed, setTyped] = useState(question);
  // Before the next key, which it would undo otherwise.
  useLayoutEffect(() => setTyped(question), [question]);
  const parts = TIERS.flatMap((tier) =>
    owners.filter((each) => each.ownerId === ownerId && each.details === tier),
  );
  return (
    <>
      <form
        class="card search-form"
        onSubmit={(event) => {
          event.preventDefault();
          refine({ q: typed.trim(), owner: ownerId });
        }}
      >
        <Field label="Question">
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              type="search"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Owner">
          {(attributes) => (
            <select
              {...attributes}
              class="input"
              value={ownerId}
              onChange={(event) => refine({ owner: event.currentTarget.value })}
            >
              {(ids.includes(ownerId) ? ids : [ownerId, ...ids]).map((id) => (
                <option key={id} value={id}>
                  {ownerWords(id)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label={`Score from ${scoreMin.toFixed(2)}`}>
          {(attributes) => (
            <input
              {...attributes}
              type="range"
              min="0"
              max="1"
              step="0.01"
              value={scoreMin}
              onInput={(event) => refine({ min: event.currentTarget.value })}
            />
          )}
        </Field>
        <button type="submit" class="button primary" disabled={typed.trim() === ""}>
          Search
        </button>
      </form>
      {parts.length === 0 ? (
        <Empty title="This owner has no documents">
          Choose another one. A search finds the documents of one owner.
        </Empty>
      ) : question === "" ? (
        <Empty title="What should be found?">
          {parts.length === 1
            ? `Searches the documents of ${ownerWords(ownerId)} in the collection ${TIER_WORDS[parts[0]?.details ?? "fastest"].label}.`
            : `Searches the documents of ${ownerWords(ownerId)} in ${parts.length} collections, side by side.`}
        </Empty>
      ) : (
        <div class="tiers">
          {parts.map(({ collectionId, details }) => (
            <TierResults
              key={collectionId}
              tier={details}
              request={{ query: question, collection_id: collectionId, owner_id: ownerId, top_k: TOP_K }}
              scoreMin={scoreMin}
            />
          ))}
        </div>
      )}
    </>
  );
}

interface Timed {
  readonly answer: SearchAnswer;
  readonly ms: number;
  /** The folders of the range; undefined: no daemon says. */
  readonly folders: readonly SourceStatus[] | undefined;
}

function TierResults({
  tier,
  request,
  scoreMin,
}: {
  readonly tier: Tier;
  readonly request: Pick<SearchBody, "query" | "collection_id" | "owner_id" | "top_k">;
  readonly scoreMin: number;
}): JSX.Element {
  const found = useLoad(JSON.stringify(request), async (signal): Promise<Timed> => {
    // A search needs the service alone.
    const status =
      me.value?.daemon === true ? askDaemon("status", {}, signal).catch(() => undefined) : undefined;
    const startMs = performance.now();
    const answer = await ask<SearchAnswer>(ROUTES.query, { method: "POST", body: request, signal });
    const ms = performance.now() - startMs;
    const folders = (await status)?.sources.filter(
      (source) => source.tier === tier && source.ownerId === request.owner_id,
    );
    return { answer, ms, folders };
  });
  return (
    <section class="stack" aria-label={`Results of ${TIER_WORDS[tier].label}`}>
      <div>
        <h2>{TIER_WORDS[tier].label}</h2>
        <p class="small muted" role="status">
          {found.value === undefined ? "Searching" : summary(found.value, scoreMin)}
        </p>
      </div>
      <Show loaded={found} lines={6}>
        {({ answer, folders }) => (
          <>
            <Waiting pending={answer.pending} folders={folders} />
            <Results answer={answer} question={request.query} scoreMin={scoreMin} tier={tier} />
          </>
        )}
      </Show>
    </section>
  );
}

function summary({ answer, ms }: Timed, scoreMin: number): string {
  const shown = answer.results.filter(({ score }) => score >= scoreMin).length;
  const hidden = answer.results.length - shown;
  const time = ms < 1000 ? `${Math.round(ms)} ms` : duration(ms / 1000);
  return `${counted(shown, "result")} in ${time}${hidden === 0 ? "" : `, ${hidden} below the lowest score`}`;
}

const FALLBACK_WORDS = {
  words: "Searched by words alone, not by meaning: the embedding model is missing or did not answer in time.",
  sentences: "Ranked without the reranking model, which did not answer in time.",
} as const;

function Results({
  answer,
  question,
  scoreMin,
  tier,
}: {
  readonly answer: SearchAnswer;
  readonly question: string;
  readonly scoreMin: number;
  readonly tier: Tier;
}): JSX.Element {
  const shown = answer.results.filter(({ score }) => score >= scoreMin);
  return (
    <>
      {answer.fallback === undefined ? null : <Notice kind="wait" title={FALLBACK_WORDS[answer.fallback]} />}
      {shown.length > 0 ? null : (
        <Empty title={answer.results.length > 0 ? "All results are below the lowest score" : "Nothing found"}>
          {answer.results.length > 0
            ? "Move the slider to the left to see them."
            : tier === "fastest"
              ? "This collection finds by words: no document has a word of the question. Other words, or a collection that also finds by meaning, may help."
              : "No document has evidence for an answer. Check that it is listed as searchable under Knowledge, with this owner."}
        </Empty>
      )}
      <ol class="stack">
        {shown.map((result, at) => (
          <li key={result.id}>
            <Result result={result} question={question} rank={at + 1} />
          </li>
        ))}
      </ol>
    </>
  );
}

/** What of the range is not searchable yet. */
function Waiting({
  pending,
  folders,
}: Pick<SearchAnswer, "pending"> & Pick<Timed, "folders">): JSX.Element | null {
  if (pending === undefined && folders === undefined) return null;
  const failed = folders?.reduce((sum, folder) => sum + folder.failed, 0);
  const words = [
    ...pendingWords(pending ?? { read: 0, embed: 0 }, folders ?? []),
    ...countWords({ failed }),
    ...besideWords((folders ?? []).map(({ unreadable }) => ({ unreadable }))),
  ];
  return (
    <p class="small">
      {words.length === 0 ? (
        <State kind="good">Everything is searchable</State>
      ) : (
        <>
          <State kind="wait">Not complete</State> {words.join(", ")}.
        </>
      )}
    </p>
  );
}
