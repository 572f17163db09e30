import { parentPort, workerData } from "node:worker_threads";
import { AutoModel, AutoTokenizer, env } from "@huggingface/transformers";
import { answerCalls } from "../../lib/worker-calls.ts";
import type { Precision } from "./model-files.ts";

/** What the worker is started with. */
export interface LocalWorkerData {
  /** Absolute path of the model folder. */
  readonly folder: string;
  readonly dtype: Precision;
  readonly threads: number;
  readonly tokensMax: number;
  readonly dimensions: number;
}

/** What the worker answers. */
export type LocalWorkerMethods = {
  /** Unit vectors of the texts, one after the other. */
  embed(texts: readonly string[]): Promise<Float32Array>;
};

/** The part of a tensor that is read here. */
interface Tensor {
  readonly data: ArrayLike<number | bigint>;
  readonly dims: readonly number[];
}

type Encode = (texts: string[], options: object) => { readonly attention_mask: Tensor };
type Run = (inputs: object) => Promise<{ readonly last_hidden_state: Tensor }>;

const settings = workerData as LocalWorkerData; // given by local.ts alone
if (parentPort === null) throw new Error("local-worker.ts runs as a worker only");

// The files are on disk and checked: nothing here ever reaches for the network.
env.allowRemoteModels = false;
// Nor for the library's own cache: its files would be taken before ours, unchecked.
env.useFSCache = false;
const loading = load();
// A failure is the answer of the first call; without a handler it would end the worker before.
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
  // An absolute path is taken as it is, whatever its characters; a relative one could be read as a name on the hub.
  const tokenizer = await AutoTokenizer.from_pretrained(settings.folder, { local_files_only: true });
  const model = await AutoModel.from_pretrained(settings.folder, {
    local_files_only: true,
    device: "cpu",
    dtype: settings.dtype,
    session_options: {
      intraOpNumThreads: settings.threads,
      interOpNumThreads: 1,
      // Waiting threads sleep instead of spinning: 6 % slower with two threads, for a third less processor time.
      extra: { session: { intra_op: { allow_spinning: "0" } } },
    },
  });
  // Both are callable objects, which their types do not tell.
  return { encode: tokenizer as unknown as Encode, run: model as unknown as Run };
}

/** Mean of the states of the real tokens of each text (padding left out), scaled to unit length. */
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
    scaleToUnit(vector); // dividing by the number of tokens first would change nothing
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
