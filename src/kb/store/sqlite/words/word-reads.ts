import { makeByteCache } from "../../../index/words/byte-cache.ts";
import type { PostingList } from "../../../index/words/postings.ts";
import type { LivePart } from "../../../index/words/removed.ts";
import type { WordSnapshot } from "../../../index/words/query-terms.ts";
import { markRemoved, type StoredPart } from "../../search/stored-parts.ts";
import type { Connection } from "../database/connection.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import { prepareWordParts } from "./word-parts.ts";

/** Memory for posting lists of runs, in bytes: some 50 million postings. */
const LIST_BYTES_MAX = 64 * 1024 * 1024;
/** Memory for open parts of scopes, in bytes: the segments and what is read of a run before its lists. */
const PART_BYTES_MAX = 64 * 1024 * 1024;

/** The parts of a scope that a reader has open. */
interface OpenScope {
  readonly merged: number;
  readonly runs: readonly StoredPart[];
  readonly segments: readonly StoredPart[];
  /** The contents: segments below this sequence, and removals up to this number. */
  readonly nextSequence: number;
  readonly chunks: number;
  readonly lastRemoval: number;
  readonly parts: readonly LivePart[];
}

/**
 * Prepares the snapshots of the index of words. Open parts stay in memory, within a bound: parts never change, so a later
 * snapshot reads only new segments and removals, and after a merge the new run.
 */
export function prepareWordReads(db: Connection): (target: SearchTarget) => WordSnapshot {
  const stored = prepareWordParts(db);
  const lists = makeByteCache<string, PostingList>(LIST_BYTES_MAX);
  const scopes = makeByteCache<number, OpenScope>(PART_BYTES_MAX);

  /** Lists of runs stay in memory. Those of segments are read from it anyway. */
  const withCache = (of: StoredPart): LivePart => {
    if (of.kind === "segment") return of;
    const { number, part, removed } = of;
    const list = (hash: number): PostingList | undefined => {
      const key = `${number}/${hash}`;
      const known = lists.get(key);
      if (known !== undefined) return known;
      const found = part.list(hash);
      // With what is made of it for looking up (postings.ts).
      if (found !== undefined) lists.set(key, found, found.bytes.length + found.count / 4);
      return found;
    };
    return { part: { ...part, list }, removed };
  };

  function open({ scope, merged, nextSequence, chunks }: SearchTarget): OpenScope {
    const known = scopes.get(scope);
    const isSame = known?.merged === merged;
    if (isSame && known.nextSequence === nextSequence && known.chunks === chunks) return known;
    const runs = isSame ? known.runs : stored.runs(scope, finder(known?.runs));
    const segments = isSame
      ? [...known.segments, ...stored.segments(scope, known.nextSequence)]
      : stored.segments(scope, 0, finder(known?.segments));
    const removals = stored.removals(scope, isSame ? known.lastRemoval : 0);
    const all = [...runs, ...segments];
    markRemoved(all, removals);
    const lastRemoval = removals.at(-1)?.number ?? (isSame ? known.lastRemoval : 0);
    const opened: OpenScope = {
      merged,
      runs,
      segments,
      nextSequence,
      chunks,
      lastRemoval,
      parts: all.filter(({ part, removed }) => removed.count() < part.rows).map(withCache),
    };
    scopes.set(
      scope,
      opened,
      all.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    return opened;
  }

  return (target) => ({ parts: open(target).parts, chunks: target.chunks, words: target.words });
}

/** Finds open parts of one kind by their numbers. */
function finder(parts: readonly StoredPart[] = []): (number: number) => StoredPart | undefined {
  const byNumber = new Map(parts.map((part) => [part.number, part]));
  return (number) => byNumber.get(number);
}
