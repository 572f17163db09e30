import { MODEL_NAME } from "./model-files.ts";
import type { Prompts } from "./prompts.ts";

/** An embedding model that `kbsync models` offers. Each pools by the mean, and has 384 dimensions, which the store has room for. */
export interface KnownModel {
  readonly name: string;
  /** Words for a person. */
  readonly languages: string;
  readonly license: string;
  /** Where it comes from; undefined: kbsync's package has it. */
  readonly download?: ModelDownload;
}

export interface ModelDownload {
  /** Repository on the model hub. */
  readonly hubId: string;
  /** Path of the preferred weights: of multilingual models the int8 ones, whose large table of words is quantised as well. */
  readonly weightsFile: string;
  /** About what is downloaded, for the list. */
  readonly sizeMb: number;
  /** Longest text that it was trained with, and its prompts, as its card says. The repository has no file for them. */
  readonly tokensMax: number;
  readonly prompts?: Prompts;
}

const INT8 = "onnx/model_quantized.onnx";

export const KNOWN_MODELS: readonly KnownModel[] = [
  { name: MODEL_NAME, languages: "English", license: "Apache-2.0" },
  {
    name: "paraphrase-multilingual-MiniLM-L12-v2",
    languages: "some 50 languages",
    license: "Apache-2.0",
    download: {
      hubId: "Xenova/paraphrase-multilingual-MiniLM-L12-v2",
      weightsFile: INT8,
      sizeMb: 135,
      tokensMax: 128,
    },
  },
  {
    name: "multilingual-e5-small",
    languages: "some 100 languages",
    license: "MIT",
    download: {
      hubId: "Xenova/multilingual-e5-small",
      weightsFile: INT8,
      sizeMb: 135,
      tokensMax: 512,
      prompts: { query: "query: ", passage: "passage: " },
    },
  },
];
