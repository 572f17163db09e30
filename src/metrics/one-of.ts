import type { Gauge } from "prom-client";

/** Sets a gauge to 1 for one of its states and to 0 for all others, so that the end of each is to be seen as well. */
export function setOneOf(
  gauge: Gauge,
  labels: Readonly<Record<string, string>>,
  states: readonly string[],
  now: string,
): void {
  for (const state of states) gauge.set({ ...labels, state }, state === now ? 1 : 0);
}
