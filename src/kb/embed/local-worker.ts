import { parentPort, workerData } from "node:worker_threads";
import { AutoModel, AutoTokenizer, env } from "@huggingface/transformers";
import { answerCalls } from "../../lib/worker-calls.ts";
import type { Precision } from "./model-files.ts";

/** Start parameters of the worker. */
export interface LocalWorkerData {
  /** Absolute path of the model folder. */
  readonly folder: string;
  readonly dtype: Precision;
  readonly threads: number;
  readonly tokensMax: number;
  readonly dimensions: number;
}

/** Calls that the worker answers. */
export type LocalWorkerMethods = {
  /** Returns the unit vectors of the texts, concatenated. */
  embed(texts: readonly string[]): Promise<Float32Array>;
};

/** The part of a tensor used here. */
interface Tensor {
  readonly data: ArrayLike<number | bigint>;
  readonly dims: readonly number[];
}

type Encode = (texts: string[], options: object) => { readonly attention_mask: Tensor };
type Run = (inputs: object) => Promise<{ readonly last_hidden_state: Tensor }>;

const settings = workerData as LocalWorkerData; // only local.ts starts this worker
if (parentPort === null) throw new Error("local-worker.ts runs as a worker only");

// The files are on disk and verified; the worker never uses the network.
env.allowRemoteModels = false;
// Disables the library's cache, which would take precedence over our files, unverified.
env.useFSCache = false;
const loading = load();
// The first call reports a failure; without a handler here, the rejection would end the worker first.
loading.catch(() => undefined);

answerCalls(parentPort, {
  embed: async (texts: readonly string[]) => {
    const { encode, run } = await loading;
    const inputs = encode([...texts], { padding: true, truncation: true, max_length: settings.tokensMax });
    const { last_hidden_state: states } = await run(inputs);
    return meanOfTokens(states, inputs.attention_mask);
  },
} satisfies LocalWorkerMethods);

async function load(): Promise<{ encode: Encode; run: Run }> {
  // Needs an absolute path: the library may read a relative one as a model name on the hub.
  const tokenizer = await AutoTokenizer.from_pretrained(settings.folder, { local_files_only: true });
  const model = await AutoModel.from_pretrained(settings.folder, {
    local_files_only: true,
    device: "cpu",
    dtype: settings.dtype,
    session_options: {
      intraOpNumThreads: settings.threads,
      interOpNumThreads: 1,
      // Idle threads sleep instead of spinning: 6 % slower with two threads, for a third less CPU time.
      extra: { session: { intra_op: { allow_spinning: "0" } } },
    },
  });
  // Both are callable objects, which their types do not declare.
  return { encode: tokenizer as unknown as Encode, run: model as unknown as Run };
}

/** Averages the states of each text's tokens, without padding, and scales the mean to unit length. */
function meanOfTokens(states: Tensor, mask: Tensor): Float32Array {
  const [texts = 0, tokens = 0, width = 0] = states.dims;
  if (width !== settings.dimensions)
    throw new Error(`model gave ${width} values, config.json says ${settings.dimensions}`);
  const vectors = new Float32Array(texts * width);
  for (let text = 0; text < texts; text++) {
    const vector = vectors.subarray(text * width, (text + 1) * width);
    for (let token = text * tokens; token < (text + 1) * tokens; token++) {
      if (Number(mask.data[token]) === 0) continue;
      for (let i = 0; i < width; i++) vector[i] = (vector[i] ?? 0) + Number(states.data[token * width + i]);
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
