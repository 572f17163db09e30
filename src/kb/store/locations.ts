import { countNewlines } from "../../lib/count-newlines.ts";
import type { LocatedText, LocationStart } from "../../formats/markup/located-text.ts";

/** Where a part of a content begins. The line at its start gives the row of every line after it. */
export interface StoredLocation extends LocationStart {
  /** Line of the content at `start`, from 1, if the location has rows. */
  readonly line?: number;
}

/** Adds to each location with rows the line at which it starts. Pure. */
export function withLines({ text, locations = [] }: LocatedText): readonly StoredLocation[] {
  let line = 1;
  let at = 0;
  return locations.map((location) => {
    if (location.rows === undefined) return location;
    line += countNewlines(text, at, location.start);
    at = location.start;
    return { ...location, line };
  });
}

/** Returns those of `locations` that hold text from `start` up to, not including, `end`. */
export function locationsWithin(
  locations: readonly StoredLocation[],
  start: number,
  end: number,
): readonly StoredLocation[] {
  return locations.slice(Math.max(0, firstFrom(locations, start + 1) - 1), firstFrom(locations, end));
}

/** Returns the index of the first location that starts at `offset` or later. */
function firstFrom(locations: readonly StoredLocation[], offset: number): number {
  let low = 0;
  let high = locations.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((locations[middle]?.start ?? Infinity) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
