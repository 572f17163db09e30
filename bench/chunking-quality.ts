/**
 * How well chunks answer judged questions, by Chroma's method: for each question the five chunks nearest to it are
 * compared, character by character, with the passages that answer it.
 */
import type { Embedder } from "../src/kb/embed/embedder.ts";
import type { Span } from "../src/kb/ingest/chunk/span.ts";
import type { ChunkingData, Question } from "./chunking-data.ts";

/** Chunks retrieved for a question. */
const RETRIEVED = 5;

/** Means over the questions, as shares. */
export interface ChunkingFigures {
  /** Of the passages' characters, those that were retrieved. */
  readonly recall: number;
  /** Of the retrieved characters, those of passages. */
  readonly precision: number;
  /** What was retrieved and is of a passage, of all that is either. */
  readonly iou: number;
}

/** A chunk of one of the texts. */
export interface CorpusSpan extends Span {
  readonly corpus: string;
}

/** Embeds the chunks as `textOf` gives them and retrieves for every question among the chunks of all texts. */
export async function measureChunking(
  { questions }: ChunkingData,
  spans: readonly CorpusSpan[],
  textOf: (span: CorpusSpan) => string,
  embedder: Embedder,
): Promise<ChunkingFigures> {
  const vectors = await embedder.embed(spans.map(textOf));
  const asked = await embedder.embed(questions.map(({ text }) => text));
  const figures = questions.map((question, at) => {
    const query = asked[at] ?? new Float32Array();
    const nearest = vectors
      .map((vector, index) => ({ index, cosine: dot(vector, query) }))
      .sort((a, b) => b.cosine - a.cosine || a.index - b.index)
      .slice(0, RETRIEVED);
    return figuresOf(
      question,
      nearest.flatMap(({ index }) => spans[index] ?? []),
    );
  });
  const mean = (value: (of: ChunkingFigures) => number): number =>
    figures.reduce((sum, of) => sum + value(of), 0) / figures.length;
  return {
    recall: mean((of) => of.recall),
    precision: mean((of) => of.precision),
    iou: mean((of) => of.iou),
  };
}

/** Retrieved text counts once for recall and as often as it was retrieved for precision and overlap, as Chroma counts. */
function figuresOf({ corpus, passages }: Question, retrieved: readonly CorpusSpan[]): ChunkingFigures {
  const wanted = new Set<number>();
  for (const { begin, end } of passages) for (let at = begin; at < end; at++) wanted.add(at);
  const found = new Set<number>();
  for (const span of retrieved) {
    if (span.corpus !== corpus) continue;
    for (const at of wanted) if (at >= span.start && at < span.end) found.add(at);
  }
  const size = retrieved.reduce((sum, { start, end }) => sum + end - start, 0);
  return {
    recall: found.size / wanted.size,
    precision: found.size / size,
    iou: found.size / (size + wanted.size - found.size),
  };
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}
