import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { Tokenizer } from "@huggingface/tokenizers";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { answerCalls } from "../../lib/worker-calls.ts";

/** Start parameters of the worker. */
export interface LocalWorkerData {
  /** Absolute path of the model folder. */
  readonly folder: string;
  /** Path of the weights in that folder. */
  readonly weightsFile: string;
  readonly threads: number;
  readonly tokensMax: number;
  readonly dimensions: number;
}

/** Calls that the worker answers. */
export type LocalWorkerMethods = {
  /** Returns the unit vectors of the texts, concatenated. */
  embed(texts: readonly string[]): Promise<Float32Array>;
};

const settings = workerData as LocalWorkerData; // only local.ts starts this worker
if (parentPort === null) throw new Error("local-worker.ts runs as a worker only");

const loading = load();
// The first call reports a failure; without a handler here, the rejection would end the worker first.
loading.catch(() => undefined);

answerCalls(parentPort, {
  embed: async (texts: readonly string[]) => {
    const { tokenizer, session } = await loading;
    const tokens = texts.map((text) => tokenizer.encode(text).ids.slice(0, settings.tokensMax));
    const { feeds, mask } = batchOf(tokens, session.inputNames);
    const { last_hidden_state: states } = await session.run(feeds, ["last_hidden_state"]);
    if (states === undefined) throw new Error("the model has no output last_hidden_state");
    return meanOfTokens(states, mask);
  },
} satisfies LocalWorkerMethods);

async function load(): Promise<{ tokenizer: Tokenizer; session: InferenceSession }> {
  const read = async (name: string): Promise<object> =>
    JSON.parse(await readFile(join(settings.folder, name), "utf8")) as object;
  const tokenizer = new Tokenizer(await read("tokenizer.json"), await read("tokenizer_config.json"));
  const session = await InferenceSession.create(join(settings.folder, settings.weightsFile), {
    executionProviders: ["cpu"],
    intraOpNumThreads: settings.threads,
    interOpNumThreads: 1,
    // Idle threads sleep instead of spinning: 6 % slower with two threads, for a third less CPU time.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
  });
  return { tokenizer, session };
}

/** Returns the model's inputs for a batch, padded to its longest text, and the mask of what is no padding. */
function batchOf(
  texts: readonly (readonly number[])[],
  inputs: readonly string[],
): { readonly feeds: Record<string, Tensor>; readonly mask: BigInt64Array } {
  const width = Math.max(...texts.map(({ length }) => length));
  const ids = new BigInt64Array(texts.length * width);
  const mask = new BigInt64Array(texts.length * width);
  for (const [text, tokens] of texts.entries())
    for (const [at, id] of tokens.entries()) {
      ids[text * width + at] = BigInt(id);
      mask[text * width + at] = 1n;
    }
  const given: Readonly<Record<string, BigInt64Array>> = {
    input_ids: ids,
    attention_mask: mask,
    token_type_ids: new BigInt64Array(ids.length),
  };
  const feeds: Record<string, Tensor> = {};
  for (const name of inputs) {
    const values = given[name];
    if (values === undefined) throw new Error(`the model has an input that no text model has: ${name}`);
    feeds[name] = new Tensor("int64", values, [texts.length, width]);
  }
  return { feeds, mask };
}

/** Averages the states of each text's tokens, without padding, and scales the mean to unit length. */
function meanOfTokens({ dims, data }: Tensor, mask: BigInt64Array): Float32Array {
  const [texts = 0, tokens = 0, width = 0] = dims;
  if (width !== settings.dimensions)
    throw new Error(`model gave ${width} values, config.json says ${settings.dimensions}`);
  const vectors = new Float32Array(texts * width);
  for (let text = 0; text < texts; text++) {
    const vector = vectors.subarray(text * width, (text + 1) * width);
    for (let token = text * tokens; token < (text + 1) * tokens; token++) {
      if (mask[token] === 0n) continue;
      for (let i = 0; i < width; i++) vector[i] = (vector[i] ?? 0) + Number(data[token * width + i]);
    }
    scaleToUnit(vector); // makes dividing by the number of tokens unnecessary
  }
  return vectors;
}

function scaleToUnit(vector: Float32Array): void {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (length === 0) return;
  for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] ?? 0) / length;
}
