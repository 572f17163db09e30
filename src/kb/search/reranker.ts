import { z } from "zod";
import { KbsyncError, messageOf } from "../../lib/failure.ts";
import { openJsonEndpoint } from "../../lib/json-endpoint.ts";

/** Where the reranking model answers. */
export interface RerankerOptions {
  /** The whole address: `https://api.jina.ai/v1/rerank`. */
  readonly url: string;
  readonly model: string;
  /** Undefined: none is sent, as servers on the own machine need none. */
  readonly apiKey: string | undefined;
  /** Longest wait for an answer. Default 3 s: a person waits for the search. */
  readonly timeoutMs?: number;
  /** After a failure it is left alone for so long. Default 30 s. */
  readonly restMs?: number;
  readonly nowMs: () => number;
  /** It began to fail, or it works again. */
  readonly onChange: (problem: KbsyncError | undefined) => void;
}

/** What the service tells everybody about its reranker: no addresses, no causes; those are for the log. */
export interface RerankerState {
  readonly state: "off" | "idle" | "ready" | "failing";
  /** One sentence for a person. */
  readonly message: string;
}

/** A model that judges documents by a query: the form of Jina, Cohere, vLLM and TEI. */
export interface Reranker {
  /**
   * How relevant each document is, in [0, 1], in the order of the documents; undefined for one that it did not judge. A model
   * that answers outside of [0, 1] gives logits. Undefined as a whole when it fails, or failed just before; its state says so then.
   */
  judge(query: string, documents: readonly string[]): Promise<readonly (number | undefined)[] | undefined>;
  state(): RerankerState;
  close(): Promise<void>;
}

const TIMEOUT_MS = 3000;
const REST_MS = 30_000;
/** Searches that wait for it at once. */
const CONNECTIONS = 8;
/** Largest answer: some services send the documents back. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

const Judged = z.object({ index: z.int().min(0), relevance_score: z.number() });
/** TEI by its own route answers the list alone, with `score`. */
const Listed = z.object({ index: z.int().min(0), score: z.number() });
const Answer = z.union([
  z.object({ results: z.array(Judged) }).transform(({ results }) => results),
  z.array(Listed).transform((list) => list.map(({ index, score }) => ({ index, relevance_score: score }))),
]);

/** Opens the model; nothing is sent before the first search. One try each: a search has the order without it at hand. */
export function openReranker(options: RerankerOptions): Reranker {
  const { url, model, nowMs, onChange, restMs = REST_MS } = options;
  const endpoint = openJsonEndpoint({
    url,
    apiKey: options.apiKey,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    attempts: 1,
    delayMs: 0,
    answerBytesMax: ANSWER_BYTES_MAX,
    connections: CONNECTIONS,
  });
  const stop = new AbortController();
  let state: RerankerState = { state: "idle", message: "The reranker is asked by the first search." };
  let restUntilMs = 0;
  /** One score outside of [0, 1] tells it for good: a later answer may hold none. */
  let givesLogits = false;

  const failed = (error: KbsyncError): undefined => {
    const isNew = state.state !== "failing";
    restUntilMs = nowMs() + restMs;
    state = {
      state: "failing",
      message:
        "The reranker fails; high_accuracy reranks by sentences until it works again. The log tells why.",
    };
    if (isNew) onChange(error);
    return undefined;
  };

  return {
    judge: async (query, documents) => {
      if (documents.length === 0) return [];
      if (stop.signal.aborted || nowMs() < restUntilMs) return undefined;
      try {
        const answer = await endpoint.post({ model, query, documents, top_n: documents.length }, stop.signal);
        const scores = scoresOf(answer, documents.length, url);
        givesLogits ||= scores.some((score) => score !== undefined && (score < 0 || score > 1));
        if (state.state === "failing") onChange(undefined);
        state = { state: "ready", message: `Reranking with ${model}.` };
        return scores.map((score) =>
          givesLogits && score !== undefined ? 1 / (1 + Math.exp(-score)) : score,
        );
      } catch (error) {
        return stop.signal.aborted ? undefined : failed(failureOf(error, url));
      }
    },
    state: () => state,
    close: async () => {
      stop.abort();
      await endpoint.close();
    },
  };
}

function scoresOf(answer: unknown, count: number, url: string): (number | undefined)[] {
  const { data } = Answer.safeParse(answer);
  if (data === undefined || data.length === 0) {
    throw unusable(url, "expected results with index and relevance_score");
  }
  const scores = Array.from({ length: count }, (): number | undefined => undefined);
  for (const { index, relevance_score: score } of data) {
    if (index >= count) throw unusable(url, `${count} documents have no index ${index}`);
    scores[index] = score;
  }
  return scores;
}

function unusable(url: string, why: string): KbsyncError {
  return new KbsyncError(`the reranker's answer cannot be used: ${why}`, {
    code: "reranker_answer",
    subject: url,
    hint: HINT,
  });
}

function failureOf(error: unknown, url: string): KbsyncError {
  if (error instanceof KbsyncError && error.code === "reranker_answer") return error;
  const code =
    error instanceof KbsyncError ? error.code.replace("endpoint_", "reranker_") : "reranker_failed";
  return new KbsyncError(`the reranker fails: ${messageOf(error)}`, {
    code,
    subject: url,
    retryable: true,
    hint: HINT,
    cause: error,
  });
}

const HINT = "Check kb.reranker: the address, the model's name and the key file.";
