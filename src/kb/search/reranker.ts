import { z } from "zod";
import type { KbsyncError } from "../../lib/failure.ts";
import { type JsonEndpoint, openJsonEndpoint } from "../models/json-endpoint.ts";

/** The endpoint of a reranking model, and its limits. */
export interface RerankerOptions {
  /** Full URL, for example `https://api.jina.ai/v1/rerank`. */
  readonly url: string;
  readonly model: string;
  /** Undefined: sends no key. Local servers need none. */
  readonly apiKey: (() => string) | undefined;
  /** Timeout of a request. Default 3 s: a person waits for the search. */
  readonly timeoutMs?: number;
  /** Sends nothing for this long after a failure. Default 30 s. */
  readonly cooldownMs?: number;
  readonly nowMs: () => number;
  /** Reports the first failure, and with undefined the recovery. */
  readonly onChange: (problem: KbsyncError | undefined) => void;
}

/** Public state of the reranker. Holds no addresses and no causes; those go to the log. */
export interface RerankerState {
  readonly state: "off" | "idle" | "ready" | "failing";
  /** One sentence for a person. */
  readonly message: string;
}

/** A model that rates the relevance of documents to a query, with the API of Jina, Cohere, vLLM and TEI. */
export interface Reranker {
  /**
   * Returns the relevance of each document in [0, 1], in the order of the documents; undefined for a document the model did
   * not judge. Scores outside [0, 1] mark the model as one that returns logits. Resolves to undefined if the model fails or is
   * in its cooldown; `state` then reports `failing`.
   */
  judge(query: string, documents: readonly string[]): Promise<readonly (number | undefined)[] | undefined>;
  state(): RerankerState;
  close(): Promise<void>;
}

const TIMEOUT_MS = 3000;
const COOLDOWN_MS = 30_000;
/** Concurrent requests. */
const CONNECTIONS = 8;
/** Largest response: some services echo the documents. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

const Judged = z.object({ index: z.int().min(0), relevance_score: z.number() });
/** TEI's native route returns a bare list with `score`. */
const Listed = z.object({ index: z.int().min(0), score: z.number() });
const Answer = z.union([
  z.object({ results: z.array(Judged) }).transform(({ results }) => results),
  z.array(Listed).transform((list) => list.map(({ index, score }) => ({ index, relevance_score: score }))),
]);

/** Opens the model. Sends nothing before the first search. Does not retry: a search can fall back to its fused order. */
export function openReranker(options: RerankerOptions): Reranker {
  const { url, model, nowMs, onChange, cooldownMs = COOLDOWN_MS } = options;
  const endpoint = openJsonEndpoint({
    kind: "reranker",
    url,
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    attempts: 1,
    answerBytesMax: ANSWER_BYTES_MAX,
    connections: CONNECTIONS,
  });
  const stop = new AbortController();
  let state: RerankerState = { state: "idle", message: "The first search calls the reranker." };
  let cooldownUntilMs = 0;
  /** Never reset: a later answer of logits may happen to lie within [0, 1]. */
  let givesLogits = false;

  const fail = (error: KbsyncError): undefined => {
    const isNew = state.state !== "failing";
    cooldownUntilMs = nowMs() + cooldownMs;
    state = {
      state: "failing",
      message:
        "The reranker fails; high_accuracy reranks by sentences until it works again. The log has the cause.",
    };
    if (isNew) onChange(error);
    return undefined;
  };

  return {
    judge: async (query, documents) => {
      if (documents.length === 0) return [];
      if (stop.signal.aborted || nowMs() < cooldownUntilMs) return undefined;
      try {
        const answer = await endpoint.post({ model, query, documents, top_n: documents.length }, stop.signal);
        const scores = scoresOf(answer, documents.length, endpoint);
        givesLogits ||= scores.some((score) => score !== undefined && (score < 0 || score > 1));
        if (state.state === "failing") onChange(undefined);
        state = { state: "ready", message: `Reranking with ${model}.` };
        return scores.map((score) =>
          givesLogits && score !== undefined ? 1 / (1 + Math.exp(-score)) : score,
        );
      } catch (error) {
        return stop.signal.aborted ? undefined : fail(error as KbsyncError); // the endpoint throws no other errors
      }
    },
    state: () => state,
    close: async () => {
      stop.abort();
      await endpoint.close();
    },
  };
}

function scoresOf(
  answer: unknown,
  count: number,
  { unusable }: Pick<JsonEndpoint, "unusable">,
): (number | undefined)[] {
  const { data } = Answer.safeParse(answer);
  if (data === undefined || data.length === 0) {
    throw unusable("expected results with index and relevance_score");
  }
  const scores = Array.from({ length: count }, (): number | undefined => undefined);
  for (const { index, relevance_score: score } of data) {
    if (index >= count) throw unusable(`index ${index} is out of range for ${count} documents`);
    scores[index] = score;
  }
  return scores;
}
