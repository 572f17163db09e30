import { createHash } from "node:crypto";
import { z } from "zod";
import { KbsyncError } from "../../lib/failure.ts";
import { openJsonEndpoint } from "../../lib/json-endpoint.ts";
import { groupIntoBatches } from "./batches.ts";
import { embedderFingerprint } from "./embedding-text.ts";
import type { Embedder } from "./embedder.ts";
import { restingEmbedder } from "./resting.ts";

/** Where the model answers, and what it may be asked. */
export interface RemoteEmbedderOptions {
  /** Up to the version, as clients of such services take it: `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Undefined: none is sent, as servers on the own machine need none. */
  readonly apiKey: string | undefined;
  /** Asked of the model where it can cut its vectors short. Default: as many as it gives. */
  readonly dimensions?: number;
  /** Longest wait for one answer. Default 30 s. */
  readonly timeoutMs?: number;
  /** Tries of a batch that nobody answered. Default 4; for a query one, for a person waits. */
  readonly attempts?: number;
  /** First wait between two tries. Default 500 ms. */
  readonly delayMs?: number;
  /** After a query that failed no other one is asked for so long. Default 30 s. */
  readonly restMs?: number;
  /** The clock of that rest. Default one that nobody sets. */
  readonly nowMs?: () => number;
}

/** An embedder behind `POST {baseUrl}/embeddings`, the form of OpenAI, vLLM, TEI, Ollama and others. */
export interface RemoteEmbedder extends Embedder {
  readonly kind: "remote";
  /**
   * The same model for calls a person waits for: one try, shorter bounds, connections of their own, and after a failure a
   * rest, in which it throws `embedding_resting` at once.
   */
  readonly queries: Embedder;
}

const TIMEOUT_MS = 30_000;
const QUERY_TIMEOUT_MS = 5000;
const ATTEMPTS = 4;
const REST_MS = 30_000;
const DELAY_MS = 500;
/** Requests under way at once, so that a service answers others, too. */
const CONNECTIONS = 4;
/** Bounds of one request: services take 300,000 tokens and 2048 texts; a smaller one is lost more cheaply. */
const BATCH_TOKENS = 32_768;
const BATCH_TEXTS = 64;
/** Longest text: the models of such services read 8191 tokens or cut for themselves; a chunk has 4000 characters at most. */
const TOKENS_MAX = 8191;
/** Most characters sent of one text: a token has at least one. */
const TEXT_CHARS_MAX = TOKENS_MAX;
/** Largest answer: 64 vectors of 8192 numbers as text of 25 characters each. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Sent to learn how many dimensions the vectors have. */
const PROBE = "What does this document say?";

const Answer = z.object({
  data: z
    .array(z.object({ index: z.int().min(0).optional(), embedding: z.array(z.number()).min(1).max(8192) }))
    .max(BATCH_TEXTS),
});

/**
 * Opens the model; asks it once, to learn its dimensions and whether it answers. Vectors are scaled to unit length. The
 * fingerprint is made of address, model and dimensions: what changes behind them cannot be seen from here.
 *
 * Throws, as every `embed` does, a KbsyncError: `embedding_unreachable` (retryable), `embedding_refused`,
 * `embedding_answer` for an answer of other numbers than asked for; `closed` after `close`.
 */
