/** Segments of a scope from which on they are merged into a run, and the most that one merge has in memory. */
export const SEGMENTS_MERGED = 128;
export const SEGMENTS_MERGED_MAX = 1024;
export const SEGMENT_BYTES_MAX = 32 * 1024 * 1024;
/** A scope is rewritten when a quarter of the chunks in its index were removed, and at least so many. */
export const REMOVED_SHARE_MAX = 0.25;
export const REMOVED_MIN = 256;

/** Whether so many chunks in the index of a scope were removed that all its parts are merged. */
export function isWorn(removed: number, live: number): boolean {
  return live === 0 ? removed > 0 : removed > Math.max(REMOVED_MIN, live * REMOVED_SHARE_MAX);
}
