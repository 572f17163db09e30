import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ROUTES } from "../../wire/routes.ts";
import type { UsageAnswer, UsagePoint } from "../../wire/usage.ts";
import { ask } from "../client/api.ts";
import { Show } from "../parts/notice.tsx";
import { count } from "../view/format.ts";
import { useLoad } from "../view/load.ts";
import { route, refine } from "../view/router.ts";
import { Chart, type ChartPoint } from "./chart.tsx";
import { timeOf, msOf, moneyOf, type Step, UsageTable } from "./usage-table.tsx";

/** Spans of time to choose from. */
const SPANS: readonly {
  readonly id: string;
  readonly label: string;
  readonly step: Step;
  readonly count: number;
}[] = [
  { id: "24h", label: "24 hours", step: "hour", count: 24 },
  { id: "7d", label: "7 days", step: "hour", count: 168 },
  { id: "30d", label: "30 days", step: "day", count: 30 },
  { id: "90d", label: "90 days", step: "day", count: 90 },
];
/** The current point grows while a person looks. */
const RELOAD_MS = 30_000;

/** Documents, searches, latency, queue and model cost of the account over time. */
export function UsageTab(): JSX.Element {
  // Beyond a change of the span, which reloads the table.
  const [isOpen, setIsOpen] = useState(false);
  const id = route.value.query.get("span") ?? "24h";
  const span = SPANS.find((each) => each.id === id) ?? SPANS[0];
  const { step, count: length } = span ?? { step: "hour" as const, count: 24 };
  const loaded = useLoad(
    `usage ${step} ${length}`,
    async (signal) => {
      const query = { step, count: length };
      return (await ask<UsageAnswer>(ROUTES.usage, { query, signal })).data.points;
    },
    RELOAD_MS,
  );
  return (
    <>
      <div class="segments spans" role="group" aria-label="Span of time">
        {SPANS.map((each) => (
          <button
            key={each.id}
            type="button"
            aria-pressed={each.id === span?.id}
            onClick={() => refine({ span: each.id })}
          >
            {each.label}
          </button>
        ))}
      </div>
      <Show loaded={loaded} lines={12}>
        {(points) => (
          <>
            <Charts points={points} step={step} />
            <UsageTable points={points} step={step} isOpen={isOpen} onToggle={setIsOpen} />
          </>
        )}
      </Show>
    </>
  );
}

function Charts({
  points,
  step,
}: {
  readonly points: readonly UsagePoint[];
  readonly step: Step;
}): JSX.Element {
  const searches = points.reduce((sum, point) => sum + point.searches, 0);
  const latest = points.findLast(({ latency }) => latency !== null)?.latency ?? null;
  const documents = points.at(-1)?.documents ?? null;
  const queued = Math.max(...points.map((point) => point.queued));
  const costs = points.flatMap(({ cost }) => (cost === null ? [] : cost));
  const costsOfAll = points.flatMap(({ costOfAll }) => (costOfAll === null ? [] : costOfAll));
  const chart = (
    kind: "bars" | "lines",
    title: string,
    words: string,
    valuesOf: ValuesOf,
    unit: Unit,
  ): JSX.Element => (
    <Chart
      kind={kind}
      label={`${title}: ${words}`}
      points={points.map((point): ChartPoint => ({
        label: `${timeOf(point, step)}: ${unit(point)}`,
        values: valuesOf(point),
      }))}
    />
  );
  return (
    <>
      <div class="usage">
        <Panel
          title="Documents"
          figure={documents === null ? "–" : count(documents)}
          note="stored now"
          points={points}
          step={step}
        >
          {chart(
            "lines",
            "Documents",
            `${documents ?? 0} now`,
            (point) => [point.documents],
            ({ documents: some }) => (some === null ? "not known" : count(some)),
          )}
        </Panel>
        <Panel title="Searches" figure={count(searches)} note="in this time" points={points} step={step}>
          {chart(
            "bars",
            "Searches",
            `${searches} in this time`,
            (point) => [point.searches],
            (point) => count(point.searches),
          )}
        </Panel>
        <Panel
          title="Latency of searches"
          figure={latest === null ? "–" : msOf(latest.p50Ms)}
          note={latest === null ? "no search yet" : `median; 95 % within ${msOf(latest.p95Ms)}`}
          points={points}
          step={step}
        >
          {chart(
            "lines",
            "Latency of searches",
            latest === null ? "no search yet" : `median ${msOf(latest.p50Ms)}`,
            ({ latency }) => [latency?.p95Ms ?? null, latency?.p50Ms ?? null],
            ({ latency }) =>
              latency === null
                ? "no search"
                : `median ${msOf(latency.p50Ms)}, 95 % within ${msOf(latency.p95Ms)}`,
          )}
        </Panel>
        <Panel
          title="Queue"
          figure={count(queued)}
          note="documents waiting at a time, at most"
          points={points}
          step={step}
        >
          {chart(
            "bars",
            "Queue",
            `${queued} documents at most`,
            (point) => [point.queued],
            (point) => count(point.queued),
          )}
        </Panel>
        {costs.length === 0 ? (
          <section class="card usage-panel" aria-label="Model cost">
            <h2 class="small-title muted">Model cost</h2>
            <p class="small muted">
              {step === "hour"
                ? "Counted by day: choose 30 or 90 days. It needs a budget (kb.budget)."
                : "Counted with a budget (kb.budget)."}
            </p>
          </section>
        ) : (
          <Panel
            title="Model cost"
            figure={moneyOf(sumOf(costs))}
            note={`of this account, in the currency of the prices${costsOfAll.length === 0 ? "" : `; all accounts: ${moneyOf(sumOf(costsOfAll))}`}`}
            points={points}
            step={step}
          >
            {chart(
              "bars",
              "Model cost",
              "of this account",
              (point) => [point.cost],
              (point) => moneyOf(point.cost ?? 0),
            )}
          </Panel>
        )}
      </div>
    </>
  );
}

type ValuesOf = (point: UsagePoint) => readonly (number | null)[];
type Unit = (point: UsagePoint) => string;

function Panel({
  title,
  figure,
  note,
  points,
  step,
  children,
}: {
  readonly title: string;
  readonly figure: string;
  readonly note: string;
  readonly points: readonly UsagePoint[];
  readonly step: Step;
  readonly children: ComponentChildren;
}): JSX.Element {
  const [first] = points;
  return (
    <section class="card usage-panel" aria-label={title}>
      <h2 class="small-title muted">{title}</h2>
      <p>
        <strong class="figure numeric">{figure}</strong> <span class="small muted block">{note}</span>
      </p>
      {children}
      <p class="row spread small muted" aria-hidden="true">
        <span>{first === undefined ? "" : timeOf(first, step)}</span>
        <span>{step === "hour" ? "now" : "today"}</span>
      </p>
    </section>
  );
}

function sumOf(costs: readonly number[]): number {
  return costs.reduce((sum, cost) => sum + cost, 0);
}
