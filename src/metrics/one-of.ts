import type { Gauge } from "prom-client";

/** Sets a gauge to 1 for the current state and to 0 for all others, so that the end of a state is visible too. */
export function setOneOf(
  gauge: Gauge,
  labels: Readonly<Record<string, string>>,
  states: readonly string[],
  now: string,
): void {
  for (const state of states) gauge.set({ ...labels, state }, state === now ? 1 : 0);
}
