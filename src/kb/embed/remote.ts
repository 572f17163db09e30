import { createHash } from "node:crypto";
import { z } from "zod";
import { KbsyncError } from "../../lib/failure.ts";
import { type JsonEndpoint, openJsonEndpoint } from "../models/json-endpoint.ts";
import { groupIntoBatches } from "./batches.ts";
import { embedderFingerprint } from "./embedding-text.ts";
import type { Embedder, OnTokens } from "./embedder.ts";
import { withCooldown } from "./cooldown.ts";

/** The endpoint of an embedding model, and its limits. */
export interface RemoteEmbedderOptions {
  /** URL up to the version, as clients of such services expect it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Undefined: sends no key. Local servers need none. */
  readonly apiKey: (() => string) | undefined;
  /** Dimensions to request from a model that can shorten its vectors. Default: the model's own. */
  readonly dimensions?: number;
  /** Timeout of a request. Default 30 s. */
  readonly timeoutMs?: number;
  /** Attempts for a batch of documents. Default 4. A query has one, because a person waits. */
  readonly attempts?: number;
  /** First backoff between attempts. Default 500 ms. */
  readonly delayMs?: number;
  /** Sends no query for this long after a failed one. Default 30 s. */
  readonly cooldownMs?: number;
  /** Clock of the cooldown. Default a monotonic one. */
  readonly nowMs?: () => number;
  readonly onTokens?: OnTokens | undefined;
}

/** An embedder behind `POST {baseUrl}/embeddings`, the API of OpenAI, vLLM, TEI, Ollama and others. */
export interface RemoteEmbedder extends Embedder {
  readonly kind: "remote";
  /**
   * The same model for searches: one attempt, a shorter timeout, separate connections, and after a failure a cooldown during
   * which it throws `embedding_resting` at once.
   */
  readonly queries: Embedder;
}

const TIMEOUT_MS = 30_000;
const QUERY_TIMEOUT_MS = 5000;
const ATTEMPTS = 4;
const COOLDOWN_MS = 30_000;
/** Concurrent requests, so that the service has capacity for others. */
const CONNECTIONS = 4;
/** Concurrent requests of searches: a free one for each that `ModelTurns` admits, as a wait would count as a slow answer. */
const QUERY_CONNECTIONS = 8;
/** Bounds of a request. Services accept 300,000 tokens and 2048 texts; a smaller request costs less to repeat. */
const BATCH_TOKENS = 32_768;
const BATCH_TEXTS = 64;
/** Longest text: models of such services read 8191 tokens or truncate; a chunk has at most 4000 characters. */
const TOKENS_MAX = 8191;
/** Characters sent of one text: a token has at least one. */
const TEXT_CHARS_MAX = TOKENS_MAX;
/** Largest response: 64 vectors of 8192 numbers with 25 characters each. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Text sent to learn the dimensions of the vectors. */
const PROBE = "What does this document say?";

const Answer = z.object({
  data: z
    .array(z.object({ index: z.int().min(0).optional(), embedding: z.array(z.number()).min(1).max(8192) }))
    .max(BATCH_TEXTS),
  // Some services leave it out.
  usage: z
    .object({ total_tokens: z.number().min(0) })
    .optional()
    .catch(undefined),
});

/**
 * Opens the model. Sends one request to learn its dimensions and whether it answers. Scales vectors to unit length. The
 * fingerprint covers address, model and dimensions; a change of the weights behind them is not detectable.
 *
 * Throws a KbsyncError, as does every `embed`: `embedding_unreachable` (retryable), `embedding_refused`, `embedding_answer`
 * for an unusable response, and `closed` after `close`.
 */
