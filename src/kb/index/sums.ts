import type { RowList } from "./row-list.ts";
import type { RowSet } from "./row-set.ts";

/** Bins of the histogram by which a threshold is found without sorting. */
const BINS = 4096;
/**
 * With more entries to add than this share of the places, all places are walked through at the end: quicker than noting
 * at each entry whether its place is new.
 */
const WALKED_SHARE = 0.25;

/** A place in the range, and what was added up there. */
export interface PlaceSum {
  readonly place: number;
  /** Above 0. */
  readonly sum: number;
}

/** Sums of weights by place in a range of sequences; empty between queries, and kept, for it is large. */
export interface Sums {
  /** Begins a range of `size` sequences from `first` on, to which some `entries` will be added; `allowed` lets only those in. */
  begin(range: { first: number; size: number; entries: number; allowed: RowSet | undefined }): void;
  /** Adds the weight, above 0 in sum, at each sequence of a list that lies in the range. */
  add(list: RowList, weight: number): void;
  /** The places with the largest sums, at most `count`, by falling sum, ties by place. */
  largest(count: number): readonly PlaceSum[];
  /** Empties it. */
  end(): void;
}

/** Makes an empty one. */
export function makeSums(): Sums {
  let sums = new Float32Array(0);
  /** Where `sums` is not 0, unless all places are walked through: a query of rare words touches few of very many. */
  let touched = new Uint32Array(0);
  let touchedCount = 0;
  let isWalked = false;
  let from = 0;
  let places = 0;
  let isIn: RowSet | undefined;
  const bins = new Uint32Array(BINS);

  function addNoted(rows: Uint32Array, weight: number): void {
    for (let at = 0; at < rows.length; at++) {
      const sequence = rows[at] ?? 0;
      if (isIn !== undefined && !isIn.has(sequence)) continue;
      const place = sequence - from;
      const sum = sums[place] ?? 0;
      if (sum === 0) touched[touchedCount++] = place;
      sums[place] = sum + weight;
    }
  }

  /** A sum that at least `count` places reach; 0 where there are not so many. By a histogram. */
  function threshold(count: number): number {
    const steps = isWalked ? places : touchedCount;
    let most = 0;
    for (let at = 0; at < steps; at++) {
      const sum = sums[isWalked ? at : (touched[at] ?? 0)] ?? 0;
      if (sum > most) most = sum;
    }
    if (most === 0) return 0;
    bins.fill(0);
    const scale = (BINS - 1) / most;
    for (let at = 0; at < steps; at++) {
      const bin = ((sums[isWalked ? at : (touched[at] ?? 0)] ?? 0) * scale) | 0;
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

  function reaching(least: number): PlaceSum[] {
    const found: PlaceSum[] = [];
    const steps = isWalked ? places : touchedCount;
    for (let at = 0; at < steps; at++) {
      const place = isWalked ? at : (touched[at] ?? 0);
      const sum = sums[place] ?? 0;
      if (sum >= least && sum > 0) found.push({ place, sum });
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
      places = size;
      isIn = allowed;
      isWalked = allowed === undefined && entries > size * WALKED_SHARE;
    },
    add(list, weight) {
      if (isWalked) list.addTo(sums, from, places, weight);
      else addNoted(list.within(from, from + places - 1), weight);
    },
    largest(count) {
      const steps = isWalked ? places : touchedCount;
      const found = reaching(steps > count ? threshold(count) : 0);
      return found.sort((a, b) => b.sum - a.sum || a.place - b.place).slice(0, count);
    },
    end() {
      if (isWalked) sums.fill(0, 0, places);
      else for (let at = 0; at < touchedCount; at++) sums[touched[at] ?? 0] = 0;
      touchedCount = 0;
    },
  };
}
