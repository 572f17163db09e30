import type { Conditions, Happening, History } from "../history.ts";
import type { Random } from "../virtual/random.ts";

/** A way in which the real world is less kind than the plain simulation. */
export interface UnkindWorld {
  readonly name: string;
  readonly does: string;
  /** Share of all histories that take place in it, where worlds are not chosen. */
  readonly share: number;
  /** Whether the daemon passes it, so that it is among those that are drawn from where none are chosen. */
  readonly passes: boolean;
  /** Makes a history one of this world. `endMs`: when the last of it happens. */
  readonly change: (random: Random, history: History, endMs: number) => History;
}

export const MINUTE_MS = 60_000;

export function withConditions(history: History, conditions: Partial<Conditions>): History {
  return { ...history, conditions: { ...history.conditions, ...conditions } };
}

export function withHappenings(history: History, more: readonly Happening[]): History {
  return { ...history, happenings: [...history.happenings, ...more] };
}

/** The same history without some of what happens. */
export function without(history: History, isLeftOut: (happening: Happening) => boolean): History {
  return { ...history, happenings: history.happenings.filter((each) => !isLeftOut(each)) };
}
