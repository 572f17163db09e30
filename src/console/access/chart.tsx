import type { JSX } from "preact";

/** A point of a chart: its words for a person, and its values; null: none is known. */
export interface ChartPoint {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

/** Size of the drawing in its own units; it is stretched to the width of its place. */
const WIDTH = 300;
const HEIGHT = 80;

/** Values over time, as bars or as lines with the space below the first one filled. The table beside it has the numbers. */
export function Chart({
  kind,
  label,
  points,
}: {
  readonly kind: "bars" | "lines";
  /** A sentence with the latest numbers. */
  readonly label: string;
  readonly points: readonly ChartPoint[];
}): JSX.Element {
  const max = Math.max(...points.flatMap(({ values }) => values.map((value) => value ?? 0)), 0) || 1;
  const yOf = (value: number): number => HEIGHT - (value / max) * (HEIGHT - 4);
  const step = WIDTH / Math.max(1, points.length);
  const series = (points[0]?.values ?? []).map((_, at) =>
    points.map(({ values }, index): [number, number] | undefined => {
      const value = values[at] ?? null;
      return value === null ? undefined : [step * (index + 0.5), yOf(value)];
    }),
  );
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {kind === "bars"
        ? points.map(({ label: name, values: [value = null] }, at) => (
            <rect
              key={name}
              class="chart-bar"
              x={step * (at + 0.12)}
              y={yOf(value ?? 0)}
              width={step * 0.76}
              height={HEIGHT - yOf(value ?? 0)}
            />
          ))
        : series.map((line, at) => <Line key={at} at={at} line={line} />)}
      {points.map(({ label: name }, at) => (
        <rect key={name} class="chart-touch" x={step * at} y="0" width={step} height={HEIGHT}>
          <title>{name}</title>
        </rect>
      ))}
    </svg>
  );
}

function Line({
  line,
  at,
}: {
  readonly line: readonly ([number, number] | undefined)[];
  readonly at: number;
}): JSX.Element {
  const paths = runsOf(line).map((run) =>
    run.map(([x, y], index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join(""),
  );
  const areas = runsOf(line).map(
    (run, index) => `${paths[index] ?? ""}L${run.at(-1)?.[0] ?? 0} ${HEIGHT}L${run[0]?.[0] ?? 0} ${HEIGHT}Z`,
  );
  return (
    <>
      {at === 0 ? <path class="chart-area" d={areas.join("")} /> : null}
      <path class={`chart-line ${at === 0 ? "" : "second"}`} d={paths.join("")} />
    </>
  );
}

/** Returns the stretches of a line between its gaps. A single point becomes a stroke as wide as a bar. Pure. */
function runsOf(line: readonly ([number, number] | undefined)[]): readonly (readonly [number, number][])[] {
  const half = (WIDTH / Math.max(1, line.length)) * 0.38;
  const runs: [number, number][][] = [];
  for (const [index, point] of line.entries()) {
    if (point === undefined) continue;
    if (line[index - 1] === undefined) runs.push([]);
    runs.at(-1)?.push(point);
  }
  return runs.map((run) => {
    const [only] = run;
    return run.length === 1 && only !== undefined
      ? [
          [only[0] - half, only[1]],
          [only[0] + half, only[1]],
        ]
      : run;
  });
}