export async function openRemoteEmbedder(options: RemoteEmbedderOptions): Promise<RemoteEmbedder> {
  const { delayMs = DELAY_MS } = options;
  const url = `${options.baseUrl.replace(/\/+$/, "")}/embeddings`;
  const endpoint = { url, apiKey: options.apiKey, answerBytesMax: ANSWER_BYTES_MAX, delayMs };
  const patient = openJsonEndpoint({
    ...endpoint,
    timeoutMs: options.timeoutMs ?? TIMEOUT_MS,
    attempts: options.attempts ?? ATTEMPTS,
    connections: CONNECTIONS,
  });
  const urgent = openJsonEndpoint({
    ...endpoint,
    timeoutMs: Math.min(options.timeoutMs ?? QUERY_TIMEOUT_MS, QUERY_TIMEOUT_MS),
    attempts: 1,
    connections: CONNECTIONS,
  });
  const stop = new AbortController();
  const closed = (): KbsyncError => new KbsyncError("the embedder is closed", { code: "closed" });

  /** One request: at most BATCH_TEXTS texts. */
  const ask = async (
    through: typeof patient,
    texts: readonly string[],
    dimensions: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Float32Array[]> => {
    if (stop.signal.aborted) throw closed();
    const body = {
      model: options.model,
      // An empty text is refused by most; a blank one means as little.
      input: texts.map((text) => (text.trim() === "" ? " ." : text.slice(0, TEXT_CHARS_MAX))),
      encoding_format: "float",
      ...(options.dimensions === undefined ? {} : { dimensions: options.dimensions }),
    };
    const both = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const answer = await through.post(body, both).catch((error: unknown) => {
      throw failureOf(error, url);
    });
    return vectorsOf(answer, texts.length, dimensions ?? options.dimensions, url);
  };

  const embedVia =
    (through: typeof patient, dimensions: number) =>
    async (texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
      signal?.throwIfAborted();
      if (stop.signal.aborted) throw closed();
      const vectors = Array.from<Float32Array>({ length: texts.length });
      const bounds = { tokens: BATCH_TOKENS, texts: BATCH_TEXTS, tokensMax: TOKENS_MAX };
      for (const batch of groupIntoBatches(texts, bounds)) {
        const asked = batch.map((index) => texts[index] ?? "");
        const made = await ask(through, asked, dimensions, signal);
        for (const [place, index] of batch.entries()) vectors[index] = made[place] ?? new Float32Array(0);
      }
      return vectors;
    };

  const close = async (): Promise<void> => {
    stop.abort(closed());
    await Promise.all([patient.close(), urgent.close()]);
  };
  let dimensions: number;
  try {
    const [probe] = await ask(patient, [PROBE], undefined, undefined);
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
  const urgentOne = { ...facts, embed: embedVia(urgent, dimensions), close: async () => undefined };
  const { restMs = REST_MS, nowMs = () => performance.now() } = options;
  return {
    kind: "remote",
    ...facts,
    embed: embedVia(patient, dimensions),
    queries: restingEmbedder(urgentOne, { restMs, nowMs }),
    close,
  };
}

/** The address itself stays out: it may hold a name or a password, and the fingerprint is told to everybody. */
function fingerprintOf(url: string, model: string, dimensions: number): string {
  const address = createHash("sha256").update(url).digest("hex").slice(0, 12);
  return embedderFingerprint(`${model.replaceAll(/\s+/g, "-")}/${address}/${dimensions}`);
}

/** The vectors of an answer in the order of the texts, of unit length. */
function vectorsOf(
  answer: unknown,
  count: number,
  dimensions: number | undefined,
  url: string,
): Float32Array[] {
  const unusable = (why: string): KbsyncError =>
    new KbsyncError(`${url} answered what cannot be used: ${why}`, {
      code: "embedding_answer",
      subject: url,
      hint: "Check kb.embedding: the address, the model's name and dimensions.",
    });
  const { data } = Answer.safeParse(answer);
  if (data === undefined) throw unusable("expected data with embeddings of numbers");
  if (data.data.length !== count) throw unusable(`expected ${count} vectors, got ${data.data.length}`);
  const vectors = Array.from<Float32Array | undefined>({ length: count });
  for (const [place, { index = place, embedding }] of data.data.entries()) {
    const expected = dimensions ?? embedding.length;
    if (embedding.length !== expected) {
      throw unusable(`expected ${expected} dimensions, got ${embedding.length}`);
    }
    if (index >= count || vectors[index] !== undefined) throw unusable(`the index ${index} is wrong`);
    const length = Math.hypot(...embedding);
    if (!(length > 0 && Number.isFinite(length))) throw unusable("a vector has no direction");
    vectors[index] = Float32Array.from(embedding, (value) => value / length);
  }
  // Each index stood there once, so none is left over.
  return vectors.flatMap((vector) => vector ?? []);
}

function failureOf(error: unknown, url: string): unknown {
  if (!(error instanceof KbsyncError) || !error.code.startsWith("endpoint_")) return error;
  return new KbsyncError(`the embedding model fails: ${error.message}`, {
    code: error.code.replace("endpoint_", "embedding_"),
    subject: url,
    retryable: error.retryable,
    hint: "Check kb.embedding: the address, the model's name and the key file.",
    cause: error,
  });
}
