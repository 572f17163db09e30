import { analyze } from "../../../lexical/analyzer.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText, NAMES } from "../database/parts.ts";
import { rowOf } from "../../../index/rows.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/** Smaller scopes are not sampled: the list of any word is read in a few milliseconds. */
const CHUNKS_MIN = 10_000;
/** Sampled chunks, evenly spread. */
const SAMPLE = 400;
/**
 * Minimum share of the sample for a word that counts as contained in more than half of all chunks. A word of exactly half
 * the chunks reaches this share by chance less than once in ten million samples.
 */
const SHARE_MIN = 0.63;
/** A sample is stale when the scope has grown by this factor, or when this share of its chunks was removed. */
const GROWTH_MAX = 1.5;
const GONE_SHARE_MAX = 0.2;
/** Maximum samples in memory, of about a hundred words each. */
const SCOPES_MAX = 1000;

interface Sample {
  readonly terms: ReadonlySet<string>;
  readonly size: number;
  /** Chunks removed before the sample was taken. */
  readonly gone: number;
  readonly retitled: number;
}

/**
 * Prepares the search for words that are certainly in more than half of a large scope's chunks, without reading posting
 * lists. Such a word has the minimum weight (bm25.ts) however many chunks contain it, so its list, one of the longest, need
 * not be read.
 */
export function prepareBroadWords(db: Connection): (target: SearchTarget) => ReadonlySet<string> {
  const select = db
    .prepare<[number, number], [names: string, headings: string, text: string]>(`
      SELECT (SELECT ${NAMES} FROM resource WHERE number = chunk.resource), headings, text FROM chunk
      WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1`)
    .raw();
  const samples = new Map<number, Sample>();

  function take({ scope, chunks, nextSequence: size, retitled }: SearchTarget): Sample {
    const frequency = new Map<string, number>();
    let sampled = 0;
    for (let at = 0; at < SAMPLE; at++) {
      const from = rowOf(scope, Math.floor((at * size) / SAMPLE));
      const found = select.get(from, rowOf(scope, Math.floor(((at + 1) * size) / SAMPLE) - 1));
      // All chunks of this range are gone.
      if (found === undefined) continue;
      sampled++;
      for (const term of analyze(indexedText(...found)).terms) {
        frequency.set(term, (frequency.get(term) ?? 0) + 1);
      }
    }
    // If many ranges are empty, the sample is too small to be certain.
    const countMin = sampled < SAMPLE / 2 ? Infinity : sampled * SHARE_MIN;
    const terms = new Set([...frequency].filter(([, count]) => count >= countMin).map(([term]) => term));
    return { terms, size, gone: size - chunks, retitled };
  }

  return (target) => {
    if (target.chunks < CHUNKS_MIN) return NONE;
    const known = samples.get(target.scope);
    const isCurrent =
      known !== undefined &&
      known.retitled === target.retitled &&
      target.nextSequence <= known.size * GROWTH_MAX &&
      target.nextSequence - target.chunks - known.gone <= target.chunks * GONE_SHARE_MAX;
    if (isCurrent) return known.terms;
    samples.delete(target.scope);
    const sample = take(target);
    samples.set(target.scope, sample);
    for (const oldest of samples.keys()) {
      if (samples.size <= SCOPES_MAX) break;
      samples.delete(oldest);
    }
    return sample.terms;
  };
}

const NONE: ReadonlySet<string> = new Set();
