import type { JSX } from "preact";
import type { CollectionsAnswer } from "../../wire/resource.ts";
import { ROUTES } from "../../wire/routes.ts";
import { ask } from "../client/api.ts";
import { accountState, liveTurn } from "../client/live.ts";
import { askDaemon } from "../client/daemon.ts";
import { clock, count, counted } from "../view/format.ts";
import { FolderCards } from "../folders/folder-cards.tsx";
import { TIER_WORDS } from "../knowledge/tiers.ts";
import { useLoad } from "../view/load.ts";
import { Bones, Empty, ErrorNotice, Notice, State } from "../parts/notice.tsx";
import { Words } from "../parts/words.tsx";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { may, me } from "../client/session.ts";
import type { HealthAnswer, ModelHealth } from "./health.ts";
import { needsOf, sentenceOf } from "./needs.ts";
import type { Whole } from "./needs.ts";

/** How often the page asks beside what events report: of folders and models there are none. */
const EVERY_MS = 5000;

type Loaded = Omit<Whole, "queues"> & { readonly collections: CollectionsAnswer["data"]["collections"] };

/** The whole in one sentence, what needs a person, and the figures. */
export function OverviewPage(): JSX.Element {
  const loaded = useLoad("overview", loadWhole, EVERY_MS, liveTurn);
  const { error, atMs, reload } = loaded;
  const value = loaded.value && { ...loaded.value, queues: accountState.value?.queues };
  const needs = value === undefined ? [] : needsOf(value);
  return (
    <Page
      title={value === undefined ? "Overview" : sentenceOf(value, needs)}
      intro={atMs === undefined ? "Loading" : error === undefined ? undefined : `As of ${clock(atMs)}`}
    >
      {error === undefined ? null : <ErrorNotice error={error} retry={reload} />}
      {value === undefined ? (
        error === undefined ? (
          <Bones lines={6} />
        ) : null
      ) : (
        <>
          {needs.length === 0 ? null : (
            <ul class="stack tight" aria-label="What needs you">
              {needs.map(({ key, title, detail, action }) => (
                <li key={key}>
                  <Notice
                    kind="bad"
                    title={title}
                    action={
                      action === undefined ? undefined : (
                        <a class="button small" href={action.address}>
                          {action.label}
                        </a>
                      )
                    }
                  >
                    {detail === undefined || detail === "" ? null : (
                      <p>
                        <Words of={detail} />
                      </p>
                    )}
                  </Notice>
                </li>
              ))}
            </ul>
          )}
          {value.documents === 0 && (value.daemon?.sources.length ?? 0) === 0 ? <Nothing /> : null}
          {value.daemon === undefined || value.daemon.sources.length === 0 ? null : (
            <section class="stack" aria-labelledby="overview-folders">
              <h2 id="overview-folders">Folders</h2>
              <FolderCards status={value.daemon} />
            </section>
          )}
          <Figures whole={value} />
        </>
      )}
    </Page>
  );
}

async function loadWhole(signal: AbortSignal): Promise<Loaded> {
  const [health, collections, daemon] = await Promise.all([
    ask<HealthAnswer>("/v1/health", { signal }),
    ask<CollectionsAnswer>(ROUTES.collections, { signal }),
    me.value?.daemon === true ? askDaemon("status", {}, signal) : undefined,
  ]);
  const { collections: found } = collections.data;
  const documents = found.reduce((sum, { resources }) => sum + resources, 0);
  return { documents, health, daemon, collections: found };
}

function Nothing(): JSX.Element {
  return (
    <Empty
      title="Start with a document or a folder"
      action={
        <>
          {me.value?.daemon === true ? (
            <a class="button primary" href={addressOf(["folders"], { new: "1" })}>
              Watch a folder
            </a>
          ) : null}
          {may("write") ? (
            <a class="button" href={addressOf(["add"])}>
              Add a document
            </a>
          ) : null}
        </>
      }
    >
      An address, files or a text becomes a document; of a folder, every file does.
    </Empty>
  );
}

function Figures({ whole }: { readonly whole: Loaded & Pick<Whole, "queues"> }): JSX.Element {
  const { collections, queues, health } = whole;
  return (
    <div class="columns figures">
      <section class="card stack tight" aria-labelledby="overview-knowledge">
        <h2 id="overview-knowledge">Knowledge</h2>
        {collections.map(({ details, resources }) => (
          <div class="row spread" key={details}>
            <span>{TIER_WORDS[details].label}</span>
            <span class="muted numeric">{counted(resources, "document")}</span>
          </div>
        ))}
      </section>
      <section class="card stack tight" aria-labelledby="overview-queue">
        <h2 id="overview-queue">Queue</h2>
        <Waiting name="Documents to read" of={queues?.ingest} />
        <Waiting name="Questions to answer" of={queues?.questions} />
        <Waiting name="Messages to send" of={queues?.webhooks} />
      </section>
      <section class="card stack tight" aria-labelledby="overview-models">
        <h2 id="overview-models">Models</h2>
        <Model name="Embedding" model={health.embedder} />
        <Model name="Reranking" model={health.reranker} />
        <Model name="Language" model={health.languageModel} />
        {health.isBackfilling ? (
          <p class="hint">Documents are being embedded; until then words alone find them.</p>
        ) : null}
        <p class="hint">kbsync {health.version}</p>
      </section>
    </div>
  );
}

function Waiting({
  name,
  of,
}: {
  readonly name: string;
  readonly of: { readonly waiting: number } | undefined;
}): JSX.Element {
  return (
    <div class="row spread">
      <span>{name}</span>
      <span class="muted numeric">{of === undefined ? "–" : count(of.waiting)}</span>
    </div>
  );
}

const MODEL_STATES: Readonly<
  Record<string, { readonly kind: "good" | "wait" | "bad" | "none"; readonly label: string }>
> = {
  ready: { kind: "good", label: "Ready" },
  idle: { kind: "none", label: "Loads when needed" },
  loading: { kind: "wait", label: "Loading" },
  off: { kind: "none", label: "None" },
  failing: { kind: "bad", label: "Fails" },
  unavailable: { kind: "bad", label: "Missing" },
};

function Model({ name, model }: { readonly name: string; readonly model: ModelHealth }): JSX.Element {
  const { kind, label } = MODEL_STATES[model.state] ?? { kind: "none" as const, label: model.state };
  return (
    <div class="row spread" title={model.message}>
      <span>{name}</span>
      <State kind={kind}>{label}</State>
    </div>
  );
}
