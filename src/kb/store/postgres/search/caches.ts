import { makeFilterCache, type FilterCache } from "../scopes/filters.ts";
import { makeCheckedCache, type CheckedCache } from "./pending.ts";
import { HNSW_CHUNKS_MIN } from "../vectors/hnsw.ts";
import { makePartitionCache, type PartitionCache } from "../vectors/partitions.ts";
import { makeWordCaches, type WordCaches } from "../words/word-parts.ts";

/** The caches of a process's searches. Each cache has a bound of its own. */
export interface IndexCaches {
  readonly words: WordCaches;
  readonly partitions: PartitionCache;
  readonly filters: FilterCache;
  readonly checked: CheckedCache;
}

/** `hnswChunksMin`: chunks of a scope from which it may have an index of vectors in the database. */
export function makeIndexCaches(hnswChunksMin = HNSW_CHUNKS_MIN): IndexCaches {
  return {
    words: makeWordCaches(),
    partitions: makePartitionCache(hnswChunksMin),
    filters: makeFilterCache(),
    checked: makeCheckedCache(),
  };
}
