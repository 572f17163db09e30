import { makeFilterCache, type FilterCache } from "../scopes/filters.ts";
import { makeCheckedCache, type CheckedCache } from "./unfinished.ts";
import { makePartitionCache, type PartitionCache } from "../vectors/partitions.ts";
import { makeWordCaches, type WordCaches } from "../words/word-parts.ts";

/** The caches of a process's searches. Each cache has a bound of its own. */
export interface IndexCaches {
  readonly words: WordCaches;
  readonly partitions: PartitionCache;
  readonly filters: FilterCache;
  readonly checked: CheckedCache;
}

export function makeIndexCaches(): IndexCaches {
  return {
    words: makeWordCaches(),
    partitions: makePartitionCache(),
    filters: makeFilterCache(),
    checked: makeCheckedCache(),
  };
}
