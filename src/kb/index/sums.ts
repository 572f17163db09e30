import type { RowList } from "./row-list.ts";
import type { RowSet } from "./row-set.ts";

/** Bins of the histogram that finds a threshold without sorting. */
const BINS = 4096;
/**
 * With more entries than this share of the offsets, `largest` and `end` scan all offsets: faster than tracking the touched
 * ones at each entry.
 */
const SCANNED_SHARE = 0.25;

/** An offset in the range and its sum. */
export interface OffsetSum {
  readonly offset: number;
  /** Above 0. */
  readonly sum: number;
}

/** Sums of weights by offset in a range of sequences. Empty between queries, and reused because it is large. */
export interface Sums {
  /** Starts a range of `size` sequences from `first` on; expects about `entries` additions. `allowed` filters sequences. */
  begin(range: { first: number; size: number; entries: number; allowed: RowSet | undefined }): void;
  /** Adds the weight at each sequence of the list in the range. The weights of a sequence sum to more than 0. */
  add(list: RowList, weight: number): void;
  /** Returns the offsets with the largest sums, at most `count`, by descending sum, ties by offset. */
  largest(count: number): readonly OffsetSum[];
  /** Ends the range and clears the sums. */
  end(): void;
}

/** Makes empty sums. */
export function makeSums(): Sums {
  let sums = new Float32Array(0);
  /** Offsets whose sum is not 0, unless all offsets are scanned: a query of rare words touches few of many. */
  let touched = new Uint32Array(0);
  let touchedCount = 0;
  let isScanned = false;
  let from = 0;
  let offsets = 0;
  let filter: RowSet | undefined;
  const bins = new Uint32Array(BINS);

  function addTracked(rows: Uint32Array, weight: number): void {
    for (let at = 0; at < rows.length; at++) {
      const sequence = rows[at] ?? 0;
      if (filter !== undefined && !filter.has(sequence)) continue;
      const offset = sequence - from;
      const sum = sums[offset] ?? 0;
      if (sum === 0) touched[touchedCount++] = offset;
      sums[offset] = sum + weight;
    }
  }

  /** Returns a sum that at least `count` offsets reach, found by a histogram; 0 if there are fewer. */
  function threshold(count: number): number {
    const steps = isScanned ? offsets : touchedCount;
    let max = 0;
    for (let at = 0; at < steps; at++) {
      const sum = sums[isScanned ? at : (touched[at] ?? 0)] ?? 0;
      if (sum > max) max = sum;
    }
    if (max === 0) return 0;
    bins.fill(0);
    const scale = (BINS - 1) / max;
    for (let at = 0; at < steps; at++) {
      const bin = ((sums[isScanned ? at : (touched[at] ?? 0)] ?? 0) * scale) | 0;
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
    let seen = 0;
    let bin = BINS - 1;
    for (; bin > 0; bin--) {
      seen += bins[bin] ?? 0;
      if (seen >= count) break;
    }
    return bin / scale;
  }

  function reaching(sumMin: number): OffsetSum[] {
    const found: OffsetSum[] = [];
    const steps = isScanned ? offsets : touchedCount;
    for (let at = 0; at < steps; at++) {
      const offset = isScanned ? at : (touched[at] ?? 0);
      const sum = sums[offset] ?? 0;
      if (sum >= sumMin && sum > 0) found.push({ offset, sum });
    }
    return found;
  }

  return {
    begin({ first, size, entries, allowed }) {
      if (sums.length < size) {
        sums = new Float32Array(Math.ceil(size * 1.25));
        touched = new Uint32Array(sums.length);
      }
      from = first;
      offsets = size;
      filter = allowed;
      isScanned = allowed === undefined && entries > size * SCANNED_SHARE;
    },
    add(list, weight) {
      if (isScanned) list.addTo(sums, from, offsets, weight);
      else addTracked(list.within(from, from + offsets - 1), weight);
    },
    largest(count) {
      const steps = isScanned ? offsets : touchedCount;
      const found = reaching(steps > count ? threshold(count) : 0);
      return found.sort((a, b) => b.sum - a.sum || a.offset - b.offset).slice(0, count);
    },
    end() {
      if (isScanned) sums.fill(0, 0, offsets);
      else for (let at = 0; at < touchedCount; at++) sums[touched[at] ?? 0] = 0;
      touchedCount = 0;
    },
  };
}