export async function openRemoteEmbedder(options: RemoteEmbedderOptions): Promise<RemoteEmbedder> {
  const url = `${options.baseUrl.replace(/\/+$/, "")}/embeddings`;
  const { apiKey, delayMs } = options;
  const endpoint = { kind: "embedding", url, apiKey, answerBytesMax: ANSWER_BYTES_MAX, delayMs } as const;
  const background = openJsonEndpoint({
    ...endpoint,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    attempts: options.attempts ?? ATTEMPTS,
    connections: CONNECTIONS,
  });
  const urgent = openJsonEndpoint({
    ...endpoint,
    timeoutMs: Math.min(options.timeoutMs ?? QUERY_TIMEOUT_MS, QUERY_TIMEOUT_MS),
    attempts: 1,
    connections: QUERY_CONNECTIONS,
  });
  const stop = new AbortController();
  const closed = (): KbsyncError => new KbsyncError("the embedder is closed", { code: "closed" });

  /** Sends one request with at most BATCH_TEXTS texts. */
  const request = async (
    through: typeof background,
    texts: readonly string[],
    dimensions: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Float32Array[]> => {
    if (stop.signal.aborted) throw closed();
    const body = {
      model: options.model,
      // Most services refuse an empty text; this one means as little.
      input: texts.map((text) => (text.trim() === "" ? " ." : text.slice(0, TEXT_CHARS_MAX))),
      encoding_format: "float",
      ...(options.dimensions === undefined ? {} : { dimensions: options.dimensions }),
    };
    const both = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const answer = await through.post(body, both);
    const { vectors, tokens } = readAnswer(answer, texts.length, dimensions ?? options.dimensions, through);
    options.onTokens?.(tokens);
    return vectors;
  };

  const embedVia =
    (through: typeof background, dimensions: number) =>
    async (texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
      signal?.throwIfAborted();
      if (stop.signal.aborted) throw closed();
      const vectors = Array.from<Float32Array>({ length: texts.length });
      const bounds = { tokens: BATCH_TOKENS, texts: BATCH_TEXTS, tokensMax: TOKENS_MAX };
      for (const batch of groupIntoBatches(texts, bounds)) {
        const batchTexts = batch.map((index) => texts[index] ?? "");
        const batchVectors = await request(through, batchTexts, dimensions, signal);
        for (const [at, index] of batch.entries()) vectors[index] = batchVectors[at] ?? new Float32Array(0);
      }
      return vectors;
    };

  const close = async (): Promise<void> => {
    stop.abort(closed());
    await Promise.all([background.close(), urgent.close()]);
  };
  let dimensions: number;
  try {
    const [probe] = await request(background, [PROBE], undefined, undefined);
    dimensions = probe?.length ?? 0;
  } catch (error) {
    await close();
    throw error;
  }
  const facts = {
    fingerprint: fingerprintOf(url, options.model, dimensions),
    dimensions,
    tokensMax: TOKENS_MAX,
  };
  const queries = { ...facts, embed: embedVia(urgent, dimensions), close: async () => undefined };
  const { cooldownMs = COOLDOWN_MS, nowMs = () => performance.now() } = options;
  return {
    kind: "remote",
    ...facts,
    embed: embedVia(background, dimensions),
    queries: withCooldown(queries, { cooldownMs, nowMs }),
    close,
  };
}

/** Hashes the address, which may contain credentials: the fingerprint is public. */
function fingerprintOf(url: string, model: string, dimensions: number): string {
  const address = createHash("sha256").update(url).digest("hex").slice(0, 12);
  return embedderFingerprint(`${model.replaceAll(/\s+/g, "-")}/${address}/${dimensions}`);
}

/** Returns the vectors of a response in the order of the texts, scaled to unit length, and its tokens. */
function readAnswer(
  answer: unknown,
  count: number,
  dimensions: number | undefined,
  { unusable }: Pick<JsonEndpoint, "unusable">,
): { readonly vectors: Float32Array[]; readonly tokens: number } {
  const { data } = Answer.safeParse(answer);
  if (data === undefined) throw unusable("expected data with embeddings of numbers");
  if (data.data.length !== count) throw unusable(`expected ${count} vectors, got ${data.data.length}`);
  const vectors = Array.from<Float32Array | undefined>({ length: count });
  for (const [at, { index = at, embedding }] of data.data.entries()) {
    const expected = dimensions ?? embedding.length;
    if (embedding.length !== expected) {
      throw unusable(`expected ${expected} dimensions, got ${embedding.length}`);
    }
    if (index >= count || vectors[index] !== undefined) throw unusable(`the index ${index} is wrong`);
    const length = Math.hypot(...embedding);
    if (!(length > 0 && Number.isFinite(length))) throw unusable("a vector has no direction");
    vectors[index] = Float32Array.from(embedding, (value) => value / length);
  }
  // Each index occurred once, so no vector is missing.
  return { vectors: vectors.flatMap((vector) => vector ?? []), tokens: data.usage?.total_tokens ?? 0 };
}
