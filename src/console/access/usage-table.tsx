import type { JSX } from "preact";
import type { UsagePoint } from "../../wire/usage.ts";
import { count, dayOf, moment } from "../view/format.ts";

/** The length of a point's time. */
export type Step = "hour" | "day";

/** The points as a table that opens and closes. */
export function UsageTable({
  points,
  step,
  isOpen,
  onToggle,
}: {
  readonly points: readonly UsagePoint[];
  readonly step: Step;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}): JSX.Element {
  const hasCost = points.some(({ cost }) => cost !== null);
  return (
    <details open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)}>
      <summary>As a table</summary>
      {/* It scrolls by the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div class="card flush scroll usage-table" tabIndex={0} role="group" aria-label="Usage as a table">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{step === "hour" ? "Hour" : "Day"}</th>
              <th scope="col" class="number">
                Documents
              </th>
              <th scope="col" class="number">
                Searches
              </th>
              <th scope="col" class="number">
                Latency, median
              </th>
              <th scope="col" class="number">
                Latency, 95 %
              </th>
              <th scope="col" class="number">
                Queue
              </th>
              {hasCost ? (
                <th scope="col" class="number">
                  Model cost
                </th>
              ) : null}
            </tr>
          </thead>
          <tbody>
            {points.toReversed().map((point) => (
              <tr key={point.at}>
                <th scope="row">{timeOf(point, step)}</th>
                <td class="number">{point.documents === null ? "–" : count(point.documents)}</td>
                <td class="number">{count(point.searches)}</td>
                <td class="number">{point.latency === null ? "–" : msOf(point.latency.p50Ms)}</td>
                <td class="number">{point.latency === null ? "–" : msOf(point.latency.p95Ms)}</td>
                <td class="number">{count(point.queued)}</td>
                {hasCost ? <td class="number">{point.cost === null ? "–" : moneyOf(point.cost)}</td> : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** The time of a point. */
export function timeOf({ at }: UsagePoint, step: Step): string {
  const ms = Date.parse(at);
  return step === "hour" ? moment(ms) : dayOf(ms);
}

/** A duration: `1.2 ms`, `340 ms`, `1.5 s`. */
export function msOf(ms: number): string {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** An amount, with four decimals if it is small. */
export function moneyOf(cost: number): string {
  return cost.toFixed(cost > 0 && cost < 0.1 ? 4 : 2);
}
