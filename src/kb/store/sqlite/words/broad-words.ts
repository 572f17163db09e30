import { analyze } from "../../../lexical/analyzer.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText } from "../database/parts.ts";
import { rowOf } from "../../../index/rows.ts";
import type { Place } from "../scopes/scopes.ts";

/** Scopes below this are not sampled: the list of any word is read in a few milliseconds. */
const CHUNKS_MIN = 10_000;
/** Chunks looked at, evenly spread. */
const SAMPLE = 400;
/**
 * Share of the sample above which a word is taken to stand in more than half of all chunks: by chance a word of exactly half
 * comes so far less than once in ten million samples.
 */
const SHARE_MIN = 0.63;
/** A sample is taken anew when the scope has grown by this factor, or so large a share of its chunks went. */
const GROWTH_MAX = 1.5;
const GONE_SHARE_MAX = 0.2;
/** Scopes whose words are remembered, some hundred words each. */
const SCOPES_MAX = 1000;

interface Sample {
  readonly terms: ReadonlySet<string>;
  readonly size: number;
  /** Chunks that had come and gone. */
  readonly gone: number;
  readonly retitled: number;
}

/**
 * Prepares telling, without its list, that a word surely stands in more than half of a large scope's chunks. Such a word
 * weighs the least there is (bm25.ts), however many hold it, so its list, the longest there are, need not be read.
 */
export function prepareBroadWords(db: Connection): (place: Place) => ReadonlySet<string> {
  const select = db
    .prepare<[number, number], [title: string, headings: string, text: string]>(`
      SELECT (SELECT title FROM resource WHERE number = chunk.resource), headings, text FROM chunk
      WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1`)
    .raw();
  const samples = new Map<number, Sample>();

  function take({ scope, chunks, nextSequence: size, retitled }: Place): Sample {
    const holding = new Map<string, number>();
    let looked = 0;
    for (let at = 0; at < SAMPLE; at++) {
      const from = rowOf(scope, Math.floor((at * size) / SAMPLE));
      const found = select.get(from, rowOf(scope, Math.floor(((at + 1) * size) / SAMPLE) - 1));
      // All chunks of that stretch are gone.
      if (found === undefined) continue;
      looked++;
      for (const term of analyze(indexedText(...found)).terms) {
        holding.set(term, (holding.get(term) ?? 0) + 1);
      }
    }
    // With many stretches empty the rest are too few to be sure.
    const least = looked < SAMPLE / 2 ? Infinity : looked * SHARE_MIN;
    const terms = new Set([...holding].filter(([, count]) => count >= least).map(([term]) => term));
    return { terms, size, gone: size - chunks, retitled };
  }

  return (place) => {
    if (place.chunks < CHUNKS_MIN) return NONE;
    const known = samples.get(place.scope);
    const isRight =
      known !== undefined &&
      known.retitled === place.retitled &&
      place.nextSequence <= known.size * GROWTH_MAX &&
      place.nextSequence - place.chunks - known.gone <= place.chunks * GONE_SHARE_MAX;
    if (isRight) return known.terms;
    samples.delete(place.scope);
    const sample = take(place);
    samples.set(place.scope, sample);
    for (const oldest of samples.keys()) {
      if (samples.size <= SCOPES_MAX) break;
      samples.delete(oldest);
    }
    return sample.terms;
  };
}

const NONE: ReadonlySet<string> = new Set();
